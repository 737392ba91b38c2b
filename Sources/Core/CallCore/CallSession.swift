import PalbeCongestion
public import PalbeDTLS
public import PalbeFrameEncryption
import PalbeICE
import PalbeLiveKit
import PalbeRTP
public import PalbeUnits

/// Why a session could not be made.
public enum CallSetupError: Error, Equatable, Sendable {
  /// The room, the call or the identity is not usable.
  case keys(FrameKeyError)
  /// There is no local address to send from.
  case noLocalAddress
}

/// The client's side of one call, without sockets, clocks or codecs: encoded frames in and out.
///
/// ## Overview
///
///     joining ──join──▶ joined ──ICE and DTLS up──▶ connected
///        │                │                            │
///        └────────────────┴── leave, loss, refusal ────┴──▶ ended(reason)
///
/// ## Function
///
/// The shell opens the WebSocket with `joinRequest` in its URL, gives every binary message to
/// `handleSignal` and every datagram of its one UDP socket to `receive`. After each call that takes a time
/// it drains `pollSignal`, `pollTransmit`, `pollEvent` and `pollVideoFrame`, and it calls `handleTimeout`
/// once `nextDeadline` has come, which may be at once. A datagram for a TCP address goes over a connection to there, framed
/// (RFC 4571); `disconnected` tells of its end. Per remote audio track it calls `pullAudio` whenever
/// it needs 20 ms to play.
///
/// Set-up is one round trip of signaling: tracks and offer ride along in the join request, checks start
/// with the answer, the handshake with the first pair that works.
///
/// ## Implementation
///
/// `SignalLink` and `Roster` are the signaling, `Negotiation` the offers and answers, `Transport` the path,
/// `MediaSender` a track of ours, `RemoteTrack` one of another's with `AudioJitterBuffer` or
/// `VideoReceiver`. Owned by one thread; the classes inside are never handed out, so moving the session to
/// another thread moves them along.
public struct CallSession: ~Copyable, @unchecked Sendable {
  enum Phase: Hashable, Sendable {
    case joining, joined, connected
    case ended(CallEndReason)
  }

  /// What a packet of that SSRC is.
  struct Route {
    var track: RemoteTrack
    var isRepair: Bool
  }

  static let eventLimit = 1_024
  static let controlLimit = 256
  static let videoFrameLimit = 120
  static let endedTrackLimit = 64
  static let frameLimit = 1 << 20
  static let packetByteCount = 1_500

  /// The serialized `WrappedJoinRequest`, not compressed; the shell base64url-encodes it into
  /// `/rtc/v1?join_request=`.
  public let joinRequest: [UInt8]

  let configuration: CallConfiguration
  let start: Instant
  let startUnixNanoseconds: Int64
  let candidates: [ICECandidate]
  let senders: [MediaSender]
  private let microphone: MediaSender?
  private let camera: MediaSender?
  /// Reports are sent under it by a listener.
  let listenerSSRC: SSRC

  var phase = Phase.joining
  var link: SignalLink
  var roster: Roster
  var speakers = Speakers()
  var negotiation: Negotiation
  var transport: Transport
  var protection: FrameProtection

  /// What the last answer sends us, by mid.
  var receiving: [String: ReceivingParameters] = [:]
  /// In the order of their numbers.
  var tracks: [RemoteTrack] = []
  var routes: [SSRC: Route] = [:]
  var nextTrack = 0
  var endedTracks: [RemoteTrackStatistics] = []
  var waiting = WaitingMarks()

  var events: [CallEvent] = []
  var videoFrames: [ReceivedVideoFrame] = []
  /// RTCP in the clear.
  var control: [[UInt8]] = []
  var queue = PacketQueue()
  var feedback = TransportFeedbackRecorder()
  var nextReport: Instant?
  var transportSequence: UInt16 = 0
  var audioLevel: AudioLevel?
  var frameBuffer: [UInt8] = []
  /// Where the frame that was sealed last lies in `frameBuffer`.
  var lastSealed = 0..<0
  var packetBuffer = [UInt8](repeating: 0, count: packetByteCount)
  var counts = CallStatistics()

