import CPalbeOpenSSL
import PalbeCrypto

/// An Ed25519 key and an X.509 certificate of it, made with OpenSSL as an application's authority would.
struct TestCertificate {
  struct Failure: Error {}

  /// In DER.
  let bytes: [UInt8]
  /// 32 bytes.
  let seed: [UInt8]

  /// Signed by `issuer`, by itself when nil.
  init(commonName: String, seed: UInt8, issuer: TestCertificate? = nil) throws {
    self.seed = [UInt8](repeating: seed, count: 32)
    let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, self.seed, 32)
    let issuerKey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, issuer?.seed ?? self.seed, 32)
    let certificate = X509_new()
    defer {
      X509_free(certificate)
      EVP_PKEY_free(issuerKey)
      EVP_PKEY_free(key)
    }
    let name = X509_get_subject_name(certificate)
    guard
      X509_set_version(certificate, 2) == 1,
      ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), UInt64(seed)) == 1,
      ASN1_TIME_set(X509_getm_notBefore(certificate), Int(noon) - 86_400) != nil,
      ASN1_TIME_set(X509_getm_notAfter(certificate), Int(noon) + 86_400) != nil,
      X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, commonName, -1, -1, 0) == 1,
      X509_set_pubkey(certificate, key) == 1
    else { throw Failure() }
    if let issuer {
      let parsed = try Parsed(issuer.bytes)
      guard X509_set_issuer_name(certificate, X509_get_subject_name(parsed.certificate)) == 1 else {
        throw Failure()
      }
    } else {
      guard X509_set_issuer_name(certificate, name) == 1 else { throw Failure() }
    }
    guard X509_sign(certificate, issuerKey, nil) > 0 else { throw Failure() }
    var der = [UInt8](repeating: 0, count: Int(i2d_X509(certificate, nil)))
    der.withUnsafeMutableBufferPointer { buffer in
      var cursor = buffer.baseAddress
      _ = i2d_X509(certificate, &cursor)
    }
    bytes = der
  }

  var signaturePrivateKey: SymmetricKey { SymmetricKey(copying: seed) }

  /// What a policy reads of a certificate.
  final class Parsed {
    let certificate: OpaquePointer

    init(_ der: [UInt8]) throws {
      let parsed = der.withUnsafeBufferPointer { buffer in
        var cursor = buffer.baseAddress
        return d2i_X509(nil, &cursor, buffer.count)
      }
      guard let parsed else { throw Failure() }
      certificate = parsed
    }

    deinit { X509_free(certificate) }

    var publicKey: [UInt8] {
      var key = [UInt8](repeating: 0, count: 32)
      var count = 32
      guard EVP_PKEY_get_raw_public_key(X509_get0_pubkey(certificate), &key, &count) == 1 else { return [] }
      return Array(key.prefix(count))
    }

    var commonName: String {
      var name = [CChar](repeating: 0, count: 65)
      let count = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, &name, 65)
      return String(decoding: name.prefix(Int(max(0, count))).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func isSigned(by issuer: Parsed) -> Bool {
      X509_verify(certificate, X509_get0_pubkey(issuer.certificate)) == 1
    }
  }
}
