import PalbeCrypto
import PalbeDTLS
import PalbeICE
import PalbeRTP
import PalbeSRTP
import PalbeUnits

/// The one path of a session: ICE finds it, DTLS keys it, SRTP protects what goes over it.
///
///     idle ──answer──▶ connecting ──pair works, handshake done, fingerprint right──▶ connected ──▶ failed
///
/// Nothing waits: checks start with the answer, the ClientHello leaves on the first pair that works.
struct Transport: ~Copyable {
  enum State: Hashable, Sendable { case idle, connecting, connected, failed }

  /// How long the path may take to come up after the answer.
  static let connectTimeout = TimeDelta.seconds(15)
  /// How long the reason for the peer's goodbye is waited for.
  static let goodbyeTime = TimeDelta.seconds(1)
  /// Streams that the server may send at the same time.
  private static let inboundLimit = 1_024

  private(set) var state = State.idle
  private var ice: ICEAgent
  private var dtls: DTLSEndpoint?
  private var srtp: SRTPSession?
  private let identity: DTLSIdentity
  private let mtu: Int
  private var remoteFingerprint: [UInt8] = []
  private var connectDeadline: Instant?
  private var isPeerClosed = false

  init(
    identity: DTLSIdentity, local: ICECredentials, candidates: [ICECandidate], mtu: Int, random: RandomSource,
    at now: Instant
  ) {
    self.identity = identity
    self.mtu = mtu
    ice = ICEAgent(role: .controlling, local: local, random: random)
    // One socket, whatever addresses it has, and connections from the same addresses.
    for candidate in candidates { ice.addLocalCandidate(candidate, base: 0, at: now) }
  }

  /// Takes up the answer; of later answers only the candidates count.
  mutating func begin(_ description: TransportDescription, at now: Instant) {
    if state == .idle {
      guard
        let endpoint = try? DTLSEndpoint(
          role: description.isActive ? .server : .client, identity: identity, mtu: mtu)
      else { return fail() }
      dtls = consume endpoint
      state = .connecting
      remoteFingerprint = description.fingerprint
      connectDeadline = now + Self.connectTimeout
      ice.setRemote(description.credentials, isLite: description.isLite, at: now)
    }
    for candidate in description.candidates { ice.addRemoteCandidate(candidate, at: now) }
    if description.isComplete { ice.endOfRemoteCandidates(at: now) }
    follow(at: now)
  }

  mutating func addRemoteCandidate(_ candidate: ICECandidate, at now: Instant) {
    ice.addRemoteCandidate(candidate, at: now)
    follow(at: now)
  }

  mutating func disconnected(from remote: SocketAddress, at now: Instant) {
    guard state != .failed else { return }
    ice.disconnected(from: remote, base: 0, at: now)
    follow(at: now)
  }

  mutating func handleSTUN(_ datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant) {
    guard state != .failed else { return }
    ice.handle(datagram, from: remote, base: 0, at: now)
    follow(at: now)
  }

  mutating func handleDTLS(_ datagram: Span<UInt8>, at now: Instant) {
    guard state == .connecting || state == .connected else { return }
    try? dtls?.handle(datagram, at: now)
    while dtls?.pollReceived() != nil {}
    follow(at: now)
  }

  /// Opens a datagram in place; nil for one that is not the peer's.
  @_lifetime(datagram: copy datagram)
  mutating func open(
    _ datagram: inout MutableSpan<UInt8>, count: Int, isControl: Bool
  ) -> Int? {
    guard state == .connected else { return nil }
    if isControl { return try? srtp?.unprotectRTCP(&datagram, count: count) }
    return try? srtp?.unprotectRTP(&datagram, count: count)
  }

  /// Protects a packet in place; nil when it must not leave.
  @_lifetime(buffer: copy buffer)
  mutating func protect(_ buffer: inout MutableSpan<UInt8>, count: Int, isControl: Bool) -> Int? {
    guard state == .connected else { return nil }
    if isControl { return try? srtp?.protectRTCP(&buffer, count: count) }
    return try? srtp?.protectRTP(&buffer, count: count)
  }

  /// Where media goes.
  var destination: SocketAddress? { ice.selectedPair?.remote }

  /// The next datagram of ICE or DTLS.
  @_lifetime(buffer: copy buffer)
  mutating func pollTransmit(into buffer: inout MutableSpan<UInt8>) -> Transmit? {
    while let transmit = ice.pollTransmit() {
      guard transmit.bytes.count <= buffer.count else { continue }
      buffer.copyBytes(from: transmit.bytes.span, at: 0)
      return Transmit(destination: transmit.remote, count: transmit.bytes.count)
    }
    guard let destination else { return nil }
    while let datagram = dtls?.pollTransmit() {
      guard datagram.count <= buffer.count else { continue }
      buffer.copyBytes(from: datagram.span, at: 0)
      return Transmit(destination: destination, count: datagram.count)
    }
    return nil
  }

  var nextDeadline: Instant? {
    guard state != .failed else { return nil }
    var deadline = Instant.distantFuture
    if let due = ice.nextDeadline { deadline = min(deadline, due) }
    if let due = handshakeDeadline { deadline = min(deadline, due) }
    if let connectDeadline { deadline = min(deadline, connectDeadline) }
    return deadline == .distantFuture ? nil : deadline
  }

  private var handshakeDeadline: Instant? {
    switch dtls {
    case .some(let endpoint): endpoint.nextDeadline
    case nil: nil
    }
  }

  mutating func handleTimeout(at now: Instant) {
    guard state != .failed else { return }
    ice.handleTimeout(at: now)
    if let due = handshakeDeadline, due <= now { dtls?.handleTimeout(at: now) }
    if let connectDeadline, connectDeadline <= now { fail() }
    follow(at: now)
  }

  /// Says goodbye.
  mutating func close(at now: Instant) { dtls?.close(at: now) }

  /// Takes the next step that what happened allows.
  private mutating func follow(at now: Instant) {
    while let event = ice.pollEvent() {
      if event == .stateChanged(.failed) { return fail() }
    }
    guard state == .connecting || state == .connected else { return }
    if ice.selectedPair != nil { dtls?.start(at: now) }
    switch dtls?.state {
    case .connected: if state == .connecting { secure() }
    case .closed: peerClosed(at: now)
    case .failed: fail()
    default: break
    }
  }

  /// The peer said goodbye on the path. The reason comes over signaling, which a datagram may overtake: the path counts as
  /// lost only when no reason has come in time.
  private mutating func peerClosed(at now: Instant) {
    guard !isPeerClosed else { return }
    isPeerClosed = true
    connectDeadline = now + Self.goodbyeTime
  }

  /// The handshake is done: whom with is checked before anything else.
  private mutating func secure() {
    guard dtls?.peerFingerprint?.bytes == remoteFingerprint else { return fail() }
    do {
      guard let keys = try dtls?.exportKeyingMaterial(), let profile = SRTPProfile(rawValue: keys.profile)
      else {
        return fail()
      }
      srtp = try SRTPSession(
        profile: profile, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
        remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span,
        inboundLimit: Self.inboundLimit)
    } catch { return fail() }
    state = .connected
    connectDeadline = nil
  }

  private mutating func fail() {
    state = .failed
    srtp = nil
    connectDeadline = nil
  }
}
