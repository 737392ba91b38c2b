// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Session descriptions and candidates

extension LiveKit {
  /// An offer or an answer.
  public struct SessionDescription: ProtobufMessage {
    public var type = ""
    public var sdp = ""
    /// An answer echoes the id of its offer; some clients always send 0.
    public var id: UInt32 = 0
    /// In an answer: which track each sending section carries.
    public var midToTrackId: [String: String] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "type", &type)
      try f.field(2, "sdp", &sdp)
      try f.field(3, "id", &id)
      try f.field(4, "mid_to_track_id", &midToTrackId)
    }
  }

  /// One ICE candidate.
  public struct TrickleRequest: ProtobufMessage {
    /// JSON, see `CandidateInit`.
    public var candidateInit = ""
    public var target: SignalTarget = .publisher
    /// No more candidates follow.
    public var final = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "candidateInit", &candidateInit)
      try f.field(2, "target", &target)
      try f.field(3, "final", &final)
    }
  }

  /// How many receiving sections the server needs more; the client adds them and offers again.
  public struct MediaSectionsRequirement: ProtobufMessage {
    public var numAudios: UInt32 = 0
    public var numVideos: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "num_audios", &numAudios)
      try f.field(2, "num_videos", &numVideos)
    }
  }

  /// What a resuming client still has.
  public struct SyncState: ProtobufMessage {
    public var answer: SessionDescription?
    public var subscription: UpdateSubscription?
    public var publishTracks: [TrackPublishedResponse] = []
    public var dataChannels: [DataChannelInfo] = []
    public var offer: SessionDescription?
    public var trackSidsDisabled: [String] = []
    public var datachannelReceiveStates: [DataChannelReceiveState] = []
    public var publishDataTracks: [PublishDataTrackResponse] = []
    public var dataSubscription: UpdateDataSubscription?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "answer", &answer)
      try f.field(2, "subscription", &subscription)
      try f.field(3, "publish_tracks", &publishTracks)
      try f.field(4, "data_channels", &dataChannels)
      try f.field(5, "offer", &offer)
      try f.field(6, "track_sids_disabled", &trackSidsDisabled)
      try f.field(7, "datachannel_receive_states", &datachannelReceiveStates)
      try f.field(8, "publish_data_tracks", &publishDataTracks)
      try f.field(9, "data_subscription", &dataSubscription)
    }
  }

  /// The last reliable packet seen of a sender.
  public struct DataChannelReceiveState: ProtobufMessage {
    public var publisherSid = ""
    public var lastSeq: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "publisher_sid", &publisherSid)
      try f.field(2, "last_seq", &lastSeq)
    }
  }

  /// A data channel that is open.
  public struct DataChannelInfo: ProtobufMessage {
    public var label = ""
    public var id: UInt32 = 0
    public var target: SignalTarget = .publisher

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "label", &label)
      try f.field(2, "id", &id)
      try f.field(3, "target", &target)
    }
  }
}
