/// Base64 in the standard and the URL alphabet (RFC 4648 §4, §5).
public enum Base64 {
  /// Which two characters stand for 62 and 63.
  public enum Alphabet: Sendable {
    /// `+` and `/`.
    case standard
    /// `-` and `_`.
    case url
  }

  /// The text of `bytes`; `padded` fills the last group with `=`.
  public static func encode(
    _ bytes: [UInt8], alphabet: Alphabet = .standard, padded: Bool = true
  ) -> String {
    var text = [UInt8]()
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var group: UInt32 = 0
      for index in 0..<3 { group = group << 8 | (index < count ? UInt32(bytes[start + index]) : 0) }
      for index in 0...count { text.append(character(group >> (18 - 6 * UInt32(index)) & 63, alphabet)) }
      if padded { for _ in count..<3 { text.append(UInt8(ascii: "=")) } }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The bytes of `text`, with or without padding; nil for a character outside the alphabet, a wrong length
  /// or padding, or bits set past the last byte (so that every value has one text).
  public static func decode(_ text: some StringProtocol, alphabet: Alphabet = .standard) -> [UInt8]? {
    var characters = Array(text.utf8)
    if characters.last == UInt8(ascii: "=") {
      guard characters.count.isMultiple(of: 4) else { return nil }
      characters.removeLast()
      if characters.last == UInt8(ascii: "=") { characters.removeLast() }
    }
    guard characters.count % 4 != 1 else { return nil }
    var bytes = [UInt8]()
    bytes.reserveCapacity(characters.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in characters {
      guard let value = value(character, alphabet) else { return nil }
      bits = bits << 6 | value
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
        bits &= (1 << bitCount) - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  /// What each byte stands for in the URL alphabet; 255 for none.
  private static let urlValues: [UInt8] = (0..<256).map { byte in
    value(UInt8(byte), .url).map { UInt8($0) } ?? 255
  }

  /// The bytes of a text in the URL alphabet without padding, as `decode` gives them.
  static func decodeURL(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    let values = urlValues
    var bytes = [UInt8]()
    bytes.reserveCapacity(text.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var bitCount: UInt32 = 0
    for character in text {
      let value = values[Int(character)]
      guard value != 255 else { return nil }
      bits = bits << 6 | UInt32(value)
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
        bits &= (1 << bitCount) - 1
      }
    }
    return bits == 0 ? bytes : nil
  }

  private static func character(_ value: UInt32, _ alphabet: Alphabet) -> UInt8 {
    let value = UInt8(truncatingIfNeeded: value)
    switch value {
    case 0..<26: return UInt8(ascii: "A") + value
    case 26..<52: return UInt8(ascii: "a") + value - 26
    case 52..<62: return UInt8(ascii: "0") + value - 52
    case 62: return alphabet == .standard ? UInt8(ascii: "+") : UInt8(ascii: "-")
    default: return alphabet == .standard ? UInt8(ascii: "/") : UInt8(ascii: "_")
    }
  }

  private static func value(_ character: UInt8, _ alphabet: Alphabet) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a") + 26)
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0") + 52)
    case UInt8(ascii: "+") where alphabet == .standard, UInt8(ascii: "-") where alphabet == .url: 62
    case UInt8(ascii: "/") where alphabet == .standard, UInt8(ascii: "_") where alphabet == .url: 63
    default: nil
    }
  }
}
