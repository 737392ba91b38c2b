import PalbeCallCore
import PalbeEventLoop
import PalbeOpus
import PalbeUnits
import Synchronization

/// The thread of microphone and playout.
///
/// Every 20 ms it asks the network thread for each remote track's next packet, and while that is answered takes and encodes
/// the microphone. Decoding and playing follow as soon as the answer is there. A tick that comes late is made up at once.
struct SoundLoop: ~Copyable {
  private static let frameLength = Opus.samplesPerFrame
  private static let ticksPerSecond = Opus.sampleRate / Opus.samplesPerFrame
  /// A thread that slept through more ticks leaves them out.
  private static let lateTickLimit = 10

  private let threads: CallThreads
  private var poller: Poller
  private var ticks: Ticks?
  private var source: (any AudioSource)?
  private var encoder: OpusEncoder
  private let timestampOffset: RTPTimestamp
  private var samples = [Int16](repeating: 0, count: frameLength)
  private var packet: [UInt8] = []
  private var tracks: [RemoteTrackID: PlayedTrack] = [:]
  private var messages: [CallThreads.SoundMessage] = []

  /// Runs until the call ends; the body of the thread.
  static func run(_ threads: CallThreads) {
    do {
      var loop = try SoundLoop(threads)
      try loop.run()
    } catch {
      threads.leave(because: .system("the sound thread failed: \(error)"))
    }
  }

  private init(_ threads: CallThreads) throws {
    let poller = try Poller()
    try poller.add(threads.sound.wakeUp.fileDescriptor, token: 0)
    let encoder = try OpusEncoder(OpusConfiguration(bitrate: threads.configuration.audioBitrate))
    self.threads = threads
    self.poller = poller
    self.encoder = encoder
    source = threads.configuration.audioSource
    var random = SystemRandom.source()
    timestampOffset = RTPTimestamp(UInt32(truncatingIfNeeded: random.next()))
    packet.reserveCapacity(Opus.maximumFrameByteCount)
  }

  private mutating func run() throws {
    while true {
      let count = try poller.wait(until: ticks?.deadline)
      if threads.workersEnd.load(ordering: .acquiring) { return }
      if count > 0 { takeMessages() }
      while let deadline = ticks?.deadline, MonotonicClock.now() >= deadline { try tick() }
    }
  }

  private mutating func tick() throws {
    ticks?.skip(at: MonotonicClock.now(), ifBehindBy: Self.lateTickLimit)
    let index = ticks?.index ?? 0
    ticks?.advance()
    // A track with a whole frame left from a longer packet needs none.
    let due = tracks.compactMap { $0.value.isDue ? $0.key : nil }
    if !due.isEmpty { threads.network.send(.pullAudio(due)) }
    for (track, state) in tracks where !state.isDue { play(track, state) }
    try capture(index)
  }

  private mutating func capture(_ index: Int) throws {
    guard source != nil else { return }
    source?.next(into: &samples)
    // A muted microphone keeps its time.
    guard !threads.switches.isMuted(.microphone) else { return }
    try Self.encode(samples, with: &encoder, into: &packet)
    let timestamp = timestampOffset + index * Self.frameLength
    threads.hooks.onEncodedFrame?(.microphone, packet, timestamp)
    threads.network.send(.frame(.microphone, Array(packet), timestamp))
  }

  private static func encode(
    _ samples: [Int16], with encoder: inout OpusEncoder, into packet: inout [UInt8]
  ) throws(OpusError) {
    packet.removeAll(keepingCapacity: true)
    try packet.append(addingCapacity: Opus.maximumFrameByteCount) { output throws(OpusError) in
      _ = try encoder.encode(samples.span, into: &output)
    }
  }

  private mutating func takeMessages() {
    threads.sound.drain(into: &messages)
    for message in messages {
      switch message {
      case .begin:
        if ticks == nil { ticks = Ticks(from: MonotonicClock.now(), perSecond: Self.ticksPerSecond) }
      case .trackAdded(let track):
        // Without a decoder the track stays silent; nothing else suffers.
        if threads.hooks.onPlayedAudio != nil, let state = try? PlayedTrack() { tracks[track] = state }
      case .trackRemoved(let track): tracks[track] = nil
      case .pulled(let pulled):
        for (track, pull) in pulled {
          guard let state = tracks[track] else { continue }
          state.take(pull)
          if state.isShort {
            // A packet of less than 20 ms: the next one completes the frame.
            threads.network.send(.pullAudio([track]))
          } else {
            play(track, state)
          }
        }
      }
    }
  }

  private func play(_ track: RemoteTrackID, _ state: PlayedTrack) {
    threads.hooks.onPlayedAudio?(track, state.nextFrame(), state.lastPull, MonotonicClock.now())
  }
}

/// A remote track's decoder and what it has decoded ahead. Belongs to the sound thread.
private final class PlayedTrack {
  private var decoder: OpusDecoder
  private var decoded: [Int16] = []
  private(set) var lastPull = AudioPull.idle

  init() throws(OpusError) { decoder = try OpusDecoder() }

  /// The next frame needs another packet.
  var isDue: Bool { decoded.count < Opus.samplesPerFrame }

  /// The last pull gave a packet, and still there is less than a frame.
  var isShort: Bool {
    if case .packet = lastPull { isDue && !decoded.isEmpty } else { false }
  }

  /// Decodes what a pull gave. A packet that breaks the format counts as lost.
  func take(_ pull: AudioPull) {
    lastPull = pull
    switch pull {
    case .packet(let bytes):
      guard
        decode(
          room: Opus.maximumSamplesPerPacket,
          { decoder, output throws(OpusError) in
            try decoder.decode(bytes.span, into: &output)
          })
      else { return conceal() }
    case .forwardErrorCorrection(let next):
      guard
        decode(
          room: Opus.samplesPerFrame,
          { decoder, output throws(OpusError) in
            try decoder.decodeFEC(from: next.span, samples: Opus.samplesPerFrame, into: &output)
          })
      else { return conceal() }
    case .conceal: conceal()
    case .idle: break
    }
  }

  private func conceal() {
    _ = decode(room: Opus.samplesPerFrame) { decoder, output throws(OpusError) in
      try decoder.conceal(samples: Opus.samplesPerFrame, into: &output)
    }
  }

  private func decode(
    room: Int, _ body: (inout OpusDecoder, inout OutputSpan<Int16>) throws(OpusError) -> Int
  ) -> Bool {
    do throws(OpusError) {
      try decoded.append(addingCapacity: room) { output throws(OpusError) in
        _ = try body(&decoder, &output)
      }
      return true
    } catch {
      return false
    }
  }

  /// 20 ms; silence where nothing was decoded.
  func nextFrame() -> [Int16] {
    let count = min(decoded.count, Opus.samplesPerFrame)
    var frame = Array(decoded[..<count])
    decoded.removeFirst(count)
    frame.append(contentsOf: repeatElement(0, count: Opus.samplesPerFrame - count))
    return frame
  }
}
