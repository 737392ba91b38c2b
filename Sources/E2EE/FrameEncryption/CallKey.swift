import PalbeCrypto
import PalbeWire

/// A participant's identity, split at its first `#`: the user, and the device when there is one.
public struct ParticipantIdentity: Hashable, Sendable {
  /// The whole identity, as signaling and the token carry it.
  public let text: String
  /// In front of the first `#`, or all of it.
  public let user: String
  /// Behind the first `#`; empty when there is none.
  public let device: String

  /// Throws `invalidName` for an empty identity or one above 65,535 bytes.
  public init(_ text: String) throws(FrameKeyError) {
    let count = text.utf8.count
    guard count > 0, count <= Int(UInt16.max) else { throw .invalidName(byteCount: count) }
    self.text = text
    if let mark = text.utf8.firstIndex(of: UInt8(ascii: "#")) {
      user = String(text[..<mark])
      device = String(text[text.utf8.index(after: mark)...])
    } else {
      user = text
      device = ""
    }
  }
}

/// The names of a call key's frame keys: 40 bits of context over 24 bits that name the call key.
public struct CallKeyID: Hashable, Sendable {
  /// Fresh for each call key, track and simulcast layer; 40 bits.
  public let context: UInt64
  /// Names the call key; 24 bits, the same for all who hold it.
  public let keyIdentifier: UInt32

  /// Takes the low 40 and 24 bits.
  public init(context: UInt64, keyIdentifier: UInt32) {
    self.context = context & 0xff_ffff_ffff
    self.keyIdentifier = keyIdentifier & 0xff_ffff
  }

  /// Reads a KID.
  @inlinable public init(rawValue: UInt64) {
    context = rawValue >> 24
    keyIdentifier = UInt32(truncatingIfNeeded: rawValue & 0xff_ffff)
  }

  /// `context << 24 | keyIdentifier`, the KID on the wire.
  @inlinable public var rawValue: UInt64 { context << 24 | UInt64(keyIdentifier) }
}

/// What a call derives from its 32-byte key K.
///
///     K ── Extract("", ·) ─┬─ Expand("palbe kid v1", 3) ───────────────────────────── keyIdentifier
///                          └─ Expand("palbe sframe v1" || room || user || device, 32) ── a sender's base key
///                                                                                        └─ RFC 9605 §4.4.2, per KID
///
/// Names carry a 16-bit length. Hash: SHA-512. No two senders, devices or rooms share a base key (hazards H1, H4, H13).
public struct CallKey: ~Copyable, Sendable {
  /// Bytes of K.
  public static let byteCount = 32

  // Extract("", K). K itself is not kept: two keys are equal when these are.
  private let secret: SymmetricKey
  /// 24 bits that name K.
  public let keyIdentifier: UInt32

  /// Throws `wrongLength` unless `key` has 32 bytes.
  public init(_ key: Span<UInt8>) throws(FrameKeyError) {
    guard key.count == CallKey.byteCount else {
      throw .wrongLength(expected: CallKey.byteCount, got: key.count)
    }
    secret = SFrameCipherSuite.aes256GCM.extract(key)
    let name = SFrameCipherSuite.aes256GCM.expand(secret, info: Array("palbe kid v1".utf8), byteCount: 3)
    let bytes = name.span
    keyIdentifier = UInt32(bytes[0]) << 16 | UInt32(bytes[1]) << 8 | UInt32(bytes[2])
  }

  /// The base key of one sender in one room: 32 bytes. Throws `invalidName` for an empty room or one above 65,535 bytes.
  public func senderBaseKey(room: String, identity: ParticipantIdentity) throws(FrameKeyError) -> SymmetricKey
  {
    let count = room.utf8.count
    guard count > 0, count <= Int(UInt16.max) else { throw .invalidName(byteCount: count) }
    var info = ByteWriter()
    info.append(utf8: "palbe sframe v1")
    for name in [room, identity.user, identity.device] {
      info.uint16(UInt16(truncatingIfNeeded: name.utf8.count))
      info.append(utf8: name)
    }
    return SFrameCipherSuite.aes256GCM.expand(secret, info: info.bytes, byteCount: 32)
  }

  /// Names K in a ledger without giving anything about it away: 32 bytes.
  func ledgerTag() -> [UInt8] {
    let tag = SFrameCipherSuite.aes256GCM.expand(secret, info: Array("palbe ledger v1".utf8), byteCount: 32)
    return [UInt8](tag.span)
  }

  /// Equal keys, in constant time.
  static func isEqual(_ left: borrowing CallKey, _ right: borrowing CallKey) -> Bool {
    SymmetricKey.isEqual(left.secret, right.secret)
  }
}
