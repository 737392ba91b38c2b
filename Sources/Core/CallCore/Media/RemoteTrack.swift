import PalbeFrameEncryption
import PalbeLiveKit
import PalbeRTP
import PalbeUnits

/// A remote track that the server sends us: its streams, its order, and whether its frames may be played.
///
/// A class, because what cannot be copied has no place in a dictionary; the session owns it alone.
final class RemoteTrack {
  /// How the frames are to be read.
  enum Protection: Hashable {
    /// Not end to end.
    case plain
    /// Sealed for the call key; opened with this receiver.
    case sealed(FrameReceiverID)
    /// Never to be played: it should be sealed and is not, or it is and we have no way to open it.
    case refused
  }

  let id: RemoteTrackID
  let sid: String
  let mid: String
  let identity: String
  let kind: MediaKind
  let isEncrypted: Bool
  let protection: Protection
  let parameters: ReceivingParameters
  var ssrc: SSRC?
  var stream: StreamReceiver?
  var video: VideoReceiver
  var audio: AudioJitterBuffer
  var failures = FailureReport()
  /// The first packet arrived and was reported.
  var isAnnounced = false
  var openedFrames: UInt64 = 0
  var failedFrames: UInt64 = 0
  var framesWithoutKey: UInt64 = 0
  private let repairTime: TimeDelta

  init(
    id: RemoteTrackID, mid: String, identity: String, info: LiveKit.TrackInfo, kind: MediaKind,
    protection: Protection, parameters: ReceivingParameters, configuration: CallConfiguration
  ) {
    self.id = id
    self.mid = mid
    self.identity = identity
    self.kind = kind
    self.protection = protection
    self.parameters = parameters
    sid = info.sid
    isEncrypted = info.encryption != .none
    repairTime = configuration.videoRepairTime
    video = VideoReceiver(repairTime: configuration.videoRepairTime, capacity: kind == .video ? 1_024 : 16)
    audio = AudioJitterBuffer(
      minimumDelay: configuration.minimumAudioDelay, maximumDelay: configuration.maximumAudioDelay)
    if let ssrc = parameters.ssrc { receive(ssrc) }
  }

  /// Its packets carry this SSRC from now on.
  func receive(_ ssrc: SSRC) {
    self.ssrc = ssrc
    // Audio is played before a second request could be answered.
    let time = kind == .video ? repairTime : TimeDelta.milliseconds(200)
    stream = StreamReceiver(
      ssrc: ssrc, clockRate: kind == .video ? 90_000 : OpusPayload.clockRate,
      repairTime: parameters.repairs ? time : nil)
  }

  /// What an SFrame's associated data says of the source.
  static func source(of info: LiveKit.TrackInfo) -> FrameSource {
    switch info.source {
    case .camera: .camera
    case .microphone: .microphone
    case .screenShare: .screen
    case .screenShareAudio: .screenAudio
    default: info.type == .video ? .camera : .microphone
    }
  }

  var statistics: RemoteTrackStatistics {
    var result = RemoteTrackStatistics(identity: identity, kind: kind)
    result.packets = stream?.packetCount ?? 0
    result.bytes = stream?.byteCount ?? 0
    result.lostPackets = stream?.lostCount ?? 0
    result.jitter = stream?.jitter ?? .zero
    result.openedFrames = openedFrames
    result.failedFrames = failedFrames
    result.framesWithoutKey = framesWithoutKey
    result.nackedPackets = stream?.nackedCount ?? 0
    result.keyFrameRequests = video.asker.count
    result.playedPackets = audio.counts.played
    result.concealedPackets = audio.counts.concealed
    result.discardedPackets = audio.counts.discarded
    result.outOfOrder = audio.counts.outOfOrder
    return result
  }
}
