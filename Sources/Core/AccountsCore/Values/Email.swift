import PalbeUnits

/// An e-mail address in the one form in which accounts have it: ASCII, in lower case.
///
/// What it takes is RFC 5321 §4.1.2 without quoted local parts and address literals. Lower case for the local part too: servers that
/// tell `Anna@` from `anna@` are not found any more, people who write their address both ways are. Whether mail arrives there
/// is not checked: no mail is sent.
public struct Email: Hashable, Sendable {
  /// Such as `anna@example.org`.
  public let text: String

  /// Without white space around it. Nil for what is no address, for a local part above 64 bytes and for more than 254 in all.
  public init?(_ text: String) {
    var bytes = Array(text.utf8.prefix(512))[...]
    guard text.utf8.count <= 512 else { return nil }
    while let first = bytes.first, first == 0x20 || first == 0x09 { bytes.removeFirst() }
    while let last = bytes.last, last == 0x20 || last == 0x09 { bytes.removeLast() }
    guard (3...254).contains(bytes.count) else { return nil }
    for index in bytes.indices where (0x41...0x5a).contains(bytes[index]) { bytes[index] |= 0x20 }
    let parts = bytes.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard parts.count == 2, (1...64).contains(parts[0].count), Self.isLocal(parts[0]), Self.isDomain(parts[1])
    else { return nil }
    self.text = String(decoding: bytes, as: UTF8.self)
  }

  /// Of a store, which took it from here.
  public init(stored text: String) { self.text = text }

  /// What stands before the @.
  var local: Substring { text.prefix { $0 != "@" } }

  private static let specials = Set("!#$%&'*+-/=?^_`{|}~".utf8)

  private static func isWord(_ byte: UInt8) -> Bool {
    (0x61...0x7a).contains(byte) || (0x30...0x39).contains(byte)
  }

  /// A Dot-string.
  private static func isLocal(_ part: ArraySlice<UInt8>) -> Bool {
    part.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { atom in
      !atom.isEmpty && atom.allSatisfy { isWord($0) || specials.contains($0) }
    }
  }

  /// Labels of letters, digits and inner hyphens.
  private static func isDomain(_ part: ArraySlice<UInt8>) -> Bool {
    let hyphen = UInt8(ascii: "-")
    return part.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
      (1...63).contains(label.count) && label.first != hyphen && label.last != hyphen
        && label.allSatisfy { isWord($0) || $0 == hyphen }
    }
  }
}
