// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Subscribed tracks

extension LiveKit {
  /// Tracks to subscribe to, or to leave.
  public struct UpdateSubscription: ProtobufMessage {
    public var trackSids: [String] = []
    public var subscribe = false
    public var participantTracks: [ParticipantTracks] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sids", &trackSids)
      try f.field(2, "subscribe", &subscribe)
      try f.field(3, "participant_tracks", &participantTracks)
    }
  }

  /// Tracks by their participant.
  public struct ParticipantTracks: ProtobufMessage {
    public var participantSid = ""
    public var trackSids: [String] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "track_sids", &trackSids)
    }
  }

  /// What a subscriber needs of tracks now.
  public struct UpdateTrackSettings: ProtobufMessage {
    public var trackSids: [String] = []
    public var disabled = false
    public var quality: VideoQuality = .low
    public var width: UInt32 = 0
    public var height: UInt32 = 0
    public var fps: UInt32 = 0
    public var priority: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sids", &trackSids)
      try f.field(3, "disabled", &disabled)
      try f.field(4, "quality", &quality)
      try f.field(5, "width", &width)
      try f.field(6, "height", &height)
      try f.field(7, "fps", &fps)
      try f.field(8, "priority", &priority)
    }
  }

  /// Why a subscription failed.
  public struct SubscriptionResponse: ProtobufMessage {
    public var trackSid = ""
    public var err: SubscriptionError = .unknown

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "err", &err)
    }
  }

  /// A track has its first subscriber.
  public struct TrackSubscribed: ProtobufMessage {
    public var trackSid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
    }
  }

  /// Who may subscribe to the sender's tracks.
  public struct SubscriptionPermission: ProtobufMessage {
    public var allParticipants = false
    public var trackPermissions: [TrackPermission] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "all_participants", &allParticipants)
      try f.field(2, "track_permissions", &trackPermissions)
    }
  }

  /// Which tracks one participant may subscribe to.
  public struct TrackPermission: ProtobufMessage {
    public var participantSid = ""
    public var allTracks = false
    public var trackSids: [String] = []
    public var participantIdentity = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "all_tracks", &allTracks)
      try f.field(3, "track_sids", &trackSids)
      try f.field(4, "participant_identity", &participantIdentity)
    }
  }

  /// A publisher granted or withdrew a track.
  public struct SubscriptionPermissionUpdate: ProtobufMessage {
    public var participantSid = ""
    public var trackSid = ""
    public var allowed = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "track_sid", &trackSid)
      try f.field(3, "allowed", &allowed)
    }
  }

  /// Tracks that were paused or resumed.
  public struct StreamStateUpdate: ProtobufMessage {
    public var streamStates: [StreamStateInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "stream_states", &streamStates)
    }
  }

  /// Whether a track flows.
  public struct StreamStateInfo: ProtobufMessage {
    public var participantSid = ""
    public var trackSid = ""
    public var state: StreamState = .active

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "track_sid", &trackSid)
      try f.field(3, "state", &state)
    }
  }

  /// Which layers of a published track anyone needs.
  public struct SubscribedQualityUpdate: ProtobufMessage {
    public var trackSid = ""
    public var subscribedQualities: [SubscribedQuality] = []
    public var subscribedCodecs: [SubscribedCodec] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "subscribed_qualities", &subscribedQualities)
      try f.field(3, "subscribed_codecs", &subscribedCodecs)
    }
  }

  /// Which layers of one codec anyone needs.
  public struct SubscribedCodec: ProtobufMessage {
    public var codec = ""
    public var qualities: [SubscribedQuality] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "codec", &codec)
      try f.field(2, "qualities", &qualities)
    }
  }

  /// Whether anyone needs a layer.
  public struct SubscribedQuality: ProtobufMessage {
    public var quality: VideoQuality = .low
    public var enabled = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "quality", &quality)
      try f.field(2, "enabled", &enabled)
    }
  }

  /// Which audio codecs of a published track anyone needs.
  public struct SubscribedAudioCodecUpdate: ProtobufMessage {
    public var trackSid = ""
    public var subscribedAudioCodecs: [SubscribedAudioCodec] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "subscribed_audio_codecs", &subscribedAudioCodecs)
    }
  }

  /// Whether anyone needs a codec.
  public struct SubscribedAudioCodec: ProtobufMessage {
    public var codec = ""
    public var enabled = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "codec", &codec)
      try f.field(2, "enabled", &enabled)
    }
  }
}
