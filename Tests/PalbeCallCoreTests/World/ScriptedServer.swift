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

/// A server that does exactly what a test says, right or wrong, with one client and no network between them.
final class ScriptedServer {
  struct Track {
    var sid: String
    var ssrc: SSRC?
    var repairSSRC: SSRC?
    var participantSid = "PA_other"
  }

  let address = SocketAddress(ipv4: 192, 0, 2, 1, port: 7882)
  let client = SocketAddress(ipv4: 192, 0, 2, 2, port: 5000)
  var now = Instant(nanoseconds: 1_000_000_000)
  var session: CallSession
  let request: LiveKit.JoinRequest
  private(set) var events: [CallEvent] = []
  private(set) var videoFrames: [ReceivedVideoFrame] = []
  private(set) var signals: [LiveKit.SignalRequest.Message] = []
  /// What the client sent, opened.
  private(set) var media: [[UInt8]] = []
  private(set) var control: [RTCPPacket] = []
  private(set) var protectedMedia: [[UInt8]] = []
  /// How often a deadline was not met by meeting it: must stay zero.
  private(set) var spins = 0
  private var lite: ICELiteAgent
  private let identity: DTLSIdentity
  private var dtls: DTLSEndpoint
  private var srtp: SRTPSession?
  private let isActive: Bool
  /// The fingerprint that the answer shows; the right one unless a test wants another.
  var shownFingerprint: [UInt8]

  init(
    publishes: Set<LocalTrack> = [.microphone, .camera], encryption: CallEncryption = .none,
    isActive: Bool = false
  ) throws {
    var random = RandomSource(seed: 5)
    identity = try DTLSIdentity(nowUnix: 1_700_000_000, using: &random)
    shownFingerprint = identity.fingerprint.bytes
    lite = ICELiteAgent(local: ICECredentials(using: &random))
    dtls = try DTLSEndpoint(role: isActive ? .client : .server, identity: identity)
    self.isActive = isActive
    let own = try DTLSIdentity(nowUnix: 1_700_000_000, using: &random)
    session = try CallSession(
      configuration: CallConfiguration(
        room: "room", identity: "ada", publishes: publishes, encryption: encryption),
      identity: own, localAddresses: [client], keys: CallKeyLedger(), random: RandomSource(seed: 6), now: now,
      unixNanoseconds: 1_700_000_000_000_000_000)
    let wrapped = try LiveKit.WrappedJoinRequest(serialized: session.joinRequest)
    request = try LiveKit.JoinRequest(serialized: wrapped.joinRequest)
  }

  /// Join, one other participant with an audio and a video track in the first sections, and an answer.
  func bringUp(_ participant: LiveKit.ParticipantInfo? = nil, tracks: [String: Track]? = nil) throws {
    send(.join(Self.joinResponse(others: [participant ?? Self.other()])))
    let offer = request.publisherOffer ?? LiveKit.SessionDescription()
    send(.answer(try answer(to: offer, tracks: tracks ?? Self.tracks(in: offer))))
    settle()
  }

  static func joinResponse(others: [LiveKit.ParticipantInfo]) -> LiveKit.JoinResponse {
    .with {
      $0.participant = .with {
        $0.sid = "PA_ada"
        $0.identity = "ada"
      }
      $0.pingInterval = 5
      $0.pingTimeout = 15
      $0.otherParticipants = others
    }
  }

  static func other(
    encryption: LiveKit.EncryptionType = .none, version: UInt32 = 1
  ) -> LiveKit.ParticipantInfo {
    .with {
      $0.sid = "PA_other"
      $0.identity = "bob"
      $0.state = .active
      $0.version = version
      $0.tracks = [
        .with {
          $0.sid = "TR_audio"
          $0.type = .audio
          $0.source = .microphone
          $0.encryption = encryption
        },
        .with {
          $0.sid = "TR_video"
          $0.type = .video
          $0.source = .camera
          $0.encryption = encryption
        },
      ]
    }
  }

  /// The two tracks in the first receiving sections.
  static func tracks(in offer: LiveKit.SessionDescription) throws -> [String: Track] {
    let description = try SessionDescription(parsing: offer.sdp)
    var tracks: [String: Track] = [:]
    if let mid = description.media.first(where: { $0.kind == .audio && $0.direction == .recvonly })?.mid {
      tracks[mid] = Track(sid: "TR_audio", ssrc: SSRC(1_000))
    }
    if let mid = description.media.first(where: { $0.kind == .video && $0.direction == .recvonly })?.mid {
      tracks[mid] = Track(sid: "TR_video", ssrc: SSRC(2_000), repairSSRC: SSRC(2_001))
    }
    return tracks
  }

  func answer(
    to offer: LiveKit.SessionDescription, tracks: [String: Track]
  ) throws -> LiveKit.SessionDescription {
    let description = try SessionDescription(parsing: offer.sdp)
    let transport = TransportParameters(
      iceUsernameFragment: lite.local.usernameFragment, icePassword: lite.local.password,
      fingerprint: Fingerprint(sha256: shownFingerprint), setup: isActive ? .active : .passive)
    var sids: [String: String] = [:]
    var media: [MediaSection] = []
    for (index, section) in description.media.enumerated() {
      let mid = section.mid ?? ""
      let track = tracks[mid]
      let direction: MediaDirection =
        section.direction == .sendonly ? .recvonly : track == nil ? .inactive : .sendonly
      var answer = section.answer(direction: direction)
      answer.set(transport)
      if index == 0 { answer.candidates = [ICECandidate(.host, address).attribute] }
      if let track {
        sids[mid] = track.sid
        let msid = MediaStreamID(stream: "\(track.participantSid)|\(track.sid)", track: track.sid)
        if let ssrc = track.ssrc {
          answer.setSending(msid, ssrc: ssrc, rtx: track.repairSSRC, cname: "x")
        } else {
          answer.msids = [msid]
        }
      }
      media.append(answer)
    }
    return .with {
      $0.type = "answer"
      $0.sdp =
        SessionDescription(
          answering: description, origin: SDPOrigin(sessionID: 1, version: 1), isICELite: true, media: media
        ).description
      $0.id = offer.id
      $0.midToTrackId = sids
    }
  }

