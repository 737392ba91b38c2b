import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeMLS

private struct CryptoBasicsCase: SuiteCase {
  struct RefHash: Decodable {
    let label: String
    let value, out: HexBytes
  }
  struct Expand: Decodable {
    let label: String
    let secret, context, out: HexBytes
    let length: Int
  }
  struct Derive: Decodable {
    let label: String
    let secret, out: HexBytes
  }
  struct DeriveTree: Decodable {
    let label: String
    let secret, out: HexBytes
    let generation: UInt32
    let length: Int
  }
  struct Sign: Decodable {
    let label: String
    let priv, pub, content, signature: HexBytes
  }
  struct Encrypt: Decodable {
    let label: String
    let priv, pub, context, plaintext, kem_output, ciphertext: HexBytes
  }
  let cipher_suite: UInt16
  let ref_hash: RefHash
  let expand_with_label: Expand
  let derive_secret: Derive
  let derive_tree_secret: DeriveTree
  let sign_with_label: Sign
  let encrypt_with_label: Encrypt
}

@Suite("RFC 9420 §5, §8: labelled primitives")
struct CryptoBasicsTests {
  @Test(
    "crypto-basics.json",
    .enabled(if: Vectors.has("mls/crypto-basics.json"), "mls/crypto-basics.json absent: skipped"))
  func vectors() throws {
    for item: CryptoBasicsCase in try implementedCases("crypto-basics") {
      let crypto = try item.crypto()
      #expect(
        crypto.refHash(label: item.ref_hash.label, item.ref_hash.value.bytes) == item.ref_hash.out.bytes)
      let expand = item.expand_with_label
      #expect(
        crypto.expand(
          expand.secret.secret, label: expand.label, context: expand.context.bytes,
          byteCount: expand.length
        ).bytes == expand.out.bytes)
      let derive = item.derive_secret
      #expect(crypto.derive(derive.secret.secret, label: derive.label).bytes == derive.out.bytes)
      let tree = item.derive_tree_secret
      #expect(
        crypto.deriveTree(
          tree.secret.secret, label: tree.label, generation: tree.generation, byteCount: tree.length
        ).bytes == tree.out.bytes)

      let sign = item.sign_with_label
      #expect(
        crypto.isValid(
          sign.signature.bytes, of: sign.content.bytes, label: sign.label, key: sign.pub.bytes))
      let key = try sign.priv.signatureKey(crypto)
      #expect(key.publicKey == sign.pub.bytes)
      let signature = try crypto.sign(sign.content.bytes, label: sign.label, key: key)
      #expect(crypto.isValid(signature, of: sign.content.bytes, label: sign.label, key: sign.pub.bytes))
      #expect(
        !crypto.isValid(signature, of: sign.content.bytes, label: sign.label + "x", key: sign.pub.bytes))

      let encrypt = item.encrypt_with_label
      let opened = try crypto.decrypt(
        HPKECiphertext(kemOutput: encrypt.kem_output.bytes, ciphertext: encrypt.ciphertext.bytes),
        privateKey: encrypt.priv.hpkeKey(crypto), label: encrypt.label, context: encrypt.context.bytes)
      #expect(opened.bytes == encrypt.plaintext.bytes)
      #expect(try crypto.publicKey(of: encrypt.priv.hpkeKey(crypto)) == encrypt.pub.bytes)
      var random = RandomSource(seed: 1)
      let sealed = try crypto.encrypt(
        encrypt.plaintext.secret, to: encrypt.pub.bytes, label: encrypt.label,
        context: encrypt.context.bytes, using: &random)
      let again = try crypto.decrypt(
        sealed, privateKey: encrypt.priv.hpkeKey(crypto), label: encrypt.label, context: encrypt.context.bytes
      )
      #expect(again.bytes == encrypt.plaintext.bytes)
    }
  }

  // Rules: V003
  @Test("RFC 9420 §17.1: unknown suites are refused by name")
  func unsupported() {
    for raw: UInt16 in [0, 8, 0xf000, 0xffff] {
      let suite = CipherSuite(rawValue: raw)
      #expect(throws: MLSError.unsupportedSuite(suite)) { try SuiteCrypto(suite) }
    }
  }
}
