import CPalbeOpenSSL
import PalbeWire

/// RSA (RFC 8017), to verify what others signed; nothing here signs with it.
public enum RSA {
  /// Signatures with SHA-256.
  public enum Signing {
    /// How the digest is embedded.
    public enum Padding: Hashable, Sendable {
      /// RSASSA-PKCS1-v1_5 (RFC 8017 §8.2).
      case pkcs1v15
      /// RSASSA-PSS (RFC 8017 §8.1): MGF1 with SHA-256, a salt of 32 bytes and no other.
      case pss
    }

    /// A public key of 2,048 to 8,192 bits.
    public struct PublicKey: Hashable, Sendable {
      /// Big-endian, without leading zeros.
      public let modulus: [UInt8]
      /// Big-endian, without leading zeros.
      public let exponent: [UInt8]

      /// From big-endian numbers. Throws `invalidEncoding` for a leading zero, an even number, a modulus of another size, and an
      /// exponent below 3 or above 32 bits.
      public init(modulus: [UInt8], exponent: [UInt8]) throws(CryptoError) {
        guard let first = modulus.first, let last = modulus.last, first != 0, last & 1 == 1,
          let small = exponent.first, small != 0, let odd = exponent.last, odd & 1 == 1, exponent.count <= 4,
          exponent != [1]
        else { throw .invalidEncoding }
        let bits = modulus.count * 8 - first.leadingZeroBitCount
        guard (2_048...8_192).contains(bits) else { throw .invalidEncoding }
        self.modulus = modulus
        self.exponent = exponent
      }

      /// True when `signature`, as long as the modulus, is this key's over `message`; false for anything else.
      public func isValidSignature(
        _ signature: Span<UInt8>, for message: Span<UInt8>, padding: Padding
      ) -> Bool {
        guard signature.count == modulus.count,
          let key = unsafe importRSA(modulus: modulus, exponent: exponent)
        else { return false }
        defer { unsafe EVP_PKEY_free(key) }
        guard let context = unsafe EVP_MD_CTX_new() else { return false }
        defer {
          unsafe EVP_MD_CTX_free(context)
          ERR_clear_error()
        }
        // Belongs to `context`.
        var inner: OpaquePointer?
        guard
          unsafe EVP_DigestVerifyInit_ex(context, &inner, sha256Name.cString, nil, nil, key, nil) == 1,
          let inner = unsafe inner
        else { return false }
        switch padding {
        case .pkcs1v15:
          guard unsafe EVP_PKEY_CTX_set_rsa_padding(inner, RSA_PKCS1_PADDING) == 1 else { return false }
        case .pss:
          guard unsafe EVP_PKEY_CTX_set_rsa_padding(inner, RSA_PKCS1_PSS_PADDING) == 1,
            unsafe EVP_PKEY_CTX_set_rsa_pss_saltlen(inner, 32) == 1
          else { return false }
        }
        return unsafe withBytes(signature) { bytes, count in
          unsafe withBytes(message) { unsafe EVP_DigestVerify(context, bytes, count, $0, $1) == 1 }
        }
      }
    }
  }
}

private let sha256Name: StaticString = "SHA256"
private let modulusName: StaticString = "n"
private let exponentName: StaticString = "e"

/// A public key of two big-endian numbers; nil when OpenSSL refuses it.
private func importRSA(modulus: [UInt8], exponent: [UInt8]) -> OpaquePointer? {
  guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, "RSA", nil) else { return nil }
  defer { unsafe EVP_PKEY_CTX_free(context) }
  guard unsafe EVP_PKEY_fromdata_init(context) == 1 else { return nil }
  // OSSL_PARAM has numbers in this machine's order.
  #if _endian(little)
    var (n, e) = ([UInt8](modulus.reversed()), [UInt8](exponent.reversed()))
  #else
    var (n, e) = (modulus, exponent)
  #endif
  return unsafe n.withUnsafeMutableBufferPointer { n in
    unsafe e.withUnsafeMutableBufferPointer { e in
      var parameters = unsafe [
        OSSL_PARAM_construct_BN(modulusName.cString, n.baseAddress, n.count),
        OSSL_PARAM_construct_BN(exponentName.cString, e.baseAddress, e.count), OSSL_PARAM_construct_end(),
      ]
      var made: OpaquePointer?
      let status = unsafe parameters.withUnsafeMutableBufferPointer {
        unsafe EVP_PKEY_fromdata(context, &made, palbe_pkey_public_key, $0.baseAddress)
      }
      guard status == 1 else {
        unsafe EVP_PKEY_free(made)
        ERR_clear_error()
        return nil
      }
      return unsafe made
    }
  }
}
