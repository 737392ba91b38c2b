import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import Testing

@Suite("P-256")
struct P256Tests {
  let order = hex("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")

  func signingKey(_ scalar: [UInt8]) -> CryptoError? {
    do throws(CryptoError) {
      _ = try P256.Signing.PrivateKey(rawRepresentation: scalar.span)
      return nil
    } catch {
      return error
    }
  }

  func publicKeyError(x963 bytes: [UInt8]) -> CryptoError? {
    do throws(CryptoError) {
      _ = try P256.Signing.PublicKey(x963Representation: bytes.span)
      return nil
    } catch {
      return error
    }
  }

  func publicKeyError(der bytes: [UInt8]) -> CryptoError? {
    do throws(CryptoError) {
      _ = try P256.Signing.PublicKey(derRepresentation: bytes.span)
      return nil
    } catch {
      return error
    }
  }

  @Test("RFC 6979 A.2.5: the public key of the scalar, and the published signature verifies")
  func rfc6979() throws {
    let scalar = hex("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
    let key = try P256.Signing.PrivateKey(rawRepresentation: scalar.span)
    let publicKey = key.publicKey
    #expect(
      publicKey.x963Representation
        == hex(
          "04 60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6"
            + "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"))
    #expect(bytes(key.rawRepresentation) == scalar)
    let signature = hex(
      "3046 022100 efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716"
        + "022100 f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8")
    let message = [UInt8]("sample".utf8)
    let other = [UInt8]("samplf".utf8)
    expect(publicKey.isValidSignature(signature.span, for: message.span))
    expect(!publicKey.isValidSignature(signature.span, for: other.span))
    for count in 0..<signature.count {
      expect(!publicKey.isValidSignature(signature.span.extracting(first: count), for: message.span))
    }
    let longer = signature + [0]
    expect(!publicKey.isValidSignature(longer.span, for: message.span))
  }

  @Test("A signature of ours verifies under its own key alone; a seed gives the same key")
  func sign() throws {
    var random = RandomSource(seed: 1)
    var same = RandomSource(seed: 1)
    let key = P256.Signing.PrivateKey(using: &random)
    let again = P256.Signing.PrivateKey(using: &same)
    let other = P256.Signing.PrivateKey(using: &random)
    let publicKey = key.publicKey
    #expect(publicKey == again.publicKey)
    #expect(publicKey != other.publicKey)
    let message = [UInt8]("message".utf8)
    let signature = try key.signature(for: message.span)
    #expect((68...72).contains(signature.count))
    expect(publicKey.isValidSignature(signature.span, for: message.span))
    expect(!other.publicKey.isValidSignature(signature.span, for: message.span))
  }

  @Test("FIPS 186-4 B.4.2: a scalar lies between zero and the order")
  func scalars() {
    let zero = [UInt8](repeating: 0, count: 32)
    var last = order
    last[31] -= 1
    var one = zero
    one[31] = 1
    #expect(signingKey(zero) == .invalidPrivateKey)
    #expect(signingKey(order) == .invalidPrivateKey)
    #expect(signingKey([UInt8](repeating: 0xff, count: 32)) == .invalidPrivateKey)
    #expect(signingKey(one) == nil)
    #expect(signingKey(last) == nil)
    #expect(signingKey([1]) == .wrongLength(expected: 32, got: 1))
  }

