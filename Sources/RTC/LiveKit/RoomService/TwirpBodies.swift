import PalbeProtobuf
import PalbeWire

extension LiveKit.TwirpEncoding {
  /// A response's body. JSON has the protocol's own names and all zeros, as LiveKit's server answers.
  public func encode(_ message: some ProtobufMessage) -> [UInt8] {
    switch self {
    case .protobuf: message.serialized()
    case .json: Array(message.json(.twirp).utf8)
    }
  }

  /// A request's body; what cannot be read is `malformed`.
  public func decode<Message: ProtobufMessage>(
    _ type: Message.Type = Message.self, from body: [UInt8]
  ) throws(LiveKit.TwirpError) -> Message {
    switch self {
    case .protobuf:
      do throws(ProtobufError) { return try Message(serialized: body) } catch {
        throw LiveKit.TwirpError(.malformed, "the request is not the protobuf message it should be")
      }
    case .json:
      do throws(JSONError) { return try Message(json: body) } catch {
        throw LiveKit.TwirpError(.malformed, "the json request could not be decoded")
      }
    }
  }
}
