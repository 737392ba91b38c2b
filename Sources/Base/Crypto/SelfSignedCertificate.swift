import CPalbeOpenSSL
import PalbeUnits

/// An X.509 certificate of a fresh ECDSA P-256 key, signed by itself: what a DTLS endpoint of WebRTC shows,
/// whose fingerprint travels in the session description (RFC 8122 §5, RFC 8827 §6.5).
@safe public struct SelfSignedCertificate: ~Copyable, @unchecked Sendable {
  /// The certificate in DER.
  public let derBytes: [UInt8]
  /// SHA-256 of `derBytes`, 32 bytes.
  public let fingerprintSHA256: [UInt8]

  private let certificate: OpaquePointer
  private let key: P256.Signing.PrivateKey

  /// Makes the key and the certificate.
  ///
  /// `commonName` has 1 to 64 bytes of UTF-8. The certificate is valid from `notBeforeUnix`, in seconds since
  /// 1970, for `days` days of 86,400 s. Throws `openSSL` when OpenSSL takes neither the name nor the time.
  public init(
    commonName: String, notBeforeUnix: Int64, validFor days: Int, using random: inout RandomSource
  ) throws(CryptoError) {
    let key = P256.Signing.PrivateKey(using: &random)
    // 63 random bits: positive, and within the 20 bytes of RFC 5280 §4.1.2.2.
    let serial = random.next() >> 1 | 1
    let (seconds, overflow) = days.multipliedReportingOverflow(by: 86_400)
    let (end, endOverflow) = Int(notBeforeUnix).addingReportingOverflow(seconds)
    guard days >= 0, !overflow, !endOverflow else { throw .openSSL(code: 0) }
    guard let certificate = unsafe X509_new() else { throw .fromOpenSSL() }
    guard
      unsafe X509_set_version(certificate, 2) == 1,  // v3
      unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial) == 1,
      unsafe ASN1_TIME_set(X509_getm_notBefore(certificate), Int(notBeforeUnix)) != nil,
      unsafe ASN1_TIME_set(X509_getm_notAfter(certificate), end) != nil,
      let name = unsafe X509_get_subject_name(certificate),
      unsafe X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, commonName, -1, -1, 0) == 1,
      unsafe X509_set_issuer_name(certificate, name) == 1,
      unsafe X509_set_pubkey(certificate, key.pair.key.pointer) == 1,
      unsafe X509_sign(certificate, key.pair.key.pointer, EVP_sha256()) > 0
    else {
      unsafe X509_free(certificate)
      throw .fromOpenSSL()
    }
    let der = unsafe encoded(certificate)
    self.derBytes = der
    self.fingerprintSHA256 = SHA256.hash(der)
    unsafe self.certificate = certificate
    self.key = key
  }

  deinit { unsafe X509_free(certificate) }

  /// Lends the `X509 *` and the `EVP_PKEY *` to the DTLS layer; both live as long as this value.
  package borrowing func withHandles<Result: ~Copyable, E: Error>(
    _ body: (_ certificate: OpaquePointer, _ privateKey: OpaquePointer) throws(E) -> Result
  ) throws(E) -> Result {
    try unsafe body(certificate, key.pair.key.pointer)
  }
}

private func encoded(_ certificate: OpaquePointer) -> [UInt8] {
  let count = unsafe i2d_X509(certificate, nil)
  guard count > 0 else { return [] }
  var bytes = [UInt8](repeating: 0, count: Int(count))
  unsafe bytes.withUnsafeMutableBufferPointer { buffer in
    var cursor = buffer.baseAddress
    _ = unsafe i2d_X509(certificate, &cursor)
  }
  return bytes
}