  @Test("X9.63 and RFC 5480 §2: public keys come back; truncated, compressed and off-curve ones are refused")
  func publicKeys() throws {
    var random = RandomSource(seed: 5)
    let key = P256.Signing.PrivateKey(using: &random).publicKey
    let x963 = key.x963Representation
    let der = key.derRepresentation
    #expect(try P256.Signing.PublicKey(x963Representation: x963.span) == key)
    #expect(try P256.Signing.PublicKey(derRepresentation: der.span) == key)
    #expect(der.count == 91)
    for count in 0..<x963.count {
      #expect(publicKeyError(x963: Array(x963.prefix(count))) == .wrongLength(expected: 65, got: count))
    }
    for count in 0..<der.count { #expect(publicKeyError(der: Array(der.prefix(count))) == .invalidEncoding) }
    #expect(publicKeyError(der: der + [0]) == .invalidEncoding)
    for index in 0..<26 {
      var broken = der
      broken[index] ^= 1
      #expect(publicKeyError(der: broken) == .invalidEncoding)
    }
    for index in [0, 1, 33, 64] {
      var broken = x963
      broken[index] ^= 1
      #expect(publicKeyError(x963: broken) == .invalidPoint)
    }
    #expect(publicKeyError(x963: [UInt8](repeating: 0, count: 65)) == .invalidPoint)
    #expect(publicKeyError(x963: [4] + [UInt8](repeating: 0, count: 64)) == .invalidPoint)
  }

  @Test("Both sides of an agreement come to the same secret")
  func agreement() throws {
    var random = RandomSource(seed: 5)
    let alice = P256.KeyAgreement.PrivateKey(using: &random)
    let bob = P256.KeyAgreement.PrivateKey(using: &random)
    let one = try alice.sharedSecret(with: bob.publicKey)
    let two = try bob.sharedSecret(with: alice.publicKey)
    expect(SymmetricKey.isEqual(one, two))
    #expect(one.byteCount == 32)
  }

  struct SignatureGroup: Decodable, Sendable {
    struct Key: Decodable, Sendable { let uncompressed: HexBytes }
    struct Case: Decodable, Sendable {
      let tcId: Int
      let msg, sig: HexBytes
      let result: Verdict
    }
    let publicKey: Key
    let publicKeyDer: HexBytes
    let tests: [Case]
  }

  @Test(
    "Wycheproof: ECDSA P-256 SHA-256",
    .enabled(if: Vectors.has("wycheproof/ecdsa_secp256r1_sha256_test.json"), "vectors absent: skipped"))
  func wycheproofECDSA() throws {
    let file = "wycheproof/ecdsa_secp256r1_sha256_test.json"
    var count = 0
    for group in try Vectors.load(file, as: Wycheproof<SignatureGroup>.self).testGroups {
      let key = try P256.Signing.PublicKey(derRepresentation: group.publicKeyDer.bytes.span)
      #expect(key.x963Representation == group.publicKey.uncompressed.bytes)
      for test in group.tests {
        let valid = key.isValidSignature(test.sig.bytes.span, for: test.msg.bytes.span)
        #expect(valid == (test.result == .valid), "tcId \(test.tcId)")
        count += 1
      }
    }
    #expect(count == 484)
  }

  struct AgreementGroup: Decodable, Sendable {
    struct Case: Decodable, Sendable {
      let tcId: Int
      let `public`, shared: HexBytes
      let `private`: String
      let result: Verdict
    }
    let tests: [Case]
  }

  /// The agreed secret, nil when the peer's key is refused.
  func agree(_ scalar: [UInt8], _ peer: [UInt8]) -> [UInt8]? {
    do throws(CryptoError) {
      let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: scalar.span)
      return bytes(try key.sharedSecret(with: .init(x963Representation: peer.span)))
    } catch {
      return nil
    }
  }

  @Test(
    "Wycheproof: ECDH P-256; compressed points are refused",
    .enabled(if: Vectors.has("wycheproof/ecdh_secp256r1_ecpoint_test.json"), "vectors absent: skipped"))
  func wycheproofECDH() throws {
    let file = "wycheproof/ecdh_secp256r1_ecpoint_test.json"
    var count = 0
    for group in try Vectors.load(file, as: Wycheproof<AgreementGroup>.self).testGroups {
      for test in group.tests {
        // Written as an ASN.1 integer: shorter, or with a leading zero.
        let digits = String(repeating: "0", count: max(0, 64 - test.private.count)) + test.private.suffix(64)
        let secret = agree(hex(digits), test.public.bytes)
        #expect(secret == (test.result == .valid ? test.shared.bytes : nil), "tcId \(test.tcId)")
        count += 1
      }
    }
    #expect(count == 355)
  }
}
