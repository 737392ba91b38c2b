import PalbeWire

/// A protobuf message, described once: `fields` names every field in the order of its number, and reading and
/// writing, on the wire and as JSON, follow from it.
///
///     struct Ping: ProtobufMessage {
///       var timestamp: Int64 = 0
///       var rtt: Int64 = 0
///       mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
///         try f.field(1, "timestamp", &timestamp)
///         try f.field(2, "rtt", &rtt)
///       }
///     }
///
/// Fields with their proto3 zero value are not written. Fields that are not named are skipped, or kept where
/// the message ends with `f.unknown(&unknownFields)`.
///
/// A oneof is an enumeration with a payload for each case; every case is a line, with a property that is nil for
/// the other cases:
///
///     try f.oneof(2, "error", &value, Value.error) { $0?.error }
public protocol ProtobufMessage: Equatable, Sendable {
  /// Every field absent.
  init()
  /// Offers each field to `f`, which reads or writes it.
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError)
  /// The text that stands for the message in JSON, for the few that are not an object there.
  var jsonText: String? { get }
  /// Takes such a text; false where it is none, or where the message is an object.
  mutating func set(jsonText: String) -> Bool
}

extension ProtobufMessage {
  /// None: the message is an object.
  public var jsonText: String? { nil }
  /// Takes no text: the message is an object.
  public mutating func set(jsonText: String) -> Bool { false }
}

/// What one decode may unfold to.
public struct ProtobufLimits: Sendable {
  /// Messages inside messages.
  public var depth: Int
  /// Nested messages and map entries in all.
  public var messages: Int
  /// Bytes of a JSON text. On the wire the caller holds the bytes already and knows how many they are.
  public var text: Int

  /// The defaults carry a room of thousands and refuse a bomb.
  public init(depth: Int = 32, messages: Int = 65_536, text: Int = 4 << 20) {
    self.depth = depth
    self.messages = messages
    self.text = text
  }
}

extension ProtobufMessage {
  /// A message with some fields set: `Ping.with { $0.timestamp = 7 }`.
  public static func with(_ set: (inout Self) -> Void) -> Self {
    var message = Self()
    set(&message)
    return message
  }

  /// Decodes a whole message.
  public init(serialized bytes: Span<UInt8>, limits: ProtobufLimits = ProtobufLimits()) throws(ProtobufError)
  {
    self.init()
    var fields = ProtobufFields(decoding: bytes, limits: limits)
    try fields.decodeAll(into: &self)
  }

  /// Decodes a whole message.
  public init(serialized bytes: [UInt8], limits: ProtobufLimits = ProtobufLimits()) throws(ProtobufError) {
    try self.init(serialized: bytes.span, limits: limits)
  }

  /// The message's bytes.
  public func serialized() -> [UInt8] {
    var fields = ProtobufFields()
    fields.writer.reserve()
    fields.encodeAll(of: self)
    return fields.writer.bytes
  }
}
