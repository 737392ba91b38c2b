import PalbeFrameEncryption
import PalbeRTP
import PalbeUnits

/// A track of our own: its place in the session, its sequence numbers, and what was sent last.
///
/// The packets that left are kept protected, and a repair sends the same bytes again: nothing else is ever
/// protected under their numbers. A class, because what cannot be copied has no place in an array; the
/// session owns it alone.
final class MediaSender {
  let track: LocalTrack
  /// Our name for it until the server gives it a sid.
  let cid: String
  let ssrc: SSRC
  let kind: MediaKind
  let clockRate: Int
  var sid: String?
  var isMuted = false
  /// The server does not take it.
  var isRefused = false
  /// The mute that the server was told.
  var announcedMute = false
  /// What the last answer made of the track; nil when it does not want it.
  var parameters: SendingParameters?
  /// The frame sealer, with end-to-end encryption.
  var sealer: FrameSenderID?
  var statistics: SenderStatistics
  var sent: RetransmissionCache
  var packetizer: VP8Packetizer
  var throttle = KeyFrameThrottle()
  private var nextSequence: SequenceNumber

  /// Bytes of a header with its extensions and of an SRTP tag, at most.
  private static let overhead = 12 + 32 + 16

  init(_ track: LocalTrack, maximumDatagramByteCount: Int, using random: inout RandomSource) {
    self.track = track
    kind = track == .camera ? .video : .audio
    clockRate = track == .camera ? 90_000 : OpusPayload.clockRate
    cid = (track == .camera ? "camera-" : "microphone-") + String(random.next() >> 16, radix: 16)
    ssrc = SSRC(UInt32(truncatingIfNeeded: random.next()) | 1)
    // Below 32,768: the loss of the first packets cannot hide a roll-over (RFC 3711 §3.3.1).
    nextSequence = SequenceNumber(UInt16(truncatingIfNeeded: random.next() & 0x7fff))
    statistics = SenderStatistics(ssrc: ssrc, clockRate: clockRate)
    sent = RetransmissionCache(capacity: track == .camera ? 2_048 : 256)
    packetizer = VP8Packetizer(
      maximumPayloadByteCount: maximumDatagramByteCount - Self.overhead,
      firstPictureID: UInt16(truncatingIfNeeded: random.next()))
  }

  /// Each number is used once.
  func takeSequence() -> SequenceNumber {
    defer { nextSequence = nextSequence + 1 }
    return nextSequence
  }
}
