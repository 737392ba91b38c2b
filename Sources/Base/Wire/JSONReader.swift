/// Reads JSON (RFC 8259) from one end to the other, strictly and without building a tree.
///
///     var json = try JSONReader(text, limit: 4_096)
///     try json.enterObject()
///     while let key = try json.nextKey() {
///       switch key {
///       case "room": room = try json.string()
///       case "tags": try json.enterArray(); while try json.nextElement() { tags.append(try json.string()) }
///       default: try json.skipValue()
///       }
///     }
///     try json.finish()
///
/// After `nextKey` and after `nextElement` said there is one, exactly one value must be read.
public struct JSONReader: Sendable {
  /// What the next value is.
  public enum Kind: Hashable, Sendable {
    /// A value of this type; `invalid` where none begins.
    case object, array, string, number, bool, null, invalid
  }

  private let bytes: [UInt8]
  /// Bytes read so far.
  public private(set) var offset = 0
  private var depth = 0
  private let depthLimit: Int
  /// Nothing stands before the next member or element of the innermost container.
  private var isFirst = true

  /// Reads nothing.
  public init() {
    bytes = []
    depthLimit = 0
  }

  /// Reads `bytes`, which must be UTF-8, at most `limit` of them and nested at most `depth` deep.
  public init(_ bytes: [UInt8], limit: Int, depth: Int = 8) throws(JSONError) {
    guard bytes.count <= limit else { throw .tooLong(limit: limit) }
    self.bytes = bytes
    depthLimit = depth
  }

  /// Reads `text`, at most `limit` bytes of it and nested at most `depth` deep.
  public init(_ text: String, limit: Int, depth: Int = 8) throws(JSONError) {
    // Compared before the copy.
    guard text.utf8.count <= limit else { throw .tooLong(limit: limit) }
    try self.init(Array(text.utf8), limit: limit, depth: depth)
  }

  // MARK: Values

  /// What comes next.
  public mutating func kind() -> Kind {
    switch peek() {
    case UInt8(ascii: "{"): .object
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .bool
    case UInt8(ascii: "n"): .null
    case let byte? where byte == UInt8(ascii: "-") || (0x30...0x39).contains(byte): .number
    default: .invalid
    }
  }

  /// Begins an object.
  public mutating func enterObject() throws(JSONError) { try enter("{") }

  /// The next member's key; nil at the end of the object, which is then left.
  public mutating func nextKey() throws(JSONError) -> String? {
    guard try advance(to: "}") else { return nil }
    let key = try string()
    try expect(":")
    return key
  }

  /// Begins an array.
  public mutating func enterArray() throws(JSONError) { try enter("[") }

  /// Whether another element follows; at the end the array is left.
  public mutating func nextElement() throws(JSONError) -> Bool { try advance(to: "]") }

  /// Takes `null` if it is next.
  public mutating func isNull() throws(JSONError) -> Bool {
    guard peek() == UInt8(ascii: "n") else { return false }
    try literal("null")
    return true
  }

  /// A truth value.
  public mutating func bool() throws(JSONError) -> Bool {
    let isTrue = peek() == UInt8(ascii: "t")
    try literal(isTrue ? "true" : "false")
    return isTrue
  }

  /// A whole number: `7`, `7.0` and `70e-1` are one and the same.
  public mutating func integer<Value: FixedWidthInteger>(
    _ type: Value.Type = Value.self
  ) throws(JSONError) -> Value {
    let text = try number()
    return try JSONNumber(text).integer(type, at: offset - text.count)
  }

