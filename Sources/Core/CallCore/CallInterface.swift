public import PalbeFrameEncryption
public import PalbeUnits

/// A track that this client publishes.
public enum LocalTrack: Hashable, Sendable, CaseIterable {
  case microphone, camera
}

/// The kind of a remote track.
public enum MediaKind: Hashable, Sendable {
  case audio, video
}

/// A remote track that is being received, for as long as the session lasts.
public struct RemoteTrackID: Hashable, Sendable {
  /// Numbered by the session from 0; never reused.
  public let rawValue: Int
  init(_ rawValue: Int) { self.rawValue = rawValue }
}

/// How the frames of a call are protected end to end.
public enum CallEncryption: Sendable, Equatable {
  /// Frames are protected hop by hop only; the SFU can read them.
  case none
  /// SFrame under the call key (suite 5). Nothing is sent before the first key is installed.
  case sframe
  /// LiveKit's frame format, for calls with LiveKit's own clients. Nothing is sent before the first key is set.
  case liveKit(LiveKitKeyRing.Configuration)
}

/// What a call session needs to know from the start.
public struct CallConfiguration: Sendable {
  /// The room, as in the token's `video.room`.
  public var room: String
  /// This participant, as in the token's subject.
  public var identity: String
  /// What is published. Empty for a listener.
  public var publishes: Set<LocalTrack>
  public var encryption: CallEncryption
  /// Tells one call from the next in the same room; nil where there is no id for it. End-to-end keys that
  /// served a room under one id are refused for another.
  public var call: String?
  /// Sends the microphone's level with each packet, where the SFU can read it and tell who speaks. Off,
  /// because it shows when somebody talks.
  public var sendsAudioLevel = false
  /// Shown to the server as the client's version; empty when there is nothing to tell.
  public var clientVersion = ""
  /// Announced with the camera track.
  public var videoWidth = 640
  public var videoHeight = 360
  /// Recvonly sections of the first offer, so that a room of this size needs no second one.
  public var expectedRemoteParticipants = 3
  /// How long a receiver waits for a missing video packet before it asks for a key frame.
  public var videoRepairTime = TimeDelta.milliseconds(400)
  /// Bounds of the audio jitter buffer's delay.
  public var minimumAudioDelay = TimeDelta.milliseconds(20)
  public var maximumAudioDelay = TimeDelta.milliseconds(500)
  /// The largest UDP payload that is sent.
  public var maximumDatagramByteCount = 1_200

  public init(room: String, identity: String, publishes: Set<LocalTrack>, encryption: CallEncryption) {
    self.room = room
    self.identity = identity
    self.publishes = publishes
    self.encryption = encryption
  }
}

/// Why a session ended.
public enum CallEndReason: Hashable, Sendable {
  /// `leave` was called.
  case left
  /// The server said so; `code` is LiveKit's DisconnectReason.
  case server(code: Int32)
  /// The path was lost: no ICE consent, or the handshake failed.
  case connectionLost
  /// The signaling link closed before media could flow.
  case signalingLost
  /// The server sent something that the protocol does not allow.
  case protocolViolation
}

/// What a session reports.
public enum CallEvent: Sendable, Equatable {
  /// ICE and DTLS are up; media can flow.
  case connected
  /// Nothing follows.
  case disconnected(CallEndReason)
  case participantConnected(identity: String)
  case participantDisconnected(identity: String)
  case participantUpdated(identity: String, audioMuted: Bool, videoEnabled: Bool)
  /// The first packet of a remote track arrived; pull its media from now on.
  case trackSubscribed(RemoteTrackID, identity: String, kind: MediaKind, isEncrypted: Bool)
  case trackUnsubscribed(RemoteTrackID)
  /// Encode the next frame as a key frame.
  case keyFrameRequested(LocalTrack)
  /// Who speaks, loudest first.
  case activeSpeakersChanged(identities: [String])
  /// Frames of a participant cannot be opened; reported when it begins and once a second while it goes on.
  case decryptionFailing(identity: String, kind: MediaKind, failures: UInt64)
  /// The server muted one of our tracks.
  case mutedByServer(LocalTrack, Bool)
  /// The server does not take one of our tracks, such as one in clear in a room for encrypted ones: nothing of it is sent.
  /// The reason is LiveKit's word, such as `NOT_ALLOWED`.
  case refusedByServer(LocalTrack, reason: String)
}

/// A decrypted encoded video frame, in decode order.
public struct ReceivedVideoFrame: Sendable {
  public var track: RemoteTrackID
  /// The encoded frame (VP8).
  public var bytes: [UInt8]
  public var timestamp: RTPTimestamp
  public var isKeyFrame: Bool
  /// When its last packet arrived.
  public var arrival: Instant
}

/// What to play for the next 20 ms of a remote audio track.
public enum AudioPull: Sendable, Equatable {
  /// The next packet: decode it.
  case packet([UInt8])
  /// A packet was lost and the one after it is here: decode the loss from its forward error correction; the
  /// packet itself comes with the next pull.
  case forwardErrorCorrection([UInt8])
  /// A packet was lost: conceal it.
  case conceal
  /// Nothing is expected: the track is muted, has not begun, or sends no audio now.
  case idle
}

/// Why a frame was not sent.
public enum SendError: Error, Equatable, Sendable {
  /// Media cannot flow yet, or not any more.
  case notConnected
  /// End-to-end encryption is on and no key is installed.
  case noKey
  /// The track is not published or is muted.
  case notPublished
  /// The frame is empty or larger than 1 MiB.
  case frameSize(Int)
  /// The frame's key or its limits are used up, or sealing failed.
  case sealing(SealError)
}

/// Counters of one remote track.
public struct RemoteTrackStatistics: Sendable, Equatable {
  public var identity: String
  public var kind: MediaKind
  /// RTP packets received, repairs included, and those that never came.
  public var packets: UInt64 = 0
  public var bytes: UInt64 = 0
  public var lostPackets: UInt64 = 0
  /// RFC 3550 interarrival jitter.
  public var jitter = TimeDelta.zero
  /// Frames (video) or packets (audio) that were opened, waited for a key, or could not be opened.
  public var openedFrames: UInt64 = 0
  public var failedFrames: UInt64 = 0
  /// Frames under a key that was not installed in time.
  public var framesWithoutKey: UInt64 = 0
  public var nackedPackets: UInt64 = 0
  public var keyFrameRequests: UInt64 = 0
  /// Audio pulls that were answered with a packet, with concealment because the packet came too late or
  /// never.
  public var playedPackets: UInt64 = 0
  public var concealedPackets: UInt64 = 0
  /// Audio packets left out to bring a grown delay down.
  public var discardedPackets: UInt64 = 0
  /// Frames or packets that came out of order after reordering; always zero in a correct session.
  public var outOfOrder: UInt64 = 0
}

/// Counters of a session.
public struct CallStatistics: Sendable, Equatable {
  /// From the SFU's receiver reports; nil before the first.
  public var roundTrip: TimeDelta?
  public var sentPackets: UInt64 = 0
  public var sentBytes: UInt64 = 0
  public var retransmittedPackets: UInt64 = 0
  public var sealedFrames: UInt64 = 0
  /// Different call keys that were installed.
  public var keyEpochs = 0
  public var remoteTracks: [RemoteTrackStatistics] = []
}
