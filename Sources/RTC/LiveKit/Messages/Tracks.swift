// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Published tracks

extension LiveKit {
  /// A client is about to publish a track.
  public struct AddTrackRequest: ProtobufMessage {
    /// The client's id of the track, also in its msid.
    public var cid = ""
    public var name = ""
    public var type: TrackType = .audio
    public var width: UInt32 = 0
    public var height: UInt32 = 0
    public var muted = false
    public var disableDtx = false
    public var source: TrackSource = .unknown
    public var layers: [VideoLayer] = []
    public var simulcastCodecs: [SimulcastCodec] = []
    public var sid = ""
    public var stereo = false
    public var disableRed = false
    public var encryption: EncryptionType = .none
    public var stream = ""
    public var backupCodecPolicy: BackupCodecPolicy = .preferRegression
    public var audioFeatures: [AudioTrackFeature] = []
    public var packetTrailerFeatures: [PacketTrailerFeature] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "cid", &cid)
      try f.field(2, "name", &name)
      try f.field(3, "type", &type)
      try f.field(4, "width", &width)
      try f.field(5, "height", &height)
      try f.field(6, "muted", &muted)
      try f.field(7, "disable_dtx", &disableDtx)
      try f.field(8, "source", &source)
      try f.field(9, "layers", &layers)
      try f.field(10, "simulcast_codecs", &simulcastCodecs)
      try f.field(11, "sid", &sid)
      try f.field(12, "stereo", &stereo)
      try f.field(13, "disable_red", &disableRed)
      try f.field(14, "encryption", &encryption)
      try f.field(15, "stream", &stream)
      try f.field(16, "backup_codec_policy", &backupCodecPolicy)
      try f.field(17, "audio_features", &audioFeatures)
      try f.field(18, "packet_trailer_features", &packetTrailerFeatures)
    }
  }

  /// A codec in which a track will be published.
  public struct SimulcastCodec: ProtobufMessage {
    public var codec = ""
    public var cid = ""
    public var layers: [VideoLayer] = []
    public var videoLayerMode: VideoLayer.Mode = .modeUnused

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "codec", &codec)
      try f.field(2, "cid", &cid)
      try f.field(4, "layers", &layers)
      try f.field(5, "video_layer_mode", &videoLayerMode)
    }
  }

  /// The server has taken a track under its own id.
  public struct TrackPublishedResponse: ProtobufMessage {
    public var cid = ""
    public var track: TrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "cid", &cid)
      try f.field(2, "track", &track)
    }
  }

  /// The server has dropped a track.
  public struct TrackUnpublishedResponse: ProtobufMessage {
    public var trackSid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
    }
  }

  /// A published track.
  public struct TrackInfo: ProtobufMessage {
    public var sid = ""
    public var type: TrackType = .audio
    public var name = ""
    public var muted = false
    public var width: UInt32 = 0
    public var height: UInt32 = 0
    public var simulcast = false
    public var disableDtx = false
    public var source: TrackSource = .unknown
    public var layers: [VideoLayer] = []
    public var mimeType = ""
    public var mid = ""
    public var codecs: [SimulcastCodecInfo] = []
    public var stereo = false
    public var disableRed = false
    public var encryption: EncryptionType = .none
    public var stream = ""
    public var version: TimedVersion?
    public var audioFeatures: [AudioTrackFeature] = []
    public var backupCodecPolicy: BackupCodecPolicy = .preferRegression
    public var packetTrailerFeatures: [PacketTrailerFeature] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sid", &sid)
      try f.field(2, "type", &type)
      try f.field(3, "name", &name)
      try f.field(4, "muted", &muted)
      try f.field(5, "width", &width)
      try f.field(6, "height", &height)
      try f.field(7, "simulcast", &simulcast)
      try f.field(8, "disable_dtx", &disableDtx)
      try f.field(9, "source", &source)
      try f.field(10, "layers", &layers)
      try f.field(11, "mime_type", &mimeType)
      try f.field(12, "mid", &mid)
      try f.field(13, "codecs", &codecs)
      try f.field(14, "stereo", &stereo)
      try f.field(15, "disable_red", &disableRed)
      try f.field(16, "encryption", &encryption)
      try f.field(17, "stream", &stream)
      try f.field(18, "version", &version)
      try f.field(19, "audio_features", &audioFeatures)
      try f.field(20, "backup_codec_policy", &backupCodecPolicy)
      try f.field(21, "packet_trailer_features", &packetTrailerFeatures)
    }
  }

  /// A codec in which a track is published.
  public struct SimulcastCodecInfo: ProtobufMessage {
    public var mimeType = ""
    public var mid = ""
    public var cid = ""
    public var layers: [VideoLayer] = []
    public var videoLayerMode: VideoLayer.Mode = .modeUnused
    public var sdpCid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "mime_type", &mimeType)
      try f.field(2, "mid", &mid)
      try f.field(3, "cid", &cid)
      try f.field(4, "layers", &layers)
      try f.field(5, "video_layer_mode", &videoLayerMode)
      try f.field(6, "sdp_cid", &sdpCid)
    }
  }

  /// One layer of a video track.
  public struct VideoLayer: ProtobufMessage {
    /// How layers map to streams.
    public struct Mode: ProtobufEnum {
      public static let modeUnused = Mode(rawValue: 0)
      public static let oneSpatialLayerPerStream = Mode(rawValue: 1)
      public static let multipleSpatialLayersPerStream = Mode(rawValue: 2)
      public static let oneSpatialLayerPerStreamIncompleteRtcpSr = Mode(rawValue: 3)
      public static let names: KeyValuePairs<Self, String> = [
        .modeUnused: "MODE_UNUSED", .oneSpatialLayerPerStream: "ONE_SPATIAL_LAYER_PER_STREAM",
        .multipleSpatialLayersPerStream: "MULTIPLE_SPATIAL_LAYERS_PER_STREAM",
        .oneSpatialLayerPerStreamIncompleteRtcpSr: "ONE_SPATIAL_LAYER_PER_STREAM_INCOMPLETE_RTCP_SR",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    public var quality: VideoQuality = .low
    public var width: UInt32 = 0
    public var height: UInt32 = 0
    /// Bits per second.
    public var bitrate: UInt32 = 0
    public var ssrc: UInt32 = 0
    public var spatialLayer: Int32 = 0
    public var rid = ""
    public var repairSsrc: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "quality", &quality)
      try f.field(2, "width", &width)
      try f.field(3, "height", &height)
      try f.field(4, "bitrate", &bitrate)
      try f.field(5, "ssrc", &ssrc)
      try f.field(6, "spatial_layer", &spatialLayer)
      try f.field(7, "rid", &rid)
      try f.field(8, "repair_ssrc", &repairSsrc)
    }
  }

  /// A track was muted, or shall be.
  public struct MuteTrackRequest: ProtobufMessage {
    public var sid = ""
    public var muted = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sid", &sid)
      try f.field(2, "muted", &muted)
    }
  }

  /// The features of a published track changed.
  public struct UpdateLocalAudioTrack: ProtobufMessage {
    public var trackSid = ""
    public var features: [AudioTrackFeature] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "features", &features)
    }
  }

  /// The size of a published track changed.
  public struct UpdateLocalVideoTrack: ProtobufMessage {
    public var trackSid = ""
    public var width: UInt32 = 0
    public var height: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "width", &width)
      try f.field(3, "height", &height)
    }
  }

  /// The layers of a published track changed.
  public struct UpdateVideoLayers: ProtobufMessage {
    public var trackSid = ""
    public var layers: [VideoLayer] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "track_sid", &trackSid)
      try f.field(2, "layers", &layers)
    }
  }
}
