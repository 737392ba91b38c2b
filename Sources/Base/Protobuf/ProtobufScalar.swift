import PalbeWire

/// A value that fills one field by itself: a number, a truth value, an enumeration, a text, bytes.
public protocol ProtobufScalar: Equatable, Sendable {
  /// The layout on the wire.
  static var wireType: ProtobufWireType { get }
  /// What an absent field means; it is not written (proto3).
  static var absent: Self { get }
  /// Reads the value of field `field`.
  init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError)
  /// Writes the value after its tag.
  func write(to writer: inout ProtobufWriter)
  /// Reads the value from JSON; nil for an enumeration's name that is not known.
  init?(json: inout JSONReader) throws(JSONError)
  /// Writes the value as JSON.
  func write(json: inout JSONWriter)
  /// Whether the value is what an absent field means.
  var isAbsent: Bool { get }
}

extension ProtobufScalar {
  /// Whether the value is what an absent field means.
  @inlinable public var isAbsent: Bool { self == .absent }
}

/// What can be the key of a map.
public protocol ProtobufMapKey: ProtobufScalar, Hashable, Comparable {
  /// The key of a JSON object's member; nil when it is none of this type.
  init?(jsonKey: String)
  /// The key of a JSON object's member.
  var jsonKey: String { get }
}

/// An open enumeration (proto3): a number this version has no name for is kept.
public protocol ProtobufEnum: ProtobufScalar, RawRepresentable, Hashable where RawValue == Int32 {
  /// Any number is a value.
  init(rawValue: Int32)
  /// The values with a name, as the protocol's description names them: `[.screenShare: "SCREEN_SHARE"]`.
  static var names: KeyValuePairs<Self, String> { get }
}

extension ProtobufEnum {
  /// The value's name in the protocol's description; nil for a number that this version has none for.
  public var name: String? { Self.names.first { $0.key == self }?.value }
  /// The value of a name; nil for one that this version does not know.
  public init?(name: some StringProtocol) {
    guard let value = Self.names.first(where: { $0.value == name })?.key else { return nil }
    self = value
  }
}

extension ProtobufEnum {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .varint }
  /// The enumeration's first name.
  @inlinable public static var absent: Self { Self(rawValue: 0) }
  /// Reads the number.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    self.init(rawValue: Int32(truncatingIfNeeded: try reader.varint()))
  }
  /// Writes the number.
  public func write(to writer: inout ProtobufWriter) { writer.varint(UInt64(bitPattern: Int64(rawValue))) }
}

extension ProtobufScalar where Self: FixedWidthInteger {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .varint }
  /// Zero.
  @inlinable public static var absent: Self { 0 }
  /// Reads a varint; bits above the type's width are dropped, as the format defines.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    self.init(truncatingIfNeeded: try reader.varint())
  }
  /// Writes a varint; a negative number is sign-extended to 64 bits.
  public func write(to writer: inout ProtobufWriter) { writer.varint(UInt64(truncatingIfNeeded: self)) }
}

extension Int32: ProtobufMapKey {}
extension Int64: ProtobufMapKey {}
extension UInt32: ProtobufMapKey {}
extension UInt64: ProtobufMapKey {}

extension Bool: ProtobufScalar {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .varint }
  /// False.
  @inlinable public static var absent: Bool { false }
  /// Reads a varint; every number but zero is true.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    self = try reader.varint() != 0
  }
  /// Writes one byte.
  public func write(to writer: inout ProtobufWriter) { writer.varint(self ? 1 : 0) }
}

extension Float: ProtobufScalar {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .fixed32 }
  /// Zero.
  @inlinable public static var absent: Float { 0 }
  /// Reads IEEE 754 bits.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    self.init(bitPattern: try reader.fixed32())
  }
  /// Minus zero is not absent.
  @inlinable public var isAbsent: Bool { bitPattern == 0 }
  /// Writes IEEE 754 bits.
  public func write(to writer: inout ProtobufWriter) { writer.fixed32(bitPattern) }
}

extension String: ProtobufMapKey {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .lengthDelimited }
  /// The empty text.
  @inlinable public static var absent: String { "" }
  /// Reads a text and refuses what is not UTF-8.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    let range = try reader.contentRange()
    guard let text = String(validating: reader.copy(range), as: UTF8.self) else {
      throw .invalidUTF8(field: field)
    }
    self = text
  }
  /// Writes UTF-8.
  public func write(to writer: inout ProtobufWriter) { writer.content(utf8) }
}

extension [UInt8]: ProtobufScalar {
  /// The layout on the wire.
  public static var wireType: ProtobufWireType { .lengthDelimited }
  /// No bytes.
  @inlinable public static var absent: [UInt8] { [] }
  /// Copies the bytes.
  public init(reading reader: inout ProtobufReader, field: UInt32) throws(ProtobufError) {
    let range = try reader.contentRange()
    self = reader.copy(range)
  }
  /// Writes the bytes.
  public func write(to writer: inout ProtobufWriter) { writer.content(self) }
}
