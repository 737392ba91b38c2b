import PalbeCallCore
import PalbeCrypto
import PalbeDTLS
import PalbeFrameEncryption
import PalbeICE
import PalbeLiveKit
import PalbeProtobuf
import PalbeRTP
import PalbeSDP
import PalbeSRTP
import PalbeUnits
import PalbeWire

extension FuzzTarget {
  /// Messages of a server that the client has joined: each is a length in two bytes, then the message.
  static let callSignal = FuzzTarget(name: "call-signal") { bytes in
    guard let call = FuzzedCall() else { return }
    call.join()
    for message in FuzzedCall.pieces(of: bytes, limit: 32) {
      call.signal(message)
      call.advance(by: .milliseconds(300))
    }
  }

  /// What a connected server sends: each piece is a length in two bytes, one that says how, then the bytes. They go as
  /// they are, or as RTP or RTCP under the session's keys, which is what a hostile server can do.
  static let callDatagram = FuzzTarget(name: "call-datagram") { bytes in
    guard let call = FuzzedCall() else { return }
    call.join()
    call.answer()
    precondition(call.isSecure, "the call does not come up")
    for piece in FuzzedCall.pieces(of: bytes, limit: 64) {
      guard let first = piece.first else { continue }
      if first & 1 == 0 {
        call.deliver(Array(piece.dropFirst()))
      } else {
        call.send(Array(piece.dropFirst()))
      }
      if first & 2 != 0 { call.advance(by: .milliseconds(20)) }
    }
    call.advance(by: .seconds(1))
  }
}

/// A client and the least server that it connects to, with nothing between them.
private final class FuzzedCall {
  private static let identities: (client: DTLSIdentity, server: DTLSIdentity)? = {
    var random = RandomSource(seed: 1)
    guard let client = try? DTLSIdentity(nowUnix: 1_760_000_000, using: &random),
      let server = try? DTLSIdentity(nowUnix: 1_760_000_000, using: &random)
    else { return nil }
    return (client, server)
  }()

  private let address = SocketAddress(ipv4: 192, 0, 2, 1, port: 7_882)
  private let client = SocketAddress(ipv4: 192, 0, 2, 2, port: 5_000)
  private let fingerprint: [UInt8]
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var session: CallSession
  private var lite: ICELiteAgent
  private var dtls: DTLSEndpoint
  private var srtp: SRTPSession?
  private var audio: [RemoteTrackID] = []

  init?() {
    var random = RandomSource(seed: 2)
    var configuration = CallConfiguration(
      room: "room", identity: "ada", publishes: [.microphone, .camera], encryption: .sframe)
    configuration.expectedRemoteParticipants = 1
    guard let (own, server) = Self.identities, let dtls = try? DTLSEndpoint(role: .server, identity: server),
      let session = try? CallSession(
        configuration: configuration, identity: own, localAddresses: [client], keys: CallKeyLedger(),
        random: RandomSource(seed: 3), now: now, unixNanoseconds: 1_760_000_000_000_000_000)
    else { return nil }
    self.session = session
    self.dtls = dtls
    fingerprint = server.fingerprint.bytes
    lite = ICELiteAgent(local: ICECredentials(using: &random))
    let key = [UInt8](0..<32)
    try? self.session.installKey(key.span, sending: .now, at: now)
  }

  static func pieces(of bytes: [UInt8], limit: Int) -> [[UInt8]] {
    var rest = bytes[...]
    var pieces: [[UInt8]] = []
    while pieces.count < limit, rest.count >= 2 {
      let length = min(Int(rest.removeFirst()) << 8 | Int(rest.removeFirst()), rest.count, 1_400)
      pieces.append(Array(rest.prefix(length)))
      rest = rest.dropFirst(length)
    }
    return pieces
  }

  var isSecure: Bool { srtp != nil }

  func join() {
    signal(
      .join(
        .with {
          $0.participant = .with { $0.sid = "PA_ada" }
          $0.otherParticipants = [
            .with {
              $0.sid = "PA_bob"
              $0.identity = "bob"
              $0.state = .active
              $0.tracks = [
                Self.track("TR_audio", .audio, .microphone), Self.track("TR_video", .video, .camera),
              ]
            }
          ]
        }))
  }

