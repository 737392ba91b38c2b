/// LiveKit's client protocol: the messages of its signal link and of its data channels.
///
/// The messages stand in `Messages/`, one file for a group of them, each field once. Their numbers are those
/// of the descriptors in PyPI `livekit-protocol` 1.1.29, and the golden files of the tests were written with
/// them.
public enum LiveKit {
  /// The version a server announces: from 18 on, clients open their data channels out of band under fixed
  /// ids.
  public static let serverProtocol: Int32 = 17
}
