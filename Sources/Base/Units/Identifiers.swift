/// What an identifier names, and the word that its text begins with.
public protocol IdentifierKind: Sendable {
  /// Such as "usr".
  static var prefix: String { get }
}

/// A UUIDv7 (RFC 9562 §5.7) of one kind, written `usr_018f…`.
public struct Identifier<Kind: IdentifierKind>: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// The first eight bytes, big-endian: milliseconds since 1970, version, 12 random bits.
  public let high: UInt64
  /// The last eight bytes, big-endian: variant, 62 random bits.
  public let low: UInt64

  /// A fresh one.
  public init(at time: WallTime, using random: inout RandomSource) {
    let milliseconds = UInt64(clamping: time.microseconds / 1_000) & 0xffff_ffff_ffff
    high = milliseconds << 16 | 0x7000 | random.next() & 0xfff
    low = 1 << 63 | random.next() & (1 << 62 - 1)
  }

  /// From 16 bytes; nil for another count. The version is not looked at.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 16 else { return nil }
    high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// From its text; nil unless it is exactly what `text` gives for it, and a UUIDv7.
  public init?(_ text: some StringProtocol) {
    var digits: [UInt8] = []
    let characters = Array(text.utf8)
    let start = Kind.prefix.utf8.count + 1
    guard characters.count == start + 36, text.hasPrefix(Kind.prefix + "_") else { return nil }
    for (index, character) in characters[start...].enumerated() {
      if [8, 13, 18, 23].contains(index) {
        guard character == UInt8(ascii: "-") else { return nil }
        continue
      }
      switch character {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digits.append(character - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digits.append(character - UInt8(ascii: "a") + 10)
      default: return nil
      }
    }
    high = digits[..<16].reduce(0) { $0 << 4 | UInt64($1) }
    low = digits[16...].reduce(0) { $0 << 4 | UInt64($1) }
    guard high >> 12 & 0xf == 7, low >> 62 == 2 else { return nil }
  }

  /// The 16 bytes.
  public var bytes: [UInt8] {
    (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> UInt64(56 - $0 % 8 * 8)) }
  }

  /// The prefix and the UUID in lower-case hexadecimal.
  public var text: String {
    var characters = Array(Kind.prefix.utf8) + [UInt8(ascii: "_")]
    for (index, byte) in bytes.enumerated() {
      if [4, 6, 8, 10].contains(index) { characters.append(UInt8(ascii: "-")) }
      for nibble in [byte >> 4, byte & 15] {
        characters.append(nibble < 10 ? UInt8(ascii: "0") + nibble : UInt8(ascii: "a") + nibble - 10)
      }
    }
    return String(decoding: characters, as: UTF8.self)
  }

  /// By bytes, so the older first.
  public static func < (left: Self, right: Self) -> Bool { (left.high, left.low) < (right.high, right.low) }
}

extension Identifier: CustomStringConvertible {
  /// `text`.
  public var description: String { text }
}

/// Users.
public enum UserIdentifierKind: IdentifierKind {
  public static let prefix = "usr"
}
/// Devices.
public enum DeviceIdentifierKind: IdentifierKind {
  public static let prefix = "mdv"
}
/// Groups.
public enum GroupIdentifierKind: IdentifierKind {
  public static let prefix = "grp"
}
/// Blobs.
public enum BlobIdentifierKind: IdentifierKind {
  public static let prefix = "blb"
}
/// Calls.
public enum CallIdentifierKind: IdentifierKind {
  public static let prefix = "call"
}
/// Messages, named by their sender (`clientMsgId`).
public enum MessageIdentifierKind: IdentifierKind {
  public static let prefix = "msg"
}

/// `usr_…`: an account.
public typealias UserID = Identifier<UserIdentifierKind>
/// `mdv_…`: a device of a user, one leaf in each of its groups.
public typealias DeviceID = Identifier<DeviceIdentifierKind>
/// `grp_…`: a group's display id, made by the server.
public typealias GroupID = Identifier<GroupIdentifierKind>
/// `blb_…`: an attachment.
public typealias BlobID = Identifier<BlobIdentifierKind>
/// `call_…`: a call.
public typealias CallID = Identifier<CallIdentifierKind>
/// The sender's name of a message, under which a repetition is known.
public typealias ClientMessageID = Identifier<MessageIdentifierKind>
