/// Reads the little JSON that the protocol carries (RFC 8259), strictly, without building a tree.
struct JSONScanner {
  private let bytes: [UInt8]
  private var offset = 0
  private var depth = 0
  private static let depthLimit = 8

  init(_ text: String, limit: Int) throws(LiveKit.JSONError) {
    guard text.utf8.count <= limit else { throw .tooLong(limit: limit) }
    bytes = Array(text.utf8)
  }

  /// One object; `member` must consume the value that follows its key.
  mutating func object(
    _ member: (String, inout JSONScanner) throws(LiveKit.JSONError) -> Void
  ) throws(LiveKit.JSONError) {
    try nest("{", "}") { scanner throws(LiveKit.JSONError) in
      let key = try scanner.string()
      try scanner.expect(":")
      try member(key, &scanner)
    }
  }

  /// Takes `null` if it is next.
  mutating func isNull() throws(LiveKit.JSONError) -> Bool {
    guard peek() == UInt8(ascii: "n") else { return false }
    try literal("null")
    return true
  }

  mutating func uint16() throws(LiveKit.JSONError) -> UInt16 {
    _ = peek()
    let start = offset
    try number()
    guard let value = UInt16(String(decoding: bytes[start..<offset], as: UTF8.self)),
      bytes[start] != UInt8(ascii: "-")
    else { throw .unexpected(at: start) }
    return value
  }

  mutating func string() throws(LiveKit.JSONError) -> String {
    try expect("\"")
    var text = [UInt8]()
    while true {
      guard offset < bytes.count else { throw .unexpected(at: offset) }
      let byte = bytes[offset]
      offset += 1
      switch byte {
      case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): try escape(into: &text)
      case 0..<0x20: throw .unexpected(at: offset - 1)
      default: text.append(byte)
      }
    }
  }

  mutating func skipValue() throws(LiveKit.JSONError) {
    switch peek() {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"): try object { _, scanner throws(LiveKit.JSONError) in try scanner.skipValue() }
    case UInt8(ascii: "["):
      try nest("[", "]") { scanner throws(LiveKit.JSONError) in try scanner.skipValue() }
    case UInt8(ascii: "t"): try literal("true")
    case UInt8(ascii: "f"): try literal("false")
    case UInt8(ascii: "n"): try literal("null")
    default: try number()
    }
  }

  /// Refuses anything but white space after the value.
  mutating func finish() throws(LiveKit.JSONError) {
    guard peek() == nil else { throw .unexpected(at: offset) }
  }

  static func quote(_ text: String) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var quoted: [UInt8] = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): quoted += [UInt8(ascii: "\\"), byte]
      case 0..<0x20: quoted += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: quoted.append(byte)
      }
    }
    return String(decoding: quoted + [UInt8(ascii: "\"")], as: UTF8.self)
  }

  // MARK: Parts

  private mutating func peek() -> UInt8? {
    while offset < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[offset]) { offset += 1 }
    return offset < bytes.count ? bytes[offset] : nil
  }

  private mutating func expect(_ character: Unicode.Scalar) throws(LiveKit.JSONError) {
    guard peek() == UInt8(ascii: character) else { throw .unexpected(at: offset) }
    offset += 1
  }

  private mutating func nest(
    _ open: Unicode.Scalar, _ close: Unicode.Scalar,
    _ element: (inout JSONScanner) throws(LiveKit.JSONError) -> Void
  ) throws(LiveKit.JSONError) {
    try expect(open)
    guard depth < Self.depthLimit else { throw .tooDeep(limit: Self.depthLimit) }
    depth += 1
    if peek() != UInt8(ascii: close) {
      try element(&self)
      while peek() == UInt8(ascii: ",") {
        offset += 1
        try element(&self)
      }
    }
    depth -= 1
    try expect(close)
  }

  private mutating func literal(_ word: StaticString) throws(LiveKit.JSONError) {
    for character in word.description.utf8 {
      guard offset < bytes.count, bytes[offset] == character else { throw .unexpected(at: offset) }
      offset += 1
    }
  }

  private mutating func number() throws(LiveKit.JSONError) {
    if peek() == UInt8(ascii: "-") { offset += 1 }
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
  }

  private mutating func digits() throws(LiveKit.JSONError) {
    let start = offset
    while offset < bytes.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[offset]) {
      offset += 1
    }
    guard offset > start else { throw .unexpected(at: offset) }
  }

  private mutating func escape(into text: inout [UInt8]) throws(LiveKit.JSONError) {
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
    case UInt8(ascii: "u"):
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
    default: throw .unexpected(at: offset - 1)
    }
  }

  private mutating func codeUnit() throws(LiveKit.JSONError) -> UInt32 {
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