  private static func track(
    _ sid: String, _ type: LiveKit.TrackType, _ source: LiveKit.TrackSource
  ) -> LiveKit.TrackInfo {
    .with {
      $0.sid = sid
      $0.type = type
      $0.source = source
      $0.encryption = .custom
    }
  }

  func answer() {
    guard let wrapped = try? LiveKit.WrappedJoinRequest(serialized: session.joinRequest),
      let request = try? LiveKit.JoinRequest(serialized: wrapped.joinRequest),
      let offer = try? SessionDescription(parsing: request.publisherOffer?.sdp ?? "")
    else { return }
    let media = offer.media.map { section in
      let sends = section.direction == .recvonly
      var answer = section.answer(direction: sends ? .sendonly : .recvonly)
      answer.set(
        TransportParameters(
          iceUsernameFragment: lite.local.usernameFragment, icePassword: lite.local.password,
          fingerprint: Fingerprint(sha256: fingerprint), setup: .passive))
      answer.candidates = [ICECandidate(.host, address).attribute]
      let isAudio = section.kind == .audio
      if sends {
        answer.setSending(
          MediaStreamID(stream: "PA_bob", track: isAudio ? "TR_audio" : "TR_video"),
          ssrc: SSRC(isAudio ? 1 : 2), rtx: isAudio ? nil : SSRC(3), cname: "x")
      }
      return answer
    }
    let origin = SDPOrigin(sessionID: 1, version: 1)
    signal(
      .answer(
        .with {
          $0.type = "answer"
          $0.sdp =
            SessionDescription(answering: offer, origin: origin, isICELite: true, media: media).description
        }))
  }

  func signal(_ message: LiveKit.SignalResponse.Message) {
    signal(LiveKit.SignalResponse(message).serialized())
  }

  func signal(_ bytes: [UInt8]) {
    session.handleSignal(bytes.span, at: now)
    settle()
  }

  /// Protects what looks like RTP or RTCP, and delivers it.
  func send(_ packet: [UInt8]) {
    var bytes = packet + [UInt8](repeating: 0, count: 32)
    var span = bytes.mutableSpan
    let count =
      isRTCP(packet.span)
      ? try? srtp?.protectRTCP(&span, count: packet.count) : try? srtp?.protectRTP(&span, count: packet.count)
    guard let count else { return }
    deliver(Array(bytes[..<count]))
  }

  func deliver(_ datagram: [UInt8]) {
    var bytes = datagram
    var span = bytes.mutableSpan
    session.receive(&span, count: datagram.count, from: address, at: now)
    settle()
  }

  func advance(by delta: TimeDelta) {
    let end = now + delta
    var steps = 0
    while let deadline = session.nextDeadline, deadline <= end, steps < 1_000 {
      now = max(now, deadline)
      session.handleTimeout(at: now)
      settle()
      steps += 1
    }
    precondition(steps < 1_000, "deadlines are not met")
    now = max(now, end)
    for track in audio { _ = session.pullAudio(track, at: now) }
  }

  private func settle() {
    while session.pollSignal() != nil {}
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = session.pollTransmit(into: &span, at: now) else { break }
      receive(Array(buffer[..<transmit.count]))
    }
    while let event = session.pollEvent() {
      if case .trackSubscribed(let id, _, .audio, _) = event { audio.append(id) }
    }
    while session.pollVideoFrame(at: now) != nil {}
  }

  private func receive(_ datagram: [UInt8]) {
    switch PacketKind(datagram.span) {
    case .stun:
      var answer = ByteWriter(capacity: 128)
      if case .answered = lite.handle(datagram.span, from: client, at: now, answer: &answer) {
        deliver(answer.bytes)
      }
    case .dtls:
      try? dtls.handle(datagram.span, at: now)
      if srtp == nil, let keys = try? dtls.exportKeyingMaterial(),
        let profile = SRTPProfile(rawValue: keys.profile)
      {
        srtp = try? SRTPSession(
          profile: profile, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
          remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span)
      }
      while let reply = dtls.pollTransmit() { deliver(reply) }
    default: break
    }
  }
}
