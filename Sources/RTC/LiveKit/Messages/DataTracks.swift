// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Data tracks and blobs

extension LiveKit {
  /// A published data track.
  public struct DataTrackInfo: ProtobufMessage {
    public var pubHandle: UInt32 = 0
    public var sid = ""
    public var name = ""
    public var encryption: EncryptionType = .none
    public var frameEncoding: DataTrackFrameEncoding?
    public var schema: DataTrackSchemaId?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "pub_handle", &pubHandle)
      try f.field(2, "sid", &sid)
      try f.field(3, "name", &name)
      try f.field(4, "encryption", &encryption)
      try f.field(5, "frame_encoding", &frameEncoding)
      try f.field(6, "schema", &schema)
    }
  }

  /// How a data track's frames are encoded.
  public struct DataTrackFrameEncoding: ProtobufMessage {
    /// Encodings with a number.
    public struct WellKnownFrameEncoding: ProtobufEnum {
      public static let unspecified = WellKnownFrameEncoding(rawValue: 0)
      public static let ros1 = WellKnownFrameEncoding(rawValue: 1)
      public static let cdr = WellKnownFrameEncoding(rawValue: 2)
      public static let protobuf = WellKnownFrameEncoding(rawValue: 3)
      public static let flatbuffer = WellKnownFrameEncoding(rawValue: 4)
      public static let cbor = WellKnownFrameEncoding(rawValue: 5)
      public static let msgpack = WellKnownFrameEncoding(rawValue: 6)
      public static let json = WellKnownFrameEncoding(rawValue: 7)
      public static let names: KeyValuePairs<Self, String> = [
        .unspecified: "WELL_KNOWN_FRAME_ENCODING_UNSPECIFIED", .ros1: "WELL_KNOWN_FRAME_ENCODING_ROS1",
        .cdr: "WELL_KNOWN_FRAME_ENCODING_CDR", .protobuf: "WELL_KNOWN_FRAME_ENCODING_PROTOBUF",
        .flatbuffer: "WELL_KNOWN_FRAME_ENCODING_FLATBUFFER", .cbor: "WELL_KNOWN_FRAME_ENCODING_CBOR",
        .msgpack: "WELL_KNOWN_FRAME_ENCODING_MSGPACK", .json: "WELL_KNOWN_FRAME_ENCODING_JSON",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case wellKnown(WellKnownFrameEncoding)
      case custom(String)

      public var wellKnown: WellKnownFrameEncoding? { if case .wellKnown(let it) = self { it } else { nil } }
      public var custom: String? { if case .custom(let it) = self { it } else { nil } }
    }

    public var value: Value?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "well_known", &value, Value.wellKnown) { $0?.wellKnown }
      try f.oneof(2, "custom", &value, Value.custom) { $0?.custom }
    }
  }

  /// How a schema is written.
  public struct DataTrackSchemaEncoding: ProtobufMessage {
    /// Schema languages with a number.
    public struct WellKnownSchemaEncoding: ProtobufEnum {
      public static let unspecified = WellKnownSchemaEncoding(rawValue: 0)
      public static let protobuf = WellKnownSchemaEncoding(rawValue: 1)
      public static let flatbuffer = WellKnownSchemaEncoding(rawValue: 2)
      public static let ros1Msg = WellKnownSchemaEncoding(rawValue: 3)
      public static let ros2Msg = WellKnownSchemaEncoding(rawValue: 4)
      public static let ros2Idl = WellKnownSchemaEncoding(rawValue: 5)
      public static let omgIdl = WellKnownSchemaEncoding(rawValue: 6)
      public static let jsonSchema = WellKnownSchemaEncoding(rawValue: 7)
      public static let names: KeyValuePairs<Self, String> = [
        .unspecified: "WELL_KNOWN_SCHEMA_ENCODING_UNSPECIFIED",
        .protobuf: "WELL_KNOWN_SCHEMA_ENCODING_PROTOBUF",
        .flatbuffer: "WELL_KNOWN_SCHEMA_ENCODING_FLATBUFFER",
        .ros1Msg: "WELL_KNOWN_SCHEMA_ENCODING_ROS1_MSG", .ros2Msg: "WELL_KNOWN_SCHEMA_ENCODING_ROS2_MSG",
        .ros2Idl: "WELL_KNOWN_SCHEMA_ENCODING_ROS2_IDL", .omgIdl: "WELL_KNOWN_SCHEMA_ENCODING_OMG_IDL",
        .jsonSchema: "WELL_KNOWN_SCHEMA_ENCODING_JSON_SCHEMA",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case wellKnown(WellKnownSchemaEncoding)
      case custom(String)

      public var wellKnown: WellKnownSchemaEncoding? { if case .wellKnown(let it) = self { it } else { nil } }
      public var custom: String? { if case .custom(let it) = self { it } else { nil } }
    }

    public var value: Value?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "well_known", &value, Value.wellKnown) { $0?.wellKnown }
      try f.oneof(2, "custom", &value, Value.custom) { $0?.custom }
    }
  }

  /// Names the schema of a data track's frames.
  public struct DataTrackSchemaId: ProtobufMessage {
    public var name = ""
    public var encoding: DataTrackSchemaEncoding?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "name", &name)
      try f.field(2, "encoding", &encoding)
    }
  }

  /// The sender of a data track packet.
  public struct DataTrackExtensionParticipantSid: ProtobufMessage {
    public var id: DataTrackExtensionID = .invalid
    public var participantSid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "id", &id)
      try f.field(2, "participant_sid", &participantSid)
    }
  }

  /// What a subscriber of a data track wants.
  public struct DataTrackSubscriptionOptions: ProtobufMessage {
    public var targetFps: UInt32?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "target_fps", &targetFps)
    }
  }

  /// A client publishes a data track.
  public struct PublishDataTrackRequest: ProtobufMessage {
    public var pubHandle: UInt32 = 0
    public var name = ""
    public var encryption: EncryptionType = .none
    public var frameEncoding: DataTrackFrameEncoding?
    public var schema: DataTrackSchemaId?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "pub_handle", &pubHandle)
      try f.field(2, "name", &name)
      try f.field(3, "encryption", &encryption)
      try f.field(4, "frame_encoding", &frameEncoding)
      try f.field(5, "schema", &schema)
    }
  }

  /// The server has taken a data track.
  public struct PublishDataTrackResponse: ProtobufMessage {
    public var info: DataTrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "info", &info)
    }
  }

  /// A client drops its data track.
  public struct UnpublishDataTrackRequest: ProtobufMessage {
    public var pubHandle: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "pub_handle", &pubHandle)
    }
  }

  /// The server has dropped a data track.
  public struct UnpublishDataTrackResponse: ProtobufMessage {
    public var info: DataTrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "info", &info)
    }
  }

  /// The handles that stand in a subscriber's data track packets.
  public struct DataTrackSubscriberHandles: ProtobufMessage {
    /// Whose track a handle is.
    public struct PublishedDataTrack: ProtobufMessage {
      public var publisherIdentity = ""
      public var publisherSid = ""
      public var trackSid = ""

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "publisher_identity", &publisherIdentity)
        try f.field(2, "publisher_sid", &publisherSid)
        try f.field(3, "track_sid", &trackSid)
      }
    }

    public var subHandles: [UInt32: PublishedDataTrack] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "sub_handles", &subHandles)
    }
  }

  /// Data tracks to subscribe to, or to leave.
  public struct UpdateDataSubscription: ProtobufMessage {
    /// One data track.
    public struct Update: ProtobufMessage {
      public var trackSid = ""
      public var subscribe = false
      public var options: DataTrackSubscriptionOptions?

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "track_sid", &trackSid)
        try f.field(2, "subscribe", &subscribe)
        try f.field(3, "options", &options)
      }
    }

    public var updates: [Update] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "updates", &updates)
    }
  }

  /// Names a blob.
  public struct DataBlobKey: ProtobufMessage {
    /// What it carries.
    public enum Key: Equatable, Sendable {
      case generic(String)
      case schemaId(DataTrackSchemaId)

      public var generic: String? { if case .generic(let it) = self { it } else { nil } }
      public var schemaId: DataTrackSchemaId? { if case .schemaId(let it) = self { it } else { nil } }
    }

    public var key: Key?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "generic", &key, Key.generic) { $0?.generic }
      try f.oneof(2, "schema_id", &key, Key.schemaId) { $0?.schemaId }
    }
  }

  /// Bytes kept at the server.
  public struct DataBlob: ProtobufMessage {
    public var key: DataBlobKey?
    public var contents: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "key", &key)
      try f.field(2, "contents", &contents)
    }
  }

  /// Keep a blob.
  public struct StoreDataBlobRequest: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var blob: DataBlob?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.field(2, "blob", &blob)
    }
  }

  /// A blob is kept.
  public struct StoreDataBlobResponse: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var key: DataBlobKey?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.field(2, "key", &key)
    }
  }

  /// Fetch a blob.
  public struct GetDataBlobRequest: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var participantIdentity = ""
    public var key: DataBlobKey?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.field(2, "participant_identity", &participantIdentity)
      try f.field(3, "key", &key)
    }
  }

  /// A blob.
  public struct GetDataBlobResponse: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var blob: DataBlob?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.field(2, "blob", &blob)
    }
  }
}
