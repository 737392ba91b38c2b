import PalbeAccountsCore
import PalbeBackendCore
import PalbeUnits
import PalbeWire

/// The form of a JSON value. It is read by it and described by it, so that the two cannot differ.
indirect enum Shape: Sendable {
  /// Any text of at most so many characters.
  case text(upTo: Int)
  /// One of these words.
  case choice([String])
  /// An identifier with this prefix.
  case id(String)
  /// So many bytes, as base64url without padding.
  case bytes(ClosedRange<Int>)
  /// So many bytes, as hexadecimal.
  case hex(ClosedRange<Int>)
  case integer(ClosedRange<Int64>)
  /// A number with a fraction; only in answers.
  case number
  case boolean
  case list(Shape, upTo: Int)
  case object(Record)

  /// The largest whole number that every JSON reader knows exactly.
  static let largest: Int64 = 9_007_199_254_740_991
  /// An epoch, a sequence, a position or a count.
  static let natural = Shape.integer(0...largest)

  /// Members of an object. Others that come are ignored, so that an older server understands a newer client.
  struct Record: Sendable {
    /// Its name in the OpenAPI document; nil where it stands alone.
    var name: String?
    var fields: [Field]
    init(_ name: String, _ fields: [Field]) {
      self.name = name
      self.fields = fields
    }
    init(_ fields: [Field]) { self.fields = fields }
  }

  /// A member of an object, or an item of a query.
  struct Field: Sendable {
    let name: String
    let shape: Shape
    let isRequired: Bool
    let about: String
    static func required(_ name: String, _ shape: Shape, _ about: String) -> Field {
      Field(name: name, shape: shape, isRequired: true, about: about)
    }
    static func optional(_ name: String, _ shape: Shape, _ about: String) -> Field {
      Field(name: name, shape: shape, isRequired: false, about: about)
    }
  }
}

/// A value that had its shape.
enum JSONValue: Sendable, Equatable {
  case text(String)
  case bytes([UInt8])
  case integer(Int64)
  case boolean(Bool)
  case list([JSONValue])
  case object(JSONObject)
}

/// The members of an object that its shape knows.
struct JSONObject: Sendable, Equatable {
  private(set) var members: [String: JSONValue] = [:]

  init(_ members: [String: JSONValue] = [:]) { self.members = members }

  mutating func set(_ name: String, _ value: JSONValue) { members[name] = value }

  func text(_ name: String) -> String? { if case .text(let text) = members[name] { text } else { nil } }
  func bytes(_ name: String) -> [UInt8]? { if case .bytes(let bytes) = members[name] { bytes } else { nil } }
  func integer(_ name: String) -> Int64? {
    if case .integer(let value) = members[name] { value } else { nil }
  }
  func boolean(_ name: String) -> Bool? { if case .boolean(let value) = members[name] { value } else { nil } }
  func list(_ name: String) -> [JSONValue]? { if case .list(let list) = members[name] { list } else { nil } }
  func object(_ name: String) -> JSONObject? {
    if case .object(let object) = members[name] { object } else { nil }
  }
  func id<Kind>(_ name: String) -> Identifier<Kind>? { text(name).flatMap { Identifier<Kind>($0) } }
}

extension Shape.Record {
  /// Reads a whole text.
  /// - Parameter limit: the most bytes that it may have.
  func read(_ bytes: [UInt8], limit: Int) throws(APIError) -> JSONObject {
    var fault: (field: String, words: String)?
    do throws(JSONError) {
      var json = try JSONReader(bytes, limit: limit, depth: 6)
      let object = try readNaming(&json, &fault)
      try json.finish()
      return object
    } catch {
      if let fault { throw .invalid(fault.field, fault.words) }
      switch error {
      case .tooLong(let limit): throw APIError(.messageTooLarge(limit: limit))
      case .missing:
        throw .invalid("body", "a required member is missing, or the body ends too early")
      case .tooDeep, .tooMany: throw .invalid("body", "the body is nested too deep")
      case .unexpected(let place): throw .invalid("body", "not what is expected at byte \(place)")
      case .duplicate(let place): throw .invalid("body", "a member stands twice, up to byte \(place)")
      case .outOfRange(let place): throw .invalid("body", "a number or list out of range at byte \(place)")
      }
    }
  }

  /// Reads a whole text; what is not of its shape is told by its name.
  fileprivate func readNaming(
    _ json: inout JSONReader, _ fault: inout (field: String, words: String)?
  ) throws(JSONError) -> JSONObject {
    var members: [String: JSONValue] = [:]
    try json.enterObject()
    while let key = try json.nextKey() {
      guard let field = fields.first(where: { $0.name == key }) else {
        try json.skipValue()
        continue
      }
      guard members[key] == nil else { throw .duplicate(at: json.offset) }
      do throws(JSONError) { members[key] = try field.shape.read(&json, &fault) } catch {
        // The innermost member is told.
        if fault == nil {
          switch error {
          case .unexpected, .outOfRange: fault = (key, "'\(key)' is to be \(field.shape.expectation)")
          case .missing, .tooLong, .tooDeep, .tooMany, .duplicate: break
          }
        }
        throw error
      }
    }
    if let missing = fields.first(where: { $0.isRequired && members[$0.name] == nil }) {
      if fault == nil { fault = (missing.name, "'\(missing.name)' is missing: \(missing.shape.expectation)") }
      throw .missing
    }
    return JSONObject(members)
  }
}

