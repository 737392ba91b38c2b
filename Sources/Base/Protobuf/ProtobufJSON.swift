import PalbeWire

/// How a message is written as JSON.
public struct ProtobufJSONStyle: Hashable, Sendable {
  /// How fields are named.
  public enum Names: Hashable, Sendable {
    /// `trackSids`.
    case camelCase
    /// `track_sids`, as in the protocol's description.
    case original
  }

  /// How fields are named.
  public var names: Names
  /// Whether zeros, empty lists and maps, and `null` for absent messages are written.
  public var zeros: Bool

  /// A style of its own.
  public init(names: Names, zeros: Bool) {
    self.names = names
    self.zeros = zeros
  }

  /// What clients and webhooks get.
  public static let compact = ProtobufJSONStyle(names: .camelCase, zeros: false)
  /// What Twirp servers in Go answer.
  public static let twirp = ProtobufJSONStyle(names: .original, zeros: true)
}

// protobuf.dev, "ProtoJSON Format".
extension ProtobufMessage {
  /// Reads a whole JSON text: either spelling of a field's name, numbers also as texts, enumerations by name or
  /// number. Fields and enumeration names that this version does not know are skipped.
  public init(json text: String, limits: ProtobufLimits = ProtobufLimits()) throws(JSONError) {
    try self.init(whole: JSONReader(text, limit: limits.text, depth: limits.depth * 2), limits)
  }

  /// Reads a whole JSON text in UTF-8, as above.
  public init(json text: [UInt8], limits: ProtobufLimits = ProtobufLimits()) throws(JSONError) {
    try self.init(whole: JSONReader(text, limit: limits.text, depth: limits.depth * 2), limits)
  }

  /// Reads one value of a longer text, such as the `roomConfig` of an access token.
  public init(json reader: inout JSONReader, limits: ProtobufLimits = ProtobufLimits()) throws(JSONError) {
    let source = ProtobufJSONSource(reader, limits)
    do throws(ProtobufError) { self = try source.message() } catch {
      switch error {
      case .json(let error): throw error
      // Only the wire's pass throws these.
      case .truncated, .varintTooLong, .fieldNumber, .wireType, .invalidUTF8, .tooDeep, .tooManyMessages:
        throw .missing
      }
    }
    reader = source.reader
  }

  private init(whole reader: JSONReader, _ limits: ProtobufLimits) throws(JSONError) {
    var reader = reader
    try self.init(json: &reader, limits: limits)
    try reader.finish()
  }

  /// The message as JSON text without white space.
  public func json(_ style: ProtobufJSONStyle = .compact) -> String {
    var writer = JSONWriter()
    write(json: &writer, style)
    return writer.text
  }

  /// Writes the message as one value of a longer text.
  public func write(json writer: inout JSONWriter, _ style: ProtobufJSONStyle = .compact) {
    let text = ProtobufJSONText(writer, style)
    text.write(self)
    writer = text.writer
  }
}
