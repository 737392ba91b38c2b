import CPalbeOpenSSL
import PalbeUnits
import PalbeWire

/// One side of a DTLS 1.2 association (RFC 6347) that keys SRTP (RFC 5764), datagrams in and datagrams out.
///
/// ## Overview
///
///     var endpoint = try DTLSEndpoint(role: .client, identity: identity)
///     endpoint.start(at: now)
///     while let datagram = endpoint.pollTransmit() { socket.send(datagram) }
///     …
///     try endpoint.handle(datagram, at: now)      // every datagram that starts with 20…63 (RFC 7983)
///     if endpoint.nextDeadline <= now { endpoint.handleTimeout(at: now) }
///     …
///     guard endpoint.peerFingerprint == signaled else { … }
///     let keys = try endpoint.exportKeyingMaterial()
///
/// ## Function
///
/// One datagram is fed at a time, so fragments in any order complete a message, and a lost flight is sent again after
/// 100, 200, 400, 800 ms and then every second. The server uses no cookies: the caller gives an endpoint datagrams
/// only from an address that ICE has proven. The server's list decides the SRTP profile.
///
/// ## Implementation
///
/// OpenSSL does the protocol, over `DatagramBIO`; the time is the caller's, see `RetransmitTimer`. OpenSSL draws its
/// randomness itself. A connected endpoint gives OpenSSL's two record buffers, 33 kB, back between calls: most have
/// nothing to say once they have keyed SRTP, and a server has many.
@safe public struct DTLSEndpoint: ~Copyable, @unchecked Sendable {
  /// Bytes of a datagram that is read; what a socket buffer of ours holds.
  static let datagramLimit = 2_048
  /// Received messages that are not polled yet; later ones are dropped, as a network would.
  static let receivedLimit = 256

  /// Client or server.
  public let role: DTLSRole
  /// Bytes of the largest datagram that is sent.
  public let mtu: Int
  /// Where the endpoint stands.
  public private(set) var state = DTLSState.new
  /// SHA-256 of the peer's certificate, once connected. To be compared with the signaled one before anything else.
  public private(set) var peerFingerprint: DTLSFingerprint?
  /// The number of the SRTP profile, once connected; nil without a common one.
  public private(set) var selectedProfile: UInt16?

  let connection: OpaquePointer
  let bio: DatagramBIO
  // Keeps what the callbacks of `connection` refer to.
  private let identity: DTLSIdentity
  private var received: [[UInt8]] = []

  /// An endpoint that has not started.
  ///
  /// - Parameters:
  ///   - profiles: SRTP profiles by number, best first: 7 AEAD_AES_128_GCM, 8 AEAD_AES_256_GCM,
  ///     1 AES128_CM_SHA1_80. Others are ignored.
  ///   - mtu: bytes of UDP payload, 256 to 1,472.
  public init(
    role: DTLSRole, identity: DTLSIdentity, profiles: [UInt16] = [7, 8, 1], mtu: Int = 1_200
  ) throws(DTLSError) {
    let mtu = min(max(mtu, 256), 1_472)
    let bio = DatagramBIO()
    guard let connection = unsafe SSL_new(identity.context) else { throw .fromSetUp() }
    let names = profiles.compactMap(SRTPProfileName.openSSL).joined(separator: ":")
    // SSL_set_tlsext_use_srtp returns 0 for success.
    guard let handle = unsafe bio.makeBIO(),
      unsafe names.isEmpty || SSL_set_tlsext_use_srtp(connection, names) == 0
    else {
      unsafe SSL_free(connection)
      throw .fromSetUp()
    }
    unsafe SSL_set_bio(connection, handle, handle)
    _ = unsafe palbe_dtls_set_mtu(connection, mtu)
    unsafe DTLS_set_timer_cb(connection) { _, last in RetransmitTimer.next(after: last) }
    switch role {
    case .client: unsafe SSL_set_connect_state(connection)
    case .server: unsafe SSL_set_accept_state(connection)
    }
    self.role = role
    self.mtu = mtu
    self.identity = identity
    self.bio = bio
    unsafe self.connection = connection
  }

  deinit { unsafe SSL_free(connection) }

  /// Begins: the client's ClientHello is then to be polled.
  public mutating func start(at now: Instant) {
    guard state == .new else { return }
    state = .handshaking
    guard role == .client else { return }
    try? step(at: now)
  }

  /// Takes one datagram of the peer's. A server that was not started starts. What is no DTLS, or no longer wanted, is
  /// ignored; throws when the handshake fails by it, and `state` is then `failed`.
  public mutating func handle(_ datagram: Span<UInt8>, at now: Instant) throws(DTLSError) {
    if state == .new, role == .server { state = .handshaking }
    guard state == .handshaking || state == .connected, !datagram.isEmpty,
      datagram.count <= Self.datagramLimit
    else { return }
    bio.incoming.removeAll(keepingCapacity: true)
    for index in datagram.indices { bio.incoming.append(datagram[index]) }
    bio.hasIncoming = true
    let wasConnected = state == .connected
    if wasConnected { unsafe SSL_alloc_buffers(connection) }
    defer {
      bio.hasIncoming = false
      if wasConnected || state == .connected { releaseBuffers() }
    }
    try step(at: now)
  }

