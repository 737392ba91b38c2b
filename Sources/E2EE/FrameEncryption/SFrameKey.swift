import PalbeCrypto
import PalbeWire

/// The cipher key and salt of one key id (RFC 9605 §4.4.2).
///
///     base_key ── Extract("", ·) ── sframe_secret ─┬─ Expand("SFrame 1.0 Secret key "  || KID || suite) ── key
///                                                  └─ Expand("SFrame 1.0 Secret salt " || KID || suite) ── salt
public struct SFrameKey: ~Copyable, Sendable {
  /// The suite both belong to.
  public let suite: SFrameCipherSuite
  /// KID, bound into both.
  public let keyID: UInt64
  /// sframe_key, `suite.keyByteCount` bytes.
  public let key: SymmetricKey
  /// sframe_salt, 12 bytes; a frame's nonce is this XOR its counter.
  public let salt: SymmetricKey

  /// Derives both from a base key of any length.
  public init(suite: SFrameCipherSuite, keyID: UInt64, baseKey: Span<UInt8>) {
    self.suite = suite
    self.keyID = keyID
    let secret = suite.extract(baseKey)
    key = suite.expand(
      secret, info: SFrameKey.label("SFrame 1.0 Secret key ", keyID, suite), byteCount: suite.keyByteCount)
    salt = suite.expand(
      secret, info: SFrameKey.label("SFrame 1.0 Secret salt ", keyID, suite),
      byteCount: SFrameCipherSuite.nonceByteCount)
  }

  private static func label(_ text: String, _ keyID: UInt64, _ suite: SFrameCipherSuite) -> [UInt8] {
    var writer = ByteWriter()
    writer.append(utf8: text)
    writer.uint64(keyID)
    writer.uint16(suite.rawValue)
    return writer.bytes
  }
}

/// Sender keys that move forward without a new exchange (RFC 9605 §5.1). A call of ours does not ratchet: while the
/// call key is kept, a ratchet under it hides nothing.
public enum SFrameRatchet {
  /// The base key of the next step: `Expand(Extract("", base_key), "SFrame 1.0 Ratchet", Nh)`.
  public static func next(after baseKey: borrowing SymmetricKey, suite: SFrameCipherSuite) -> SymmetricKey {
    suite.expand(
      suite.extract(baseKey.span), info: Array("SFrame 1.0 Ratchet".utf8), byteCount: suite.hashByteCount)
  }

  /// The key id of a step: the generation above `stepBits` (0 to 63) low bits of the step.
  public static func keyID(generation: UInt64, step: UInt64, stepBits: Int) -> UInt64 {
    precondition((0...63).contains(stepBits))
    return generation << UInt64(stepBits) | step & (1 << UInt64(stepBits) - 1)
  }
}

/// Key ids over an MLS group (RFC 9605 §5.2): sender context, leaf index and the low bits of the epoch.
public struct SFrameMLSKeyID: Equatable, Sendable {
  /// E: low bits of the epoch, how many epochs may overlap.
  public let epochBits: Int
  /// S: bits of the leaf index.
  public let indexBits: Int

  /// Both counts together at most 63.
  public init(epochBits: Int, indexBits: Int) {
    precondition(epochBits >= 0 && indexBits >= 0 && epochBits + indexBits < 64)
    self.epochBits = epochBits
    self.indexBits = indexBits
  }

  /// `(context << (S + E)) | (sender_index << E) | (epoch mod 2^E)`.
  public func keyID(context: UInt64, senderIndex: UInt32, epoch: UInt64) -> UInt64 {
    let low = epoch & (1 << UInt64(epochBits) - 1)
    return context << UInt64(indexBits + epochBits) | UInt64(senderIndex) << UInt64(epochBits) | low
  }
}
