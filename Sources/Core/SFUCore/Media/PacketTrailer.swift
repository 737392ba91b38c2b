import PalbeLiveKit
import PalbeProtobuf

/// What LiveKit's clients append to a frame, behind its encryption end to end: when it was taken, its number, an
/// application's bytes.
///
///     frame, sealed or not | pieces, each byte inverted | length of all this, inverted | "LKTS"
///
/// A client that does not know it would take it for a part of the frame, and could not decode or decrypt it: for such a
/// one it is cut off the frame's last packet, and only on a track that was announced with it. Source: livekit-protocol §3.
enum PacketTrailer {
  /// Its length and its name.
  private static let envelope = 5

  /// Bytes of it at the end of what a frame's last packet carries; 0 where there is none.
  static func byteCount(in payload: Span<UInt8>) -> Int {
    let end = payload.count
    guard end > envelope, payload[end - 4] == 0x4c, payload[end - 3] == 0x4b, payload[end - 2] == 0x54,
      payload[end - 1] == 0x53
    else { return 0 }
    let count = Int(~payload[end - 5])
    return (envelope..<end).contains(count) ? count : 0
  }
}

extension PublishedTrack {
  /// Its frames have something at their end that the subscriber cannot take for what it is.
  func hasTrailer(unknownTo subscriber: Participant) -> Bool {
    kind == .video && !info.packetTrailerFeatures.isEmpty
      && !subscriber.client.capabilities.contains(.packetTrailer)
  }
}
