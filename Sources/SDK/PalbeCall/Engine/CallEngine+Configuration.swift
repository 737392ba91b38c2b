package import PalbeCallCore
package import PalbeFrameEncryption
package import PalbeUnits

extension CallEngine {
  /// What an engine is told.
  package struct Configuration: Sendable {
    /// The SFU's `ws://` or `wss://` address.
    package var edgeURL: String
    /// The access token; it names the room and the identity.
    package var token: String
    package var encryption: CallEncryption
    /// The microphone; without one no audio is published.
    package var audioSource: (any AudioSource)?
    /// The camera; without one no video is published.
    package var videoSource: (any VideoSource)?
    /// A 32-byte call key to begin with. Without one nothing is sent until `installKey`.
    package var firstKey: [UInt8]?
    /// Everybody's key in slot 0, in a call of LiveKit's frame format. Without one nothing is sent until `change`.
    package var liveKitKey: SharedLiveKitKey?
    /// Where media leaves from; by default the address that routes to the server. Port 0 takes any.
    package var bindAddress: SocketAddress?
    /// 1 to 120.
    package var framesPerSecond = 30
    package var videoBitrate = DataRate.megabitsPerSecond(1)
    package var audioBitrate = DataRate.kilobitsPerSecond(48)
    /// Until media flows, or `start` gives up.
    package var connectTimeout = TimeDelta.seconds(15)
    /// One for the process; only a test has another.
    package var keys = CallEngine.processKeys

    /// A listener, until sources are set.
    package init(edgeURL: String, token: String, encryption: CallEncryption) {
      self.edgeURL = edgeURL
      self.token = token
      self.encryption = encryption
    }

    var publishes: Set<LocalTrack> {
      var tracks: Set<LocalTrack> = []
      if audioSource != nil { tracks.insert(.microphone) }
      if videoSource != nil { tracks.insert(.camera) }
      return tracks
    }
  }

  /// Where a call's events and media go. Each is called on a thread of the engine, one call at a time, in order; it must not
  /// block. Without `onDecodedVideo` or `onPlayedAudio` that media is not decoded.
  package struct Hooks: Sendable {
    /// On the network thread. The last one is `.disconnected`.
    package var onEvent: (@Sendable (CallEvent) -> Void)?
    /// Each encoded frame before it is sealed, on the thread that encoded it.
    package var onEncodedFrame: (@Sendable (LocalTrack, [UInt8], RTPTimestamp) -> Void)?
    /// Picture number `frameIndex` was taken from the source and is about to be encoded; on the camera thread.
    package var onCapturedVideo: (@Sendable (_ frameIndex: Int, _ at: Instant) -> Void)?
    /// A decoded picture, in decode order per track; on the video thread.
    package var onDecodedVideo: (@Sendable (RemoteTrackID, I420Image, _ at: Instant) -> Void)?
    /// What is played in the next 20 ms: 960 samples, zeros when the pull was `.idle`; on the audio thread.
    package var onPlayedAudio: (@Sendable (RemoteTrackID, [Int16], AudioPull, _ at: Instant) -> Void)?

    /// Nothing is listened to.
    package init() {}
  }

  /// The call keys' memory of this process.
  package static let processKeys = CallKeyLedger()
}
