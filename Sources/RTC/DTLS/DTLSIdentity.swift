import CPalbeOpenSSL
import PalbeCrypto
import PalbeUnits

/// The certificate that endpoints show, with what all of them have in common. One serves a whole process.
///
/// DTLS 1.2 with ECDHE-ECDSA and AES-GCM alone; X25519, P-256 and P-384; no renegotiation, tickets or resumption. A
/// peer must show a certificate and any is taken: the caller compares its fingerprint with the signaled one (RFC 8827 §6.5).
@safe public final class DTLSIdentity: Sendable {
  /// What goes into the session description.
  public let fingerprint: DTLSFingerprint
  // SSL_CTX counts its references with atomics and is not changed after the initializer.
  nonisolated(unsafe) let context: OpaquePointer

  /// Bytes of a peer's certificate chain that are read.
  private static let certificateLimit = 16_384

  /// Shows `certificate`.
  public init(_ certificate: borrowing SelfSignedCertificate) throws(DTLSError) {
    guard let fingerprint = DTLSFingerprint(bytes: certificate.fingerprintSHA256) else {
      throw .setUp(code: 0)
    }
    guard let context = unsafe SSL_CTX_new(DTLS_method()) else { throw .fromSetUp() }
    let isUsed = unsafe certificate.withHandles { certificate, key in
      unsafe SSL_CTX_use_certificate(context, certificate) == 1 && SSL_CTX_use_PrivateKey(context, key) == 1
    }
    let suites = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    guard isUsed, unsafe palbe_dtls_configure(context, "X25519:P-256:P-384", Self.certificateLimit) == 1,
      unsafe SSL_CTX_set_cipher_list(context, suites) == 1
    else {
      unsafe SSL_CTX_free(context)
      throw .fromSetUp()
    }
    unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    unsafe SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
    self.fingerprint = fingerprint
    unsafe self.context = context
  }

  /// Shows a fresh certificate, valid for 30 days from a day before `nowUnix` (seconds since 1970).
  public convenience init(nowUnix: Int64, using random: inout RandomSource) throws(DTLSError) {
    let certificate: SelfSignedCertificate
    do {
      certificate = try SelfSignedCertificate(
        commonName: "palbe", notBeforeUnix: nowUnix - 86_400, validFor: 31, using: &random)
    } catch { throw .fromSetUp() }
    try self.init(certificate)
  }

  deinit { unsafe SSL_CTX_free(context) }
}

extension DTLSError {
  /// The oldest error of this thread's queue, which is then empty.
  static func fromSetUp() -> DTLSError {
    let code = ERR_get_error()
    ERR_clear_error()
    return .setUp(code: UInt(code))
  }
}