  /// Until the next call. Refused, and as well, while OpenSSL has something in them.
  private func releaseBuffers() {
    unsafe SSL_free_buffers(connection)
    bio.incoming = []
  }

  /// The next datagram to send.
  public mutating func pollTransmit() -> [UInt8]? { bio.outgoing.isEmpty ? nil : bio.outgoing.removeFirst() }

  /// The next message of the peer's, as `send` took it.
  public mutating func pollReceived() -> [UInt8]? { received.isEmpty ? nil : received.removeFirst() }

  /// When to call `handleTimeout`; nil while no flight waits for an answer.
  public var nextDeadline: Instant? {
    guard state == .handshaking else { return nil }
    return unsafe bio.timer.nextDeadline(connection)
  }

  /// Sends the last flight again if its time has come. After a dozen times `state` is `failed(.timeout)`.
  public mutating func handleTimeout(at now: Instant) {
    guard state == .handshaking else { return }
    bio.timer.now = now
    guard bio.timer.expire() else { return }
    ERR_clear_error()
    if unsafe palbe_dtls_handle_timeout(connection) < 0 { fail(.timeout) }
  }

  /// Sends `message` in one encrypted datagram; 1 to `mtu` - 64 bytes.
  public mutating func send(_ message: Span<UInt8>, at now: Instant) throws(DTLSError) {
    guard state == .connected else { throw .notConnected }
    guard message.count <= mtu - 64 else { throw .tooLong(count: message.count, limit: mtu - 64) }
    guard !message.isEmpty else { return }
    bio.timer.now = now
    ERR_clear_error()
    unsafe SSL_alloc_buffers(connection)
    defer { releaseBuffers() }
    let result = unsafe message.withUnsafeBufferPointer { bytes in
      unsafe SSL_write(connection, bytes.baseAddress, CInt(bytes.count))
    }
    guard result > 0 else { throw fail(.protocolFailure(code: UInt(ERR_peek_error()))) }
  }

  /// Says goodbye (close_notify) when connected. Nothing is sent or received afterwards.
  public mutating func close(at now: Instant) {
    if state == .connected {
      bio.timer.now = now
      ERR_clear_error()
      unsafe SSL_alloc_buffers(connection)
      _ = unsafe SSL_shutdown(connection)
      ERR_clear_error()
      releaseBuffers()
    }
    if case .failed = state { return }
    state = .closed
  }

  /// Goes as far as what was fed allows.
  private mutating func step(at now: Instant) throws(DTLSError) {
    bio.timer.now = now
    ERR_clear_error()
    if state == .handshaking {
      let result = unsafe SSL_do_handshake(connection)
      unsafe bio.timer.probe(connection)
      guard result == 1 else { return try check(result) }
      try finishHandshake()
    }
    guard state == .connected else { return }
    var readBuffer = [UInt8](repeating: 0, count: Self.datagramLimit)
    while state == .connected {
      let count = unsafe readBuffer.withUnsafeMutableBufferPointer { buffer in
        unsafe SSL_read(connection, buffer.baseAddress, CInt(buffer.count))
      }
      guard count > 0 else { return try check(count) }
      if received.count < Self.receivedLimit { received.append(Array(readBuffer[..<Int(count)])) }
    }
  }

  /// What a result that is not a success means.
  private mutating func check(_ result: CInt) throws(DTLSError) {
    switch unsafe SSL_get_error(connection, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
    case SSL_ERROR_ZERO_RETURN: state = .closed
    default:
      let code = ERR_peek_error()
      let isTimeout = palbe_err_reason(code) == SSL_R_READ_TIMEOUT_EXPIRED
      throw fail(isTimeout ? .timeout : .protocolFailure(code: UInt(code)))
    }
  }

  @discardableResult
  private mutating func fail(_ error: DTLSError) -> DTLSError {
    ERR_clear_error()
    state = .failed(error)
    return error
  }

  private mutating func finishHandshake() throws(DTLSError) {
    guard unsafe palbe_dtls_has_extended_master_secret(connection) == 1 else {
      throw fail(.noExtendedMasterSecret)
    }
    guard let certificate = unsafe SSL_get1_peer_certificate(connection) else {
      throw fail(.protocolFailure(code: 0))
    }
    defer { unsafe X509_free(certificate) }
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    let result = unsafe digest.withUnsafeMutableBufferPointer { buffer in
      unsafe X509_digest(certificate, EVP_sha256(), buffer.baseAddress, &count)
    }
    guard result == 1, count == 32 else { throw fail(.protocolFailure(code: UInt(ERR_peek_error()))) }
    peerFingerprint = DTLSFingerprint(bytes: digest)
    if let profile = unsafe SSL_get_selected_srtp_profile(connection) {
      selectedProfile = unsafe UInt16(truncatingIfNeeded: profile.pointee.id)
    }
    state = .connected
  }
}
