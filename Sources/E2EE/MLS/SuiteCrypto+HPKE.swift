import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// Public-key encryption of a suite, RFC 9420 §5.1.3.
extension SuiteCrypto {
  func generateKeyPair(using random: inout RandomSource) throws(MLSError) -> HPKEKeyPair {
    // RFC 9180 §7.1.3: at least as many bytes as the private key has.
    try deriveKeyPair(Secret(byteCount: max(hashByteCount, hpke.kem.privateKeyByteCount), using: &random))
  }

  /// `KEM.DeriveKeyPair`.
  func deriveKeyPair(_ input: Secret) throws(MLSError) -> HPKEKeyPair {
    do throws(CryptoError) {
      let key = try HPKE.deriveKeyPair(hpke, inputKeyMaterial: input.span)
      return HPKEKeyPair(privateKey: Secret(key.rawRepresentation), publicKey: key.publicKey)
    } catch { throw .crypto(error) }
  }

  /// The public key of a private one.
  func publicKey(of privateKey: Secret) throws(MLSError) -> [UInt8] {
    do throws(CryptoError) {
      return try HPKE.PrivateKey(hpke.kem, rawRepresentation: privateKey.span).publicKey
    } catch { throw .crypto(error) }
  }

  /// False for bytes that nothing can be encrypted to.
  func isValidEncryptionKey(_ key: [UInt8]) -> Bool { hpke.kem.isValidPublicKey(key.span) }

  private func encryptContext(_ label: String, _ context: [UInt8]) -> [UInt8] {
    var info = ByteWriter(capacity: context.count + 48)
    info.label(label)
    info.opaque(context)
    return info.bytes
  }

  /// What `encrypt` takes for each of many recipients: label and context, hashed once however long they are.
  func encryption(label: String, context: [UInt8]) -> HPKE.Info {
    HPKE.Info(hpke, encryptContext(label, context).span)
  }

  /// `EncryptWithLabel`.
  func encrypt(
    _ plaintext: Secret, to publicKey: [UInt8], _ encryption: HPKE.Info, using random: inout RandomSource
  ) throws(MLSError) -> HPKECiphertext {
    do throws(CryptoError) {
      let (kemOutput, ciphertext) = try HPKE.seal(
        encryption, to: publicKey.span, aad: Span(), plaintext: plaintext.span, using: &random)
      return HPKECiphertext(kemOutput: kemOutput, ciphertext: ciphertext)
    } catch { throw .crypto(error) }
  }

  /// `EncryptWithLabel`, for one recipient.
  func encrypt(
    _ plaintext: Secret, to publicKey: [UInt8], label: String, context: [UInt8],
    using random: inout RandomSource
  ) throws(MLSError) -> HPKECiphertext {
    try encrypt(
      plaintext, to: publicKey, encryption(label: label, context: context), using: &random)
  }

  /// `DecryptWithLabel`. The public key of the private one saves computing it.
  func decrypt(
    _ ciphertext: HPKECiphertext, privateKey: Secret, publicKey: [UInt8]? = nil, label: String,
    context: [UInt8]
  ) throws(MLSError) -> Secret {
    let info = encryptContext(label, context)
    do throws(CryptoError) {
      let key: HPKE.PrivateKey
      if let publicKey {
        key = try HPKE.PrivateKey(hpke.kem, rawRepresentation: privateKey.span, publicKey: publicKey)
      } else {
        key = try HPKE.PrivateKey(hpke.kem, rawRepresentation: privateKey.span)
      }
      return Secret(
        try HPKE.open(
          hpke, privateKey: key, encapsulatedKey: ciphertext.kemOutput.span, info: info.span, aad: Span(),
          ciphertext: ciphertext.ciphertext.span))
    } catch { throw .crypto(error) }
  }

  /// The sending side of an external init: an empty HPKE message and a secret exported from it, RFC 9420 §8.3.
  func sendExport(
    to publicKey: [UInt8], label: String, using random: inout RandomSource
  ) throws(MLSError) -> (kemOutput: [UInt8], secret: Secret) {
    do throws(CryptoError) {
      let sender = try HPKE.Sender(hpke, to: publicKey.span, info: Span(), using: &random)
      let context = Array(label.utf8)
      let secret = Secret(sender.export(context: context.span, outputByteCount: hashByteCount))
      return (sender.encapsulatedKey, secret)
    } catch { throw .crypto(error) }
  }

  /// The receiving side of an external init: a secret exported from an empty HPKE message, RFC 9420 §8.3.
  func receiveExport(_ kemOutput: [UInt8], privateKey: Secret, label: String) throws(MLSError) -> Secret {
    do throws(CryptoError) {
      let key = try HPKE.PrivateKey(hpke.kem, rawRepresentation: privateKey.span)
      let recipient = try HPKE.Recipient(
        hpke, privateKey: key, encapsulatedKey: kemOutput.span, info: Span())
      let context = Array(label.utf8)
      return Secret(recipient.export(context: context.span, outputByteCount: hashByteCount))
    } catch { throw .crypto(error) }
  }
}
