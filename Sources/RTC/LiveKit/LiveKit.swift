/// LiveKit's protocol: the messages of its signal link, of its data channels, of the RoomService and of webhooks.
///
/// The messages stand in `Messages/`, one file for a group of them, each field once, for protobuf and for JSON.
/// Their numbers and names are those of the descriptors in PyPI `livekit-protocol` 1.1.29, and the golden files
/// of the tests were written with it. `RoomService/` has the calls, their limits and Twirp's bodies and errors;
/// `Webhooks/` what a webhook posts.
public enum LiveKit {
  /// From this version on, both sides have their data channels under fixed numbers (`NegotiatedDataChannelID`), and nobody
  /// opens them on the wire.
  public static let negotiatedChannelsProtocol: Int32 = 18

  /// The version a server announces to a client of another one. One that opens its channels on the wire is told 17.
  public static func serverProtocol(for client: Int32) -> Int32 {
    client >= negotiatedChannelsProtocol ? negotiatedChannelsProtocol : negotiatedChannelsProtocol - 1
  }

  /// The release of LiveKit's server whose abilities clients may count on, for `ServerInfo.version`: below 1.8.0 they
  /// make no remote procedure calls.
  public static let serverRelease = "1.8.0"
}