  /// A number as it stands, such as `-1.5e3`.
  public mutating func number() throws(JSONError) -> ArraySlice<UInt8> {
    _ = peek()
    let start = offset
    if offset < bytes.count, bytes[offset] == UInt8(ascii: "-") { offset += 1 }
    let first = offset
    try digits()
    // A zero stands alone before the point.
    if bytes[first] == UInt8(ascii: "0"), offset > first + 1 { throw .unexpected(at: first + 1) }
    if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
      offset += 1
      try digits()
    }
    if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
      offset += 1
      if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") {
        offset += 1
      }
      try digits()
    }
    return bytes[start..<offset]
  }

  /// A text, its escapes resolved.
  public mutating func string() throws(JSONError) -> String {
    try expect("\"")
    let start = offset
    var text = [UInt8]()
    while true {
      guard offset < bytes.count else { throw .unexpected(at: offset) }
      let byte = bytes[offset]
      offset += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let text = String(validating: text, as: UTF8.self) else { throw .unexpected(at: start) }
        return text
      case UInt8(ascii: "\\"): try escape(into: &text)
      case 0..<0x20: throw .unexpected(at: offset - 1)
      default: text.append(byte)
      }
    }
  }

  /// A text of base64 in the URL alphabet without padding (RFC 4648 §5), decoded; an escape in it is refused.
  public mutating func base64URL() throws(JSONError) -> [UInt8] {
    try expect("\"")
    let start = offset
    while offset < bytes.count, bytes[offset] != UInt8(ascii: "\"") { offset += 1 }
    guard offset < bytes.count else { throw .unexpected(at: offset) }
    let text = bytes[start..<offset]
    offset += 1
    guard let decoded = Base64.decodeURL(text) else { throw .unexpected(at: start) }
    return decoded
  }

  /// Steps over a text that needs no look at its characters, one by one; anything else is left where it is.
  private mutating func skipPlainString() -> Bool {
    var end = offset + 1
    while end < bytes.count {
      switch bytes[end] {
      case UInt8(ascii: "\""):
        offset = end + 1
        return true
      case UInt8(ascii: "\\"), 0..<0x20, 0x80...: return false
      default: end += 1
      }
    }
    return false
  }

  /// Steps over a value of any type.
  public mutating func skipValue() throws(JSONError) {
    switch kind() {
    case .string: if !skipPlainString() { _ = try string() }
    case .object:
      try enterObject()
      while try nextKey() != nil { try skipValue() }
    case .array:
      try enterArray()
      while try nextElement() { try skipValue() }
    case .bool: _ = try bool()
    case .null: _ = try isNull()
    case .number, .invalid: _ = try number()
    }
  }

  /// Refuses anything but white space after the value.
  public mutating func finish() throws(JSONError) {
    guard peek() == nil else { throw .unexpected(at: offset) }
  }

  // MARK: Parts

  private mutating func peek() -> UInt8? {
    while offset < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[offset]) { offset += 1 }
    return offset < bytes.count ? bytes[offset] : nil
  }

  private mutating func expect(_ character: Unicode.Scalar) throws(JSONError) {
    guard peek() == UInt8(ascii: character) else { throw .unexpected(at: offset) }
    offset += 1
  }

  private mutating func enter(_ open: Unicode.Scalar) throws(JSONError) {
    try expect(open)
    guard depth < depthLimit else { throw .tooDeep(limit: depthLimit) }
    depth += 1
    isFirst = true
  }

  /// Steps over the comma before the next member or element, or leaves the container.
  private mutating func advance(to close: Unicode.Scalar) throws(JSONError) -> Bool {
    let isEnd = peek() == UInt8(ascii: close)
    if isEnd {
      offset += 1
      depth -= 1
    } else if !isFirst {
      try expect(",")
    }
    isFirst = false
    return !isEnd
  }

  private mutating func literal(_ word: String) throws(JSONError) {
    for character in word.utf8 {
      guard offset < bytes.count, bytes[offset] == character else { throw .unexpected(at: offset) }
      offset += 1
    }
  }

  private mutating func digits() throws(JSONError) {
    let start = offset
    while offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset]) {
      offset += 1
    }
    guard offset > start else { throw .unexpected(at: offset) }
  }

  private mutating func escape(into text: inout [UInt8]) throws(JSONError) {
    guard offset < bytes.count else { throw .unexpected(at: offset) }
    let byte = bytes[offset]
    offset += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0c)
    case UInt8(ascii: "n"): text.append(0x0a)
    case UInt8(ascii: "r"): text.append(0x0d)
    case UInt8(ascii: "t"): text.append(0x09)
    case UInt8(ascii: "u"): try escapedScalar(into: &text)
    default: throw .unexpected(at: offset - 1)
    }
  }

  private mutating func escapedScalar(into text: inout [UInt8]) throws(JSONError) {
    let start = offset
    var value = try codeUnit()
    if (0xd800..<0xdc00).contains(value) {
      guard offset + 1 < bytes.count, bytes[offset] == UInt8(ascii: "\\"),
        bytes[offset + 1] == UInt8(ascii: "u")
      else { throw .unexpected(at: start) }
      offset += 2
      let low = try codeUnit()
      guard (0xdc00..<0xe000).contains(low) else { throw .unexpected(at: start) }
      value = 0x10000 + (value - 0xd800) << 10 + (low - 0xdc00)
    }
    guard let scalar = Unicode.Scalar(value) else { throw .unexpected(at: start) }
    text += Array(String(Character(scalar)).utf8)
  }

  private mutating func codeUnit() throws(JSONError) -> UInt32 {
    guard offset + 4 <= bytes.count else { throw .unexpected(at: offset) }
    var value: UInt32 = 0
    for byte in bytes[offset..<offset + 4] {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw .unexpected(at: offset)
      }
      value = value << 4 | UInt32(digit)
    }
    offset += 4
    return value
  }
}
