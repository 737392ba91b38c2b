import PalbeCrypto
import PalbeDTLS
import PalbeICE
import PalbeSDP
import PalbeSRTP
import PalbeUnits
import PalbeWire

/// A participant's transport, its only one or one of two: ICE lite, DTLS as the server, then SRTP.
///
/// ## Overview
///
///     new ── authenticated check ──▶ checked ── handshake, right certificate ──▶ connected ──▶ closed
///
/// A DTLS datagram is looked at only when it comes from an address whose check was authenticated within 30 s, and our flights go
/// only to an address that has proven itself: they wait for that, so a forged source cannot make us send a certificate to a stranger.
final class PeerTransport {
  /// What a datagram changed.
  enum Progress: Equatable {
    case none
    /// Media can flow.
    case connected
    /// The handshake failed, or the certificate is not the one that was signaled.
    case failed
    /// The peer said goodbye.
    case closed
  }

  /// What leads to it in the directory.
  var fragments: [String] = []
  var addresses: [SocketAddress] = []
  /// Our latest checks.
  var checks: [STUNTransactionID] = []
  /// What its peer has sent lately.
  var received = WorkAccount()
  private(set) var ice: ICELiteAgent
  private(set) var isConnected = false
  /// SHA-256 of the peer's certificate, from its offer.
  var expectedFingerprint: [UInt8]?
  /// What the client's description says of its data channels; nil where it has none.
  var dataParameters: DataParameters?
  /// Its data channels, once they were begun.
  var data: DataLink?
  private var dtls: DTLSEndpoint
  private var srtp: SRTPSession?

  init(identity: DTLSIdentity, using random: inout RandomSource) throws(DTLSError) {
    ice = ICELiteAgent(local: ICECredentials(using: &random))
    dtls = try DTLSEndpoint(role: .server, identity: identity)
  }

  /// What our descriptions say of it.
  func parameters(_ identity: DTLSIdentity, setup: DTLSSetup) -> TransportParameters {
    TransportParameters(
      iceUsernameFragment: ice.local.usernameFragment, icePassword: ice.local.password,
      fingerprint: Fingerprint(sha256: identity.fingerprint.bytes), setup: setup)
  }

  /// Where everything is sent to.
  var remote: SocketAddress? { ice.selectedRemote }

  /// Takes a check, whose answer is then in `answer`, or an answer to one of ours.
  func handleCheck(
    _ datagram: Span<UInt8>, from remote: SocketAddress, at now: Instant, answer: inout ByteWriter
  ) -> ICELiteAgent.Outcome { ice.handle(datagram, from: remote, at: now, answer: &answer) }

  /// Our next check that is due.
  func pollCheck(
    at now: Instant, using random: inout RandomSource, into writer: inout ByteWriter
  ) -> (destination: SocketAddress, id: STUNTransactionID)? {
    ice.pollCheck(at: now, using: &random, into: &writer)
  }

  /// What its description says of the peer: our checks need its credentials.
  func take(_ peer: TransportParameters) {
    guard
      let credentials = ICECredentials(
        usernameFragment: peer.iceUsernameFragment, password: peer.icePassword)
    else { return }
    ice.setRemote(credentials)
  }

  /// A TCP connection has ended; what went to it goes where the latest check came from.
  func forget(_ address: SocketAddress, at now: Instant) { ice.forget(address, at: now) }

  /// The peer's consent is gone where it was not refreshed.
  func loseConsent() { ice.loseConsent() }

  func restartICE(using random: inout RandomSource) {
    ice.restart(local: ICECredentials(using: &random))
  }

  func handleDTLS(_ datagram: Span<UInt8>, from address: SocketAddress, at now: Instant) -> Progress {
    guard expectedFingerprint != nil, ice.isHeard(address, at: now) else { return .none }
    do throws(DTLSError) { try dtls.handle(datagram, at: now) } catch { return .failed }
    return takeUp()
  }

  func handleTimeout(at now: Instant) -> Progress {
    dtls.handleTimeout(at: now)
    if case .failed = dtls.state { return isConnected ? .none : .failed }
    return .none
  }

  var handshakeDeadline: Instant? { dtls.nextDeadline }

  /// The next DTLS datagram and where to send it.
  func pollHandshake() -> (bytes: [UInt8], destination: SocketAddress)? {
    guard let remote else {
      // A flight waits for an address that has proven itself; what comes later is lost, as on the way.
      while isConnected, dtls.pollTransmit() != nil {}
      return nil
    }
    return dtls.pollTransmit().map { ($0, remote) }
  }

  /// The next datagram of the data channels, decrypted.
  func pollData() -> [UInt8]? { isConnected ? dtls.pollReceived() : nil }

  /// Encrypts one, which `pollHandshake` then gives out.
  func sendData(_ datagram: [UInt8], at now: Instant) {
    // One that is too long or too late is lost, as on the way.
    do throws(DTLSError) { try dtls.send(datagram.span, at: now) } catch {}
  }

  func close(at now: Instant) { dtls.close(at: now) }

  private func takeUp() -> Progress {
    switch dtls.state {
    case .connected:
      guard !isConnected else { return .none }
      guard let fingerprint = dtls.peerFingerprint, fingerprint.bytes == expectedFingerprint,
        makeSRTP()
      else { return .failed }
      isConnected = true
      return .connected
    case .closed: return .closed
    case .failed: return .failed
    case .new, .handshaking: return .none
    }
  }

  private func makeSRTP() -> Bool {
    do {
      let keys = try dtls.exportKeyingMaterial()
      guard let profile = SRTPProfile(rawValue: keys.profile) else { return false }
      srtp = try SRTPSession(
        profile: profile, localMasterKey: keys.localKey.span, localMasterSalt: keys.localSalt.span,
        remoteMasterKey: keys.remoteKey.span, remoteMasterSalt: keys.remoteSalt.span)
      return true
    } catch { return false }
  }

  /// Packets that were not sent because their numbers were used before. Must stay zero.
  private(set) var refusalCount = 0

  // MARK: SRTP, in place. Nil: not connected, or the packet was refused.

  @_lifetime(buffer: copy buffer)
  func protectRTP(_ buffer: inout MutableSpan<UInt8>, count: Int) -> Int? {
    do throws(SRTPError) { return try srtp?.protectRTP(&buffer, count: count) } catch {
      refusalCount += 1
      return nil
    }
  }

  @_lifetime(buffer: copy buffer)
  func unprotectRTP(_ buffer: inout MutableSpan<UInt8>, count: Int) -> Int? {
    do throws(SRTPError) { return try srtp?.unprotectRTP(&buffer, count: count) } catch { return nil }
  }

  @_lifetime(buffer: copy buffer)
  func unprotectRTCP(_ buffer: inout MutableSpan<UInt8>, count: Int) -> Int? {
    do throws(SRTPError) { return try srtp?.unprotectRTCP(&buffer, count: count) } catch { return nil }
  }

  /// Protects the compound packet where it lies. False: it was not.
  func protectRTCP(_ compound: inout ByteWriter) -> Bool {
    guard let profile = srtp?.profile else { return false }
    let count = compound.bytes.count
    for _ in 0..<profile.controlOverhead { compound.uint8(0) }
    var buffer = compound.bytes.mutableSpan
    do throws(SRTPError) { return try srtp?.protectRTCP(&buffer, count: count) != nil } catch { return false }
  }

  func forgetSource(_ ssrc: SSRC) { srtp?.forgetRemoteSource(ssrc) }
}
