import PalbeWire

/// Why bytes are not the protobuf message they should be.
public enum ProtobufError: Error, Equatable, Sendable {
  /// A value needs more bytes than are left.
  case truncated(needed: Int, have: Int)
  /// A varint is longer than ten bytes or does not fit into 64 bits.
  case varintTooLong
  /// The tag carries the field number 0 or one above 2^29 - 1.
  case fieldNumber
  /// Groups (wire types 3 and 4) and the undefined wire types 6 and 7 are refused.
  case wireType(field: UInt32, got: UInt8)
  /// The text of this field is not UTF-8, or the frame around it is malformed.
  case invalidUTF8(field: UInt32)
  /// Messages nested deeper than the limit.
  case tooDeep(limit: Int)
  /// More nested messages in one decode than the limit: guards against a small frame that unfolds in memory.
  case tooManyMessages(limit: Int)
  /// The message came as JSON, and this is wrong with it. Nothing else is thrown for JSON.
  case json(JSONError)
}

/// How a value is laid out on the wire.
public enum ProtobufWireType: UInt8, Sendable {
  /// A base-128 number of up to ten bytes.
  case varint = 0
  /// Eight little-endian bytes.
  case fixed64 = 1
  /// A varint length and that many bytes.
  case lengthDelimited = 2
  /// Four little-endian bytes.
  case fixed32 = 5
}
