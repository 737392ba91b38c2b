/// Why a text is not the JSON it should be.
public enum JSONError: Error, Equatable, Sendable {
  /// Longer than the limit, in bytes.
  case tooLong(limit: Int)
  /// Not JSON (RFC 8259), or not the type of value that belongs there, at this byte.
  case unexpected(at: Int)
  /// Values nested deeper than the limit.
  case tooDeep(limit: Int)
  /// More messages and map entries in one text than the limit.
  case tooMany(limit: Int)
  /// A member that must be there is not.
  case missing
  /// A member stands twice, or two members that exclude each other; the second ends at this byte.
  case duplicate(at: Int)
  /// A number that does not fit where it stands, at this byte.
  case outOfRange(at: Int)
}