  /// A session that has not joined yet.
  ///
  /// - Parameters:
  ///   - identity: the certificate that DTLS shows.
  ///   - localAddresses: the addresses of the shell's one UDP socket, best first; host candidates.
  ///   - keys: what the process remembers of its call keys.
  ///   - random: unpredictable outside tests.
  ///   - unixNanoseconds: the wall clock at `now`.
  public init(
    configuration: CallConfiguration, identity: DTLSIdentity, localAddresses: [SocketAddress],
    keys ledger: CallKeyLedger, random: RandomSource, now: Instant, unixNanoseconds: Int64
  ) throws(CallSetupError) {
    guard !localAddresses.isEmpty else { throw .noLocalAddress }
    var random = random
    var protection: FrameProtection
    do throws(FrameKeyError) {
      protection = try FrameProtection(configuration, ledger: ledger, random: random)
    } catch { throw .keys(error) }
    let senders = LocalTrack.allCases.filter { configuration.publishes.contains($0) }.map { track in
      MediaSender(
        track, maximumDatagramByteCount: configuration.datagramByteCount, using: &random)
    }
    for sender in senders {
      do throws(FrameKeyError) {
        sender.sealer = try protection.makeSender(sender.track, ssrc: sender.ssrc)
      } catch { throw .keys(error) }
    }
    let credentials = ICECredentials(using: &random)
    let addresses = localAddresses.prefix(8).enumerated()
    let candidates =
      addresses.map { ICECandidate(.host, $1, localPreference: UInt16.max - UInt16($0)) }
      + addresses.map { ICECandidate.active($1, localPreference: UInt16.max - UInt16($0)) }
    let expected = max(0, configuration.expectedRemoteParticipants)
    var negotiation = Negotiation(
      builder: OfferBuilder(
        sessionID: random.next() >> 2, credentials: credentials, fingerprint: identity.fingerprint.bytes,
        candidates: candidates, announcesAudioLevel: configuration.sendsAudioLevel),
      publishes: senders, audios: expected, videos: expected)
    joinRequest = JoinRequestBuilder.make(
      configuration: configuration, senders: senders, offer: negotiation.pollOffer(senders: senders))
    self.configuration = configuration
    self.candidates = candidates
    self.senders = senders
    microphone = senders.first { $0.track == .microphone }
    camera = senders.first { $0.track == .camera }
    listenerSSRC = SSRC(UInt32(truncatingIfNeeded: random.next()) | 1)
    start = now
    startUnixNanoseconds = unixNanoseconds
    link = SignalLink(at: now)
    roster = Roster(localIdentity: configuration.identity)
    transport = Transport(
      identity: identity, local: credentials, candidates: candidates, mtu: configuration.datagramByteCount,
      random: random, at: now)
    transportSequence = UInt16(truncatingIfNeeded: random.next())
    self.negotiation = negotiation
    self.protection = protection
  }

  /// What happened, in order.
  public mutating func pollEvent() -> CallEvent? { events.isEmpty ? nil : events.removeFirst() }

  /// Makes a call key readable, and sends under it as `sending` says. Frames that waited for it are then
  /// polled in order. Without end-to-end encryption nothing happens.
  public mutating func installKey(_ key: Span<UInt8>, sending: SendSwitch, at now: Instant)
    throws(FrameKeyError)
  {
    try protection.install(key, sending: sending, at: now)
    takeReleased(at: now)
  }

  /// Everybody has the newest key: send under it.
  public mutating func confirmSendKey(at now: Instant) { protection.confirmSendKey(at: now) }

  /// Puts a key of LiveKit's frame format into a slot: for everybody, or for one participant alone (our own identity's is sent
  /// under). In a call of another format nothing happens.
  public mutating func setLiveKitKey(
    _ key: consuming LiveKitKey, index: Int = 0, identity: String? = nil
  ) throws(FrameKeyError) {
    try protection.setLiveKitKey(key, index: index, identity: identity)
  }

  /// Sends under the next step of the key in a slot of LiveKit's frame format; receivers follow.
  public mutating func ratchetLiveKitKey(index: Int = 0) throws(FrameKeyError) {
    try protection.ratchet(index: index)
  }

  /// Sends under the key in that slot of LiveKit's frame format; slot 0 unless told otherwise.
  public mutating func setLiveKitSendIndex(_ index: Int) { protection.setSendIndex(index) }

  /// The level that goes out with the next microphone packets when `sendsAudioLevel` is on: 0 (loudest) to
  /// 127 (silence), in -dBov (RFC 6464); nil: none.
  public mutating func setAudioLevel(_ level: UInt8?, isVoice: Bool = true) {
    audioLevel =
      configuration.sendsAudioLevel ? level.map { AudioLevel(isVoice: isVoice, level: min($0, 127)) } : nil
  }

  /// A snapshot of the counters; tracks that ended are among them, the latest 64.
  public var statistics: CallStatistics {
    var result = counts
    result.roundTrip = roundTrip
    for sender in senders {
      result.sentPackets += sender.statistics.packetCount
      result.sentBytes += sender.statistics.byteCount
    }
    if let frames = protection.statistics {
      result.sealedFrames = frames.sealedFrames
      result.keyEpochs = frames.keyEpochs
    }
    result.remoteTracks = endedTracks + tracks.map(\.statistics)
    return result
  }

  // MARK: Shared by the parts

  var isEnded: Bool { if case .ended = phase { true } else { false } }

  var roundTrip: TimeDelta? { senders.lazy.compactMap(\.statistics.roundTrip).first }

  func unixNanoseconds(at now: Instant) -> Int64 {
    (Instant(nanoseconds: startUnixNanoseconds) + (now - start)).nanoseconds
  }

  func sender(_ track: LocalTrack) -> MediaSender? { track == .camera ? camera : microphone }

  mutating func report(_ event: CallEvent) {
    if events.count < Self.eventLimit { events.append(event) }
  }

  /// The session is over; what is queued still goes out.
  mutating func end(_ reason: CallEndReason, at now: Instant) {
    guard !isEnded else { return }
    phase = .ended(reason)
    report(.disconnected(reason))
    link.close()
    sayGoodbye()
    transport.close(at: now)
  }
}

extension CallConfiguration {
  /// The largest UDP payload, within what packets need and buffers hold.
  var datagramByteCount: Int { min(max(maximumDatagramByteCount, 576), 1_400) }
}
