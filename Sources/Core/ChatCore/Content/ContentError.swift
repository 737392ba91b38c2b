import PalbeProtobuf
import PalbeWire

/// Why a message cannot be written, or bytes are not one.
package enum ContentError: Error, Equatable, Sendable {
  /// The bytes are not protobuf.
  case malformed(ProtobufError)
  /// A version that this code does not read.
  case unsupportedVersion(UInt32)
  /// The padding does not end in 0x80 and zeros, or the length is not one that padding makes.
  case padding
  /// A field that must be there is not.
  case missing(StaticField)
  /// A field has more bytes, code units or elements than it may.
  case limit(field: StaticField, limit: Int)
  /// A field's value is not one of those it may have.
  case invalid(StaticField)
  /// More than one content.
  case severalContents
  /// The mention at this index lies outside of the text, cuts a surrogate pair, is empty or overlaps one before it.
  /// Only who sends is told; who receives drops it.
  case mention(index: Int)
}
