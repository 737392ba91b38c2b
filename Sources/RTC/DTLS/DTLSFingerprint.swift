/// A certificate's SHA-256, as `a=fingerprint:sha-256 AB:CD:…` carries it (RFC 8122 §5).
public struct DTLSFingerprint: Hashable, Sendable, CustomStringConvertible {
  /// 32 bytes.
  public let bytes: [UInt8]

  /// Nil unless there are 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }

  /// Reads "AB:CD:…" in either case, without the hash's name; nil when malformed.
  public init?(_ text: String) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 32 else { return nil }
    var bytes = [UInt8]()
    for part in parts {
      guard part.utf8.count == 2, part.allSatisfy(\.isHexDigit), let byte = UInt8(part, radix: 16) else {
        return nil
      }
      bytes.append(byte)
    }
    self.bytes = bytes
  }

  /// "AB:CD:…", 95 characters.
  public var description: String {
    let digits = Array("0123456789ABCDEF".utf8)
    var text = [UInt8]()
    for byte in bytes {
      if !text.isEmpty { text.append(UInt8(ascii: ":")) }
      text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
    return String(decoding: text, as: UTF8.self)
  }
}
