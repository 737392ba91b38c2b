public import PalbeCrypto

/// The bytes of one stored record, which may be secret: wiped when the last owner lets go.
///
/// A record of the engine begins with the number of its schema, and only the engine reads further. What is in a record of
/// the application is its own.
public struct MLSRecord: Sendable {
  let bytes: Secret

  init(_ bytes: Secret) { self.bytes = bytes }

  /// A record that owns these bytes.
  public init(_ bytes: consuming SymmetricKey) { self.bytes = Secret(bytes) }

  /// A copy of bytes that a storage read, or that an application wants to keep beside the engine's records; the caller
  /// wipes the original.
  public init(copying bytes: Span<UInt8>) { self.bytes = Secret(SymmetricKey(copying: bytes)) }

  /// How many bytes it has.
  public var byteCount: Int { bytes.byteCount }

  /// Lends the bytes.
  public func withSpan<Result, E: Error>(
    _ body: (Span<UInt8>) throws(E) -> Result
  ) throws(E) -> Result { try body(bytes.span) }

  /// True when both have the same bytes; takes the same time wherever they differ.
  public static func isEqual(_ left: MLSRecord, _ right: MLSRecord) -> Bool {
    ConstantTime.equal(left.bytes.span, right.bytes.span)
  }
}

/// Names a record of one client: of a group, or of the client itself.
///
/// The engine's names begin with a byte below 0x80; those of the application with a higher one.
public struct MLSRecordKey: Hashable, Comparable, Sendable {
  /// The group; nil for a record of the client itself, such as its signing key.
  public let group: [UInt8]?
  /// Unique in the group. Records are ordered by it, byte by byte.
  public let name: [UInt8]

  /// A storage's way to give back a key it was given; the engine makes its own.
  public init(group: [UInt8]?, name: [UInt8]) {
    self.group = group
    self.name = name
  }

  /// A record of the application's own beside those of a group, for instance a decrypted message.
  public static func application(_ name: [UInt8], in group: [UInt8]?) -> MLSRecordKey {
    MLSRecordKey(group: group, name: [Self.firstOfApplication] + name)
  }

  /// True for a record of the application's own.
  public var isApplication: Bool { name.first == Self.firstOfApplication }

  private static let firstOfApplication: UInt8 = 0x80

  /// True when this key's name begins with the other's, in the same group.
  public func isUnder(_ prefix: MLSRecordKey) -> Bool {
    group == prefix.group && name.starts(with: prefix.name)
  }

  /// By group, the client's own first, then by name.
  public static func < (left: MLSRecordKey, right: MLSRecordKey) -> Bool {
    switch (left.group, right.group) {
    case (nil, .some): true
    case (.some, nil): false
    case (let first?, let second?) where first != second: first.lexicographicallyPrecedes(second)
    default: left.name.lexicographicallyPrecedes(right.name)
    }
  }
}
