import PalbeWire

// Scalars in JSON. Source: protobuf.dev, "ProtoJSON Format".

extension ProtobufEnum {
  /// Reads a name or a number.
  public init?(json: inout JSONReader) throws(JSONError) {
    if json.kind() == .string {
      self.init(name: try json.string())
    } else {
      self.init(rawValue: try json.integer())
    }
  }
  /// Writes the name, or the number of a value without one.
  public func write(json: inout JSONWriter) {
    if let name { json.string(name) } else { json.integer(rawValue) }
  }
}

extension ProtobufScalar where Self: FixedWidthInteger {
  /// Reads a number, or a text that is one.
  public init?(json: inout JSONReader) throws(JSONError) {
    guard json.kind() == .string else {
      self = try json.integer()
      return
    }
    var (number, start) = try JSONReader.quoted(&json)
    do throws(JSONError) {
      self = try number.integer()
      try number.finish()
    } catch { throw .outOfRange(at: start) }
  }
  /// Writes a number; one of 64 bits as a text, because many readers round it otherwise.
  public func write(json: inout JSONWriter) {
    if Self.bitWidth > 32 { json.string(String(self)) } else { json.integer(self) }
  }
}

extension ProtobufMapKey where Self: FixedWidthInteger {
  /// A whole number in decimal digits.
  public init?(jsonKey: String) {
    guard jsonKey.utf8.first != UInt8(ascii: "+"), let value = Self(jsonKey) else { return nil }
    self = value
  }
  /// The number in decimal digits.
  public var jsonKey: String { String(self) }
}

extension Bool {
  /// Reads `true` or `false`.
  public init?(json: inout JSONReader) throws(JSONError) { self = try json.bool() }
  /// Writes `true` or `false`.
  public func write(json: inout JSONWriter) { json.bool(self) }
}

extension Float {
  /// Reads a number, a text that is one, or one of the texts `NaN`, `Infinity` and `-Infinity`.
  public init?(json: inout JSONReader) throws(JSONError) {
    guard json.kind() == .string else {
      let text = try json.number()
      self = try Float.finite(text, at: json.offset - text.count)
      return
    }
    var copy = json
    switch try copy.string() {
    case "NaN": self = .nan
    case "Infinity": self = .infinity
    case "-Infinity": self = -.infinity
    default:
      var (number, start) = try JSONReader.quoted(&json)
      do throws(JSONError) {
        self = try Float.finite(number.number(), at: start)
        try number.finish()
      } catch { throw .outOfRange(at: start) }
      return
    }
    json = copy
  }
  /// Writes the shortest number that reads back as the same.
  public func write(json: inout JSONWriter) {
    if isNaN {
      json.string("NaN")
    } else if isInfinite {
      json.string(self < 0 ? "-Infinity" : "Infinity")
    } else {
      json.raw(description)
    }
  }

  private static func finite(_ text: ArraySlice<UInt8>, at offset: Int) throws(JSONError) -> Float {
    guard let value = Float(String(decoding: text, as: UTF8.self)), value.isFinite else {
      throw .outOfRange(at: offset)
    }
    return value
  }
}

extension String {
  /// Reads a text.
  public init?(json: inout JSONReader) throws(JSONError) { self = try json.string() }
  /// Writes the text.
  public func write(json: inout JSONWriter) { json.string(self) }
  /// A member's key is a text.
  public init?(jsonKey: String) { self = jsonKey }
  /// A member's key is a text.
  public var jsonKey: String { self }
}

extension [UInt8] {
  /// Reads base64 in either alphabet, with or without padding.
  public init?(json: inout JSONReader) throws(JSONError) {
    let start = json.offset
    let text = try json.string()
    guard let bytes = Base64.decode(text) ?? Base64.decode(text, alphabet: .url) else {
      throw .unexpected(at: start)
    }
    self = bytes
  }
  /// Writes base64 in the standard alphabet, with padding.
  public func write(json: inout JSONWriter) { json.string(Base64.encode(self)) }
}

extension JSONReader {
  /// The text that is next, as a reader of its own, and where it stood. A text that begins or ends with white
  /// space holds no number.
  fileprivate static func quoted(_ json: inout JSONReader) throws(JSONError) -> (JSONReader, Int) {
    let start = json.offset
    let text = try json.string()
    guard let first = text.utf8.first, first > 0x20, let last = text.utf8.last, last > 0x20 else {
      throw .unexpected(at: start)
    }
    return (try JSONReader(text, limit: .max), start)
  }
}
