/// Writes JSON (RFC 8259) without white space; commas come by themselves.
///
///     var json = JSONWriter()
///     json.beginObject()
///     json.key("room"); json.string("blue")
///     json.endObject()
///     json.text  // {"room":"blue"}
public struct JSONWriter: Sendable {
  /// What was written so far, as UTF-8.
  public private(set) var bytes: [UInt8] = []
  private var needsComma = false

  /// An empty text.
  public init() {}

  /// What was written so far.
  public var text: String { String(decoding: bytes, as: UTF8.self) }

  /// Begins an object.
  public mutating func beginObject() { open(UInt8(ascii: "{")) }

  /// Ends the object.
  public mutating func endObject() { close(UInt8(ascii: "}")) }

  /// Begins an array.
  public mutating func beginArray() { open(UInt8(ascii: "[")) }

  /// Ends the array.
  public mutating func endArray() { close(UInt8(ascii: "]")) }

  /// A member's key; its value comes next.
  public mutating func key(_ key: String) {
    string(key)
    bytes.append(UInt8(ascii: ":"))
    needsComma = false
  }

  /// A text.
  public mutating func string(_ text: String) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 { escape(byte) }
    bytes.append(UInt8(ascii: "\""))
  }

  /// A whole number.
  public mutating func integer(_ value: some FixedWidthInteger) { raw(String(value)) }

  /// True or false.
  public mutating func bool(_ value: Bool) { raw(value ? "true" : "false") }

  /// No value.
  public mutating func null() { raw("null") }

  /// A number that is JSON already.
  public mutating func raw(_ text: String) {
    separate()
    bytes.append(contentsOf: text.utf8)
  }

  // MARK: Parts

  private mutating func separate() {
    if needsComma { bytes.append(UInt8(ascii: ",")) }
    needsComma = true
  }

  private mutating func open(_ bracket: UInt8) {
    separate()
    bytes.append(bracket)
    needsComma = false
  }

  private mutating func close(_ bracket: UInt8) {
    bytes.append(bracket)
    needsComma = true
  }

  private mutating func escape(_ byte: UInt8) {
    let short: Unicode.Scalar
    switch byte {
    case UInt8(ascii: "\""): short = "\""
    case UInt8(ascii: "\\"): short = "\\"
    case 0x08: short = "b"
    case 0x09: short = "t"
    case 0x0a: short = "n"
    case 0x0c: short = "f"
    case 0x0d: short = "r"
    case 0..<0x20:
      bytes += Array((byte < 0x10 ? "\\u000" : "\\u00").utf8) + Array(String(byte, radix: 16).utf8)
      return
    default:
      bytes.append(byte)
      return
    }
    bytes.append(UInt8(ascii: "\\"))
    bytes.append(UInt8(ascii: short))
  }
}
