import PalbeDTLS
import PalbeFrameEncryption
import PalbeSFUCore
import PalbeUnits

@testable import PalbeCallCore

/// What a party got of one remote track.
struct TrackLog {
  var identity: String
  var kind: MediaKind
  var isEncrypted: Bool
  var subscribedAt: Instant
  var frames: [SyntheticFrame] = []
  var arrivals: [Instant] = []
  /// Frames without their reference, or that nobody made.
  var undecodable = 0
  var pulls: (packets: Int, recovered: Int, concealed: Int, idle: Int) = (0, 0, 0, 0)
  var isOver = false

  var numbers: [UInt32] { frames.map(\.number) }
}

/// One client with a source that captures 30 frames and 50 audio packets a second.
final class Party {
  let identity: String
  let address: SocketAddress
  let connection: ConnectionID
  var session: CallSession
  var events: [(at: Instant, event: CallEvent)] = []
  var tracks: [RemoteTrackID: TrackLog] = [:]
  /// Every signaling message it sent.
  var sentSignals: [[UInt8]] = []

  var capturesVideo = false
  var capturesAudio = false
  var nextVideo = Instant.zero
  var nextAudio = Instant.zero
  var nextPull = Instant.zero
  var wantsKeyFrame = true
  var videoNumber: UInt32 = 0
  var audioNumber: UInt32 = 0
  var sentVideo: [UInt32] = []
  var sentAudio: [UInt32] = []
  var sendErrors: [SendError] = []
  var keyFrameRequests = 0
  var videoByteCount = 4_000
  var isGone = false

  init(
    _ configuration: CallConfiguration, address: SocketAddress, connection: ConnectionID, seed: UInt64,
    dtls: DTLSIdentity, ledger: CallKeyLedger = CallKeyLedger(), at now: Instant
  ) throws {
    identity = configuration.identity
    self.address = address
    self.connection = connection
    session = try CallSession(
      configuration: configuration, identity: dtls, localAddresses: [address], keys: ledger,
      random: RandomSource(seed: seed), now: now, unixNanoseconds: World.epoch + now.nanoseconds)
  }

  /// Gets every frame right after it was sealed.
  var onSealed: (FrameCodec, [UInt8]) -> Void = { _, _ in }

  private func send(_ bytes: [UInt8], on track: LocalTrack, rate: Int64, at now: Instant) throws(SendError) {
    try session.send(bytes.span, on: track, timestamp: ticks(now, rate), at: now)
    guard !session.lastSealed.isEmpty else { return }
    onSealed(track == .camera ? .vp8 : .opus, [UInt8](session.frameBuffer[session.lastSealed]))
  }

  /// Makes what is due. The clocks run on while nothing can be sent.
  func capture(at now: Instant) {
    if capturesVideo, nextVideo <= now {
      nextVideo = max(nextVideo, now - .milliseconds(33)) + .microseconds(33_333)
      let frame = SyntheticFrame(isKeyFrame: wantsKeyFrame, number: videoNumber, sentAt: now)
      let bytes = frame.video(byteCount: frame.isKeyFrame ? videoByteCount * 4 : videoByteCount)
      do {
        try send(bytes, on: .camera, rate: 90_000, at: now)
        sentVideo.append(videoNumber)
        videoNumber += 1
        wantsKeyFrame = false
      } catch { sendErrors.append(error) }
    }
    if capturesAudio, nextAudio <= now {
      nextAudio = max(nextAudio, now - .milliseconds(20)) + .milliseconds(20)
      let bytes = SyntheticFrame(number: audioNumber, sentAt: now).audio(byteCount: 80)
      do {
        try send(bytes, on: .microphone, rate: 48_000, at: now)
        sentAudio.append(audioNumber)
        audioNumber += 1
      } catch { sendErrors.append(error) }
    }
  }

  private func ticks(_ now: Instant, _ rate: Int64) -> RTPTimestamp {
    RTPTimestamp(UInt32(truncatingIfNeeded: now.nanoseconds / 1_000 * rate / 1_000_000))
  }

  /// Plays 20 ms of every audio track.
  func play(at now: Instant) {
    for (id, log) in tracks where log.kind == .audio && !log.isOver {
      switch session.pullAudio(id, at: now) {
      case .packet(let packet):
        tracks[id]?.pulls.packets += 1
        guard let frame = SyntheticFrame(audio: packet) else {
          tracks[id]?.undecodable += 1
          continue
        }
        tracks[id]?.frames.append(frame)
        tracks[id]?.arrivals.append(now)
      case .forwardErrorCorrection: tracks[id]?.pulls.recovered += 1
      case .conceal: tracks[id]?.pulls.concealed += 1
      case .idle: tracks[id]?.pulls.idle += 1
      }
    }
  }

  func takeEvents(at now: Instant) {
    while let event = session.pollEvent() {
      events.append((now, event))
      switch event {
      case .trackSubscribed(let id, let identity, let kind, let isEncrypted):
        tracks[id] = TrackLog(identity: identity, kind: kind, isEncrypted: isEncrypted, subscribedAt: now)
      case .trackUnsubscribed(let id): tracks[id]?.isOver = true
      case .keyFrameRequested(.camera):
        wantsKeyFrame = true
        keyFrameRequests += 1
      default: break
      }
    }
    while let frame = session.pollVideoFrame(at: now) {
      guard let made = SyntheticFrame(video: frame.bytes), made.isKeyFrame == frame.isKeyFrame else {
        tracks[frame.track]?.undecodable += 1
        continue
      }
      let last = tracks[frame.track]?.frames.last?.number
      if !made.isKeyFrame, last.map({ $0 + 1 }) != made.number { tracks[frame.track]?.undecodable += 1 }
      tracks[frame.track]?.frames.append(made)
      tracks[frame.track]?.arrivals.append(now)
    }
  }

  func log(_ identity: String, _ kind: MediaKind) -> TrackLog? {
    tracks.values.filter { $0.identity == identity && $0.kind == kind }.max {
      $0.subscribedAt < $1.subscribedAt
    }
  }

  func has(_ event: CallEvent) -> Bool { events.contains { $0.event == event } }

  func first(where matches: (CallEvent) -> Bool) -> Instant? { events.first { matches($0.event) }?.at }

  var isConnected: Bool { has(.connected) }
}
