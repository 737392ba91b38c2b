/// Why bytes could not be decoded.
public enum WireError: Error, Equatable, Sendable {
  /// The field needs more bytes than are left.
  case truncated(needed: Int, have: Int)
  /// Bytes are left after the last field.
  case trailing(count: Int)
  /// A field holds a value that its format does not allow.
  case invalid(field: StaticField, value: UInt64)
  /// A length or count is above the format's limit.
  case tooLong(field: StaticField, length: Int, limit: Int)
}

/// A field's name without an allocation; equal when the names are.
public struct StaticField: Equatable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  let name: StaticString
  public init(stringLiteral name: StaticString) { self.name = name }
  public var description: String { name.description }
  public static func == (left: StaticField, right: StaticField) -> Bool {
    left.description == right.description
  }
}
