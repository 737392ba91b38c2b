import PalbeUnits

/// When a picture with this number was captured.
struct Capture: Equatable, Sendable {
  var number: UInt32
  var time: Instant
}

/// When a decoded picture was there, and the number that its pixels carry; nil when they carry none.
struct Decode: Equatable, Sendable {
  var number: UInt32?
  var time: Instant
}

/// The pictures of one direction.
struct VideoMeasurement: Equatable, Sendable {
  /// Captured after the other side's first decode and before the end of the measured time.
  var captured = 0
  /// Of them: decoded.
  var decoded = 0
  /// Decoded pictures whose number is not above the one before, or was never captured.
  var outOfOrder = 0
  /// Decoded pictures that carry no number.
  var unreadable = 0
  /// One-way, capture to decoded picture, of the captured pictures that were decoded.
  var latencies: [TimeDelta] = []
  /// Captured within a second before or after the key change.
  var capturedAroundRekeying = 0
  /// Of them: not decoded.
  var missingAroundRekeying = 0
  /// Similarity of sampled pictures to what was captured.
  var ssim: [Double] = []

  /// Compares what was captured with what was decoded, both in the order of time.
  init(captures: [Capture], decodes: [Decode], until end: Instant, rekeyedAt rekeying: Instant? = nil) {
    guard let first = decodes.first(where: { $0.number != nil }) else { return }
    var capturedAt: [UInt32: Instant] = [:]
    for capture in captures { capturedAt[capture.number] = capture.time }
    var decodedAt: [UInt32: Instant] = [:]
    var previous: UInt32?
    for decode in decodes {
      guard let number = decode.number else {
        unreadable += 1
        continue
      }
      if capturedAt[number] == nil || previous.map({ number <= $0 }) == true { outOfOrder += 1 }
      previous = max(previous ?? number, number)
      if decodedAt[number] == nil { decodedAt[number] = decode.time }
    }
    for capture in captures where capture.time >= first.time && capture.time < end {
      captured += 1
      let decoded = decodedAt[capture.number]
      if let decoded {
        self.decoded += 1
        latencies.append(decoded - capture.time)
      }
      if let rekeying, abs((capture.time - rekeying).nanoseconds) <= TimeDelta.seconds(1).nanoseconds {
        capturedAroundRekeying += 1
        if decoded == nil { missingAroundRekeying += 1 }
      }
    }
  }

  /// Nothing measured.
  init() {}

  /// Share of captured pictures that were decoded, 0 to 100.
  var decodedPercent: Double { captured == 0 ? 0 : 100 * Double(decoded) / Double(captured) }
}

/// The sound and the packets of one direction.
struct AudioMeasurement: Equatable, Sendable {
  /// Pulls answered with a packet, and with concealment because it came too late or never.
  var played: UInt64 = 0
  var concealed: UInt64 = 0
  /// Packets that no installed key opened.
  var lostToKeys: UInt64 = 0
  /// Packets handed out in the wrong order.
  var outOfOrder: UInt64 = 0
  /// Root mean square of what was heard, dB below full scale.
  var level = -Double.infinity

  /// Share of pulls that were concealed, 0 to 100.
  var concealedPercent: Double {
    played + concealed == 0 ? 100 : 100 * Double(concealed) / Double(played + concealed)
  }
}

/// What one participant measured of what the other sent.
struct DirectionMeasurement: Equatable, Sendable {
  /// Names for people: "anna".
  var from: String
  var to: String
  var video = VideoMeasurement()
  var audio = AudioMeasurement()
  /// Video frames that no installed key opened.
  var videoLostToKeys: UInt64 = 0
  var packets: UInt64 = 0
  var lostPackets: UInt64 = 0
  var bytes: UInt64 = 0
  /// RFC 3550 interarrival jitter of the video and the audio track.
  var videoJitter = TimeDelta.zero
  var audioJitter = TimeDelta.zero
  /// For how long packets were counted.
  var duration = TimeDelta.zero
  /// Every track of the direction was announced as encrypted.
  var isEncrypted = false

  /// All packets' bits by the time, in kbit/s.
  var bitrate: Double {
    duration.nanoseconds <= 0 ? 0 : Double(bytes) * 8 / duration.inSeconds / 1_000
  }
}

/// What somebody with a wrong key got.
struct WrongKeyMeasurement: Equatable, Sendable {
  /// Packets that reached the client, and frames in them that it refused.
  var packets: UInt64 = 0
  var refusedFrames: UInt64 = 0
  /// Frames that opened or were decoded.
  var decodedFrames: UInt64 = 0
  /// The loudest sample that was played, dB below full scale.
  var peak = -Double.infinity
}

/// What a search of the SFU brought up.
struct AuditMeasurement: Equatable, Sendable {
  /// Frames that have a telling window, of so many logged.
  var searchedFrames = 0
  var loggedFrames = 0
  /// Packets of the audit log, and their bytes.
  var packets = 0
  var packetBytes = 0
  /// Windows of sent frames in them, and frames that those belong to.
  var packetWindows = 0
  var foundFrames = 0
  /// Bytes of the process's memory that were read, and windows found there.
  var memoryBytes = 0
  var memoryWindows = 0

  /// Share of searchable frames found in packets, 0 to 100.
  var foundPercent: Double {
    searchedFrames == 0 ? 0 : 100 * Double(foundFrames) / Double(searchedFrames)
  }
  /// Windows found anywhere.
  var windows: Int { packetWindows + memoryWindows }
}

/// All that a demo measures.
struct DemoMeasurements: Equatable, Sendable {
  /// Seconds that the call was measured.
  var seconds = 0.0
  /// Second participant's connect to its first decoded picture, a value for each set-up; nil for one that never was.
  var setups: [TimeDelta?] = []
  var directions: [DirectionMeasurement] = []
  /// Signal-to-noise of the tone, in dB: the middle 100 ms, and all of it.
  var toneSNR: Double?
  var toneMeanSNR: Double?
  /// Call keys that each side installed; whether each side's differ from the first key and agree.
  var keyEpochs: [Int] = []
  /// The MLS epoch at the end.
  var groupEpoch: UInt64 = 0
  var wrongKey = WrongKeyMeasurement()
  var audit = AuditMeasurement()
  var control = AuditMeasurement()
  /// What stopped the run short; each makes it fail.
  var troubles: [String] = []

  /// The median set-up; nil when one never came to an end.
  var setup: TimeDelta? {
    let done = setups.compactMap { $0 }
    return done.count == setups.count ? Percentile.median(done) : nil
  }
  /// Pictures' one-way latencies, both directions.
  var latencies: [TimeDelta] { directions.flatMap(\.video.latencies) }
  var lossPercent: Double {
    let lost = directions.reduce(0) { $0 + $1.lostPackets }
    let all = directions.reduce(lost) { $0 + $1.packets }
    return all == 0 ? 0 : 100 * Double(lost) / Double(all)
  }
  var concealedPercent: Double {
    directions.map(\.audio.concealedPercent).max() ?? 100
  }
  var meanSSIM: Double? {
    let means = directions.map { Percentile.mean($0.video.ssim) }
    return means.contains { $0 == nil } ? nil : means.compactMap { $0 }.min()
  }
}
