import Foundation
import PalbeWire

/// A JSON value, with its keys sorted when written so that a session's output is reproducible.
public enum JSON: Codable, Hashable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case double(Double)
  case string(String)
  case array([JSON])
  case object([String: JSON])

  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .bool(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(Double.self) {
      self = .double(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([JSON].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: JSON].self))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .object(let value): try container.encode(value)
    }
  }

  /// Bytes as lower-case hexadecimal.
  static func hex(_ bytes: [UInt8]) -> JSON { .string(Hex.encode(bytes)) }

  /// A value of an object; nil for another value and for null.
  public subscript(_ key: String) -> JSON? {
    guard case .object(let members) = self, let value = members[key], value != .null else { return nil }
    return value
  }

  /// The text, nil for another value.
  public var text: String? { if case .string(let value) = self { value } else { nil } }
  /// The number, nil for another value.
  public var number: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The items, nil for another value.
  public var items: [JSON]? { if case .array(let value) = self { value } else { nil } }

  /// One line.
  public var line: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return "null" }
    return String(decoding: data, as: UTF8.self)
  }

  /// One value from a line; nil for anything else.
  public static func parse(_ line: String) -> JSON? {
    try? JSONDecoder().decode(JSON.self, from: Data(line.utf8))
  }
}
