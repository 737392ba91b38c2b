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
      try f.field(1, &cid)
      try f.field(2, &name)
      try f.field(3, &type)
      try f.field(4, &width)
      try f.field(5, &height)
      try f.field(6, &muted)
      try f.field(7, &disableDtx)
      try f.field(8, &source)
      try f.field(9, &layers)
      try f.field(10, &simulcastCodecs)
      try f.field(11, &sid)
      try f.field(12, &stereo)
      try f.field(13, &disableRed)
      try f.field(14, &encryption)
      try f.field(15, &stream)
      try f.field(16, &backupCodecPolicy)
      try f.field(17, &audioFeatures)
      try f.field(18, &packetTrailerFeatures)
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
      try f.field(1, &codec)
      try f.field(2, &cid)
      try f.field(4, &layers)
      try f.field(5, &videoLayerMode)
    }
  }

  /// The server has taken a track under its own id.
  public struct TrackPublishedResponse: ProtobufMessage {
    public var cid = ""
    public var track: TrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &cid)
      try f.field(2, &track)
    }
  }

  /// The server has dropped a track.
  public struct TrackUnpublishedResponse: ProtobufMessage {
    public var trackSid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &trackSid)
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
      try f.field(1, &sid)
      try f.field(2, &type)
      try f.field(3, &name)
      try f.field(4, &muted)
      try f.field(5, &width)
      try f.field(6, &height)
      try f.field(7, &simulcast)
      try f.field(8, &disableDtx)
      try f.field(9, &source)
      try f.field(10, &layers)
      try f.field(11, &mimeType)
      try f.field(12, &mid)
      try f.field(13, &codecs)
      try f.field(14, &stereo)
      try f.field(15, &disableRed)
      try f.field(16, &encryption)
      try f.field(17, &stream)
      try f.field(18, &version)
      try f.field(19, &audioFeatures)
      try f.field(20, &backupCodecPolicy)
      try f.field(21, &packetTrailerFeatures)
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
      try f.field(1, &mimeType)
      try f.field(2, &mid)
      try f.field(3, &cid)
      try f.field(4, &layers)
      try f.field(5, &videoLayerMode)
      try f.field(6, &sdpCid)
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
      try f.field(1, &quality)
      try f.field(2, &width)
      try f.field(3, &height)
      try f.field(4, &bitrate)
      try f.field(5, &ssrc)
      try f.field(6, &spatialLayer)
      try f.field(7, &rid)
      try f.field(8, &repairSsrc)
    }
  }

  /// A track was muted, or shall be.
  public struct MuteTrackRequest: ProtobufMessage {
    public var sid = ""
    public var muted = false

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &sid)
      try f.field(2, &muted)
    }
  }

  /// The features of a published track changed.
  public struct UpdateLocalAudioTrack: ProtobufMessage {
    public var trackSid = ""
    public var features: [AudioTrackFeature] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &trackSid)
      try f.field(2, &features)
    }
  }

  /// The size of a published track changed.
  public struct UpdateLocalVideoTrack: ProtobufMessage {
    public var trackSid = ""
    public var width: UInt32 = 0
    public var height: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &trackSid)
      try f.field(2, &width)
      try f.field(3, &height)
    }
  }

  /// The layers of a published track changed.
  public struct UpdateVideoLayers: ProtobufMessage {
    public var trackSid = ""
    public var layers: [VideoLayer] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &trackSid)
      try f.field(2, &layers)
    }
  }
}