extension Shape {
  /// Reads the next value.
  /// - Parameter fault: set to the member and the words when an object's member is not of its shape.
  func read(
    _ json: inout JSONReader, _ fault: inout (field: String, words: String)?
  ) throws(JSONError) -> JSONValue {
    let start = json.offset
    switch self {
    case .bytes(let range):
      let text = try json.string()
      guard text.utf8.count <= Self.textCount(of: range.upperBound) else {
        throw .tooLong(limit: range.upperBound)
      }
      guard let value = value(of: text) else { throw .unexpected(at: start) }
      return value
    case .text, .choice, .id, .hex:
      guard let value = value(of: try json.string()) else { throw .unexpected(at: start) }
      return value
    case .integer(let range):
      let value = try json.integer(Int64.self)
      guard range.contains(value) else { throw .outOfRange(at: start) }
      return .integer(value)
    case .number: throw .unexpected(at: start)
    case .boolean: return .boolean(try json.bool())
    case .list(let element, let count):
      var list: [JSONValue] = []
      try json.enterArray()
      while try json.nextElement() {
        guard list.count < count else { throw .outOfRange(at: json.offset) }
        list.append(try element.read(&json, &fault))
      }
      return .list(list)
    case .object(let record): return .object(try record.readNaming(&json, &fault))
    }
  }

  /// What a value is to be, in words.
  var expectation: String {
    switch self {
    case .text(let count): "text of at most \(count) characters"
    case .choice(let words): "one of " + words.joined(separator: ", ")
    case .id(let prefix): "an id: \(prefix)_ and a UUIDv7 in lower case"
    case .bytes(let range): "\(Self.span(range)) bytes as base64url without padding"
    case .hex(let range): "\(Self.span(range)) bytes as hexadecimal"
    case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
    case .number: "a number"
    case .boolean: "true or false"
    case .list(let element, let count): "a list of at most \(count), each \(element.expectation)"
    case .object: "an object"
    }
  }

  private static func span(_ range: ClosedRange<Int>) -> String {
    range.count == 1 ? "\(range.lowerBound)" : "\(range.lowerBound) to \(range.upperBound)"
  }

  /// A value from its text, as it stands in JSON strings, paths and queries; nil when it does not have the shape.
  func value(of text: String) -> JSONValue? {
    switch self {
    case .text(let count): return text.unicodeScalars.count <= count ? .text(text) : nil
    case .choice(let words): return words.contains(text) ? .text(text) : nil
    case .id(let prefix): return Self.isID(text, prefix) ? .text(text) : nil
    case .bytes(let range):
      // Longer ones are not decoded; padding is not taken, so that every value has one text.
      guard text.utf8.count <= Self.textCount(of: range.upperBound), text.utf8.last != UInt8(ascii: "="),
        let bytes = Base64.decode(text, alphabet: .url), range.contains(bytes.count)
      else { return nil }
      return .bytes(bytes)
    case .hex(let range):
      guard text.utf8.count <= 2 * range.upperBound, let bytes = Hex.decode(text),
        range.contains(bytes.count)
      else { return nil }
      return .bytes(bytes)
    case .integer(let range):
      guard text.utf8.count <= 16, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2d }),
        let value = Int64(text), range.contains(value)
      else { return nil }
      return .integer(value)
    case .boolean:
      switch text {
      case "true": return .boolean(true)
      case "false": return .boolean(false)
      default: return nil
      }
    case .number, .list, .object: return nil
    }
  }

  /// Characters of base64 without padding.
  private static func textCount(of byteCount: Int) -> Int { (byteCount * 4 + 2) / 3 }

  private static func isID(_ text: String, _ prefix: String) -> Bool {
    switch prefix {
    case UserIdentifierKind.prefix: Identifier<UserIdentifierKind>(text) != nil
    case DeviceIdentifierKind.prefix: Identifier<DeviceIdentifierKind>(text) != nil
    case GroupIdentifierKind.prefix: Identifier<GroupIdentifierKind>(text) != nil
    case BlobIdentifierKind.prefix: Identifier<BlobIdentifierKind>(text) != nil
    case MessageIdentifierKind.prefix: Identifier<MessageIdentifierKind>(text) != nil
    case SessionKind.prefix: Identifier<SessionKind>(text) != nil
    default: false
    }
  }
}
