import PalbeCrypto
import PalbeProtobuf
import PalbeUnits

@testable import PalbeChatCore

extension FuzzTarget {
  /// A message that is read can be sent again and says the same; its mentions stand.
  static let chatEnvelope = FuzzTarget(name: "chat-envelope") { bytes in
    if let padded = try? Envelope.decoded(plaintext: bytes.span) {
      demand((try? Envelope(serialized: bytes.span)) != padded, "padding is a field")
      check(padded)
    }
    if let plain = try? Envelope(serialized: bytes.span) { check(plain) }
  }

  private static func check(_ envelope: Envelope) {
    if case .unknown = envelope.content { return }
    if case .text(let body) = envelope.content {
      demand(TextRules.standing(body.mentions, in: body.text).count == body.mentions.count, "a mention fell")
    }
    do {
      let plaintext = try envelope.encoded()
      demand(try Envelope.decoded(plaintext: plaintext.span) == envelope, "\(envelope) changes")
    } catch { fatalError("\(envelope) cannot be sent again: \(error)") }
  }

  /// Arbitrary profiles under a key that is known, and a genuine one with arbitrary changes.
  ///
  /// Input: what is sealed; then it is what is XORed into a genuine one.
  static let sealedProfile = FuzzTarget(name: "sealed-profile") { bytes in
    let secret = SymmetricKey(copying: [UInt8](repeating: 1, count: 32))
    let group: [UInt8] = [1, 2, 3]
    if let profile = try? GroupProfile(serialized: bytes.span) {
      do {
        let again = try ProfileWire(profile).serialized()
        demand(try GroupProfile(serialized: again.span) == profile, "\(profile) changes")
      } catch { fatalError("\(profile) cannot be sealed again: \(error)") }
    }
    if let forged = try? SealedProfile.open(bytes.span, secret: secret, group: group, epoch: 1) {
      fatalError("a made-up profile opens: \(forged)")
    }
    do {
      var random = RandomSource(seed: 1)
      let genuine = try SealedProfile.seal(
        GroupProfile(name: "climbers"), secret: secret, group: group, epoch: 1, using: &random)
      var changed = genuine
      for index in 0..<min(bytes.count, changed.count) { changed[index] ^= bytes[index] }
      let opened = try? SealedProfile.open(changed.span, secret: secret, group: group, epoch: 1)
      demand((opened != nil) == (changed == genuine), "a changed profile opens, or a genuine one does not")
    } catch { fatalError("\(error)") }
  }

  /// Arbitrary ciphertexts whose hash the message names, and a genuine one with arbitrary changes: only that opens.
  ///
  /// Input: the beginning of a ciphertext; then what is XORed into the beginning of a genuine one.
  static let attachmentOpen = FuzzTarget(name: "attachment-open") { bytes in
    do {
      var random = RandomSource(seed: 1)
      let file = [UInt8](repeating: 7, count: 100)
      guard let blob = BlobID(bytes: [UInt8](repeating: 1, count: 16)) else { return }
      let (genuine, sealed) = try AttachmentCipher.seal(file.span, blob: blob, using: &random)
      var descriptor = sealed.descriptor(kind: .file, filename: "", mimeType: "")
      var arbitrary = bytes
      var changed = genuine
      for index in 0..<min(bytes.count, changed.count) { changed[index] ^= bytes[index] }
      if arbitrary.count < genuine.count { arbitrary += genuine[arbitrary.count...] }
      for ciphertext in [arbitrary, changed] {
        descriptor.cipherHash = SHA256.hash(ciphertext)
        let opened = try? AttachmentCipher.open(ciphertext.span, descriptor)
        demand(
          (opened == file) == (ciphertext == genuine), "a made-up attachment opens, or a genuine one does not"
        )
      }
    } catch { fatalError("\(error)") }
  }

  /// A code that was scanned is written so again, but for what is not known in it.
  static let qrPayload = FuzzTarget(name: "qr-payload") { bytes in
    guard let code = try? SafetyNumberCode(scanned: bytes.span) else { return }
    demand((try? SafetyNumberCode(scanned: code.encoded.span)) == code, "\(code) changes")
    demand(code.encoded.count <= bytes.count, "\(code) grows")
  }
}