  func send(_ message: LiveKit.SignalResponse.Message) {
    send(raw: LiveKit.SignalResponse(message).serialized())
  }

  func send(raw bytes: [UInt8]) {
    session.handleSignal(bytes.span, at: now)
    settle()
  }

  /// Installs a call key on the client.
  func install(_ key: [UInt8]) throws {
    try session.installKey(key.span, sending: .now, at: now)
    settle()
  }

  /// Lets the client send a frame.
  func capture(_ frame: [UInt8], on track: LocalTrack, timestamp: UInt32) throws(SendError) {
    try session.send(frame.span, on: track, timestamp: RTPTimestamp(timestamp), at: now)
    settle()
  }

  /// Protects and delivers a packet of the server's.
  func send(packet: [UInt8]) {
    var bytes = packet + [UInt8](repeating: 0, count: 32)
    var span = bytes.mutableSpan
    guard
      let count = isRTCP(packet.span)
        ? try? srtp?.protectRTCP(&span, count: packet.count)
        : try? srtp?.protectRTP(&span, count: packet.count)
    else { return }
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
    while let deadline = session.nextDeadline, deadline <= end {
      now = max(now, deadline)
      session.handleTimeout(at: now)
      settle()
      // A shell that obeys must not spin.
      if let next = session.nextDeadline, next <= now {
        spins += 1
        now += .milliseconds(1)
      }
    }
    now = max(now, end)
  }

  /// Carries everything to and fro until nobody has anything to say.
  func settle() {
    while let bytes = session.pollSignal() {
      if let message = (try? LiveKit.SignalRequest(serialized: bytes))?.message { signals.append(message) }
    }
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = session.pollTransmit(into: &span, at: now) else { break }
      receive(Array(buffer[..<transmit.count]))
    }
    while let event = session.pollEvent() { events.append(event) }
    while let frame = session.pollVideoFrame(at: now) { videoFrames.append(frame) }
  }

  private func receive(_ datagram: [UInt8]) {
    var bytes = datagram
    switch PacketKind(datagram.span) {
    case .stun:
      var answer = ByteWriter(capacity: 128)
      if case .answered = lite.handle(datagram.span, from: client, at: now, answer: &answer) {
        deliver(answer.bytes)
      }
      if isActive, dtls.state == .new {
        dtls.start(at: now)
        flush()
      }
    case .dtls:
      try? dtls.handle(datagram.span, at: now)
      if srtp == nil, dtls.state == .connected { secure() }
      flush()
    case .rtp:
      protectedMedia.append(datagram)
      var span = bytes.mutableSpan
      if let count = try? srtp?.unprotectRTP(&span, count: datagram.count) {
        media.append(Array(bytes[..<count]))
      }
    case .rtcp:
      var span = bytes.mutableSpan
      guard let count = try? srtp?.unprotectRTCP(&span, count: datagram.count) else { return }
      let opened = Array(bytes[..<count])
      var reader = RTCPReader(opened.span)
      while let packet = try? reader.next() { control.append(packet) }
    case .turnChannel, .unknown: break
    }
  }

  private func flush() { while let reply = dtls.pollTransmit() { deliver(reply) } }

  private func secure() {
    guard let keys = try? dtls.exportKeyingMaterial(), let profile = SRTPProfile(rawValue: keys.profile)
    else {
      return
    }
    defer { settle() }
    srtp = try? SRTPSession(
      profile: profile, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
      remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span)
  }

  var isConnected: Bool { events.contains(.connected) }

  // MARK: Packets

  func packet(
    ssrc: UInt32, type: UInt8, sequence: UInt16, timestamp: UInt32, marker: Bool = false, mid: String? = nil,
    payload: [UInt8]
  ) -> [UInt8] {
    var extensions = RTPExtensionValues()
    extensions.mid = mid.flatMap { ShortText($0) }
    extensions.transportSequenceNumber = sequence
    var ids = RTPExtensionIDs()
    ids.mid = 4
    ids.transportSequenceNumber = 3
    let header = RTPHeader(
      marker: marker, payloadType: PayloadType(type), sequenceNumber: SequenceNumber(sequence),
      timestamp: RTPTimestamp(timestamp), ssrc: SSRC(ssrc))
    return [UInt8](capacity: 1_500) { output in
      RTPPacketWriter.writeHeader(header, extensions: extensions, ids: ids, into: &output)
      for byte in payload { output.append(byte) }
    }
  }

  /// A frame of one packet on the video track.
  func videoPacket(_ sequence: UInt16, isKeyFrame: Bool, ssrc: UInt32 = 2_000, mid: String? = nil) -> [UInt8]
  {
    let frame: [UInt8] =
      [isKeyFrame ? 0x10 : 0x11] + [UInt8](repeating: UInt8(truncatingIfNeeded: sequence), count: 40)
    return packet(
      ssrc: ssrc, type: 96, sequence: sequence, timestamp: UInt32(sequence) * 3_000, marker: true, mid: mid,
      payload: [0x10] + frame)
  }

  func audioPacket(_ sequence: UInt16) -> [UInt8] {
    packet(
      ssrc: 1_000, type: 111, sequence: sequence, timestamp: UInt32(sequence) * 960,
      payload: [0x78, UInt8(truncatingIfNeeded: sequence), UInt8(sequence >> 8), 1, 2, 3])
  }
}
