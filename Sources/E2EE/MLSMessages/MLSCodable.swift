public import PalbeWire

/// A structure in the TLS presentation language as RFC 9420 §2.1 uses it.
///
/// Encoding is canonical: what decodes encodes to the same bytes.
public protocol MLSCodable: Sendable {
  /// Reads one structure; bytes after it stay in the reader.
  init(from reader: inout ByteReader) throws(WireError)
  /// Appends the structure.
  func encode(into writer: inout ByteWriter)
}

extension MLSCodable {
  /// The structure's bytes.
  public func encoded() -> [UInt8] {
    var writer = ByteWriter(capacity: 256)
    encode(into: &writer)
    return writer.bytes
  }

  /// Decodes exactly one structure from all of `bytes`; bytes left over are refused.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = ByteReader(bytes.span)
    self = try Self(from: &reader)
    try reader.finish()
  }
}

/// A 16-bit registry value, such as an extension type; unknown values are carried.
public protocol MLSRegistryValue: RawRepresentable, Hashable, MLSCodable where RawValue == UInt16 {
  /// Any value, known or not.
  init(rawValue: UInt16)
}

extension MLSRegistryValue {
  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) { self.init(rawValue: try reader.uint16()) }
  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.uint16(rawValue) }

  /// True for the values reserved to exercise extensibility, 0x0A0A to 0xEAEA (RFC 9420 §13.5).
  public var isGREASE: Bool {
    rawValue & 0x0f0f == 0x0a0a && rawValue >> 8 == rawValue & 0xff && rawValue < 0xf000
  }
}
