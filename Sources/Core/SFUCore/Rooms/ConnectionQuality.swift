import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeUnits

/// How well a participant is connected, from loss and delay of a few seconds (the E-model of ITU-T G.107, simplified).
struct ConnectionScore: Equatable {
  /// A mean opinion score, 1 to 4.5.
  let score: Float
  let quality: LiveKit.ConnectionQuality

  /// Nothing came at all though something should.
  static let lost = ConnectionScore(score: 1, quality: .lost)

  /// - Parameters:
  ///   - lossPercent: packets that did not arrive, of the worse direction.
  ///   - roundTrip: to the client and back.
  init(lossPercent: Float, roundTrip: TimeDelta) {
    let delay = Float(max(0, roundTrip.wholeMilliseconds)) / 2 + 20
    let delayImpairment = delay / 40 + (delay > 160 ? (delay - 120) / 10 : 0)
    let rating = max(0, min(100, 93.2 - delayImpairment - 2.5 * lossPercent))
    score = max(1, 1 + 0.035 * rating + 0.000007 * rating * (rating - 60) * (100 - rating))
    switch score {
    case 4.1...: quality = .excellent
    case 3.1...: quality = .good
    default: quality = .poor
    }
  }

  private init(score: Float, quality: LiveKit.ConnectionQuality) {
    self.score = score
    self.quality = quality
  }
}

/// What a participant's media did since the last look.
struct QualityMeter {
  private struct Count {
    var received: UInt64
    var lost: Int64
  }
  private var uplink: [SSRC: Count] = [:]
  private(set) var last: ConnectionScore?

  /// Looks again. The score where it changed its quality, nil while it is the same.
  mutating func update(_ participant: Participant, at now: Instant) -> ConnectionScore? {
    var received: UInt64 = 0
    var lost: Int64 = 0
    var streamCount = 0
    for track in participant.uplink.tracks {
      for stream in track.streams {
        streamCount += 1
        let count = Count(
          received: stream.statistics.packetCount, lost: Int64(stream.statistics.cumulativeLost))
        let before = uplink.updateValue(count, forKey: stream.ssrc)
        guard let before, before.received <= count.received else { continue }
        received += count.received - before.received
        lost += max(0, count.lost - before.lost)
      }
    }
    // Streams have ended: what is kept of them goes.
    if uplink.count > streamCount { forgetEnded(participant) }
    let sent = received + UInt64(lost)
    let upLoss = sent == 0 ? 0 : 100 * Float(lost) / Float(sent)
    let reports = participant.downlink.downTracks.lazy.filter { $0.isReady && $0.statistics.packetCount > 0 }
    let downLoss = reports.map { 100 * Float($0.statistics.fractionLost) / 256 }.max() ?? 0
    let score =
      participant.isHeard(at: now)
      ? ConnectionScore(lossPercent: max(upLoss, downLoss), roundTrip: participant.measuredRoundTrip ?? .zero)
      : .lost
    let isNews = score.quality != last?.quality
    last = score
    participant.context.totals.note(
      score, lossPercent: max(upLoss, downLoss), roundTrip: participant.measuredRoundTrip)
    return isNews ? score : nil
  }

  private mutating func forgetEnded(_ participant: Participant) {
    for ssrc in Array(uplink.keys)
    where !participant.uplink.tracks.contains(where: { $0.streams.contains { $0.ssrc == ssrc } }) {
      uplink[ssrc] = nil
    }
  }
}

extension Participant {
  private static let qualityInterval = TimeDelta.seconds(5)

  func updateQuality(at now: Instant) {
    guard now >= nextQualityAt else { return wake(at: nextQualityAt) }
    nextQualityAt = now + Self.qualityInterval
    wake(at: nextQualityAt)
    guard quality.update(self, at: now) != nil else { return }
    room.broadcastQuality(of: self)
  }

  var qualityInfo: LiveKit.ConnectionQualityInfo {
    .with {
      $0.participantSid = sid
      $0.quality = quality.last?.quality ?? .excellent
      $0.score = quality.last?.score ?? 0
    }
  }
}

extension Room {
  /// Tells the participant itself and those who receive from it.
  func broadcastQuality(of participant: Participant) {
    let message = LiveKit.SignalResponse(
      .connectionQuality(.with { $0.updates = [participant.qualityInfo] }))
    let bytes = message.serialized()
    for member in participants {
      guard member === participant || member.downlink.receives(participant) else { continue }
      member.send(bytes)
    }
  }
}

extension Downlink {
  /// True when it gets a track of the participant's, of that kind where one is given.
  func receives(_ participant: Participant, _ kind: TrackKind? = nil) -> Bool {
    downTracks.contains { $0.track.publisher === participant && (kind == nil || $0.track.kind == kind) }
  }
}
