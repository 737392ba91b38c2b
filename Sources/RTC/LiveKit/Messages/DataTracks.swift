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
      try f.field(1, &pubHandle)
      try f.field(2, &sid)
      try f.field(3, &name)
      try f.field(4, &encryption)
      try f.field(5, &frameEncoding)
      try f.field(6, &schema)
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

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case wellKnown(WellKnownFrameEncoding)
      case custom(String)
    }

    public var value: Value?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch value {
        case .wellKnown(let value): f.put(1, value)
        case .custom(let value): f.put(2, value)
        case nil: break
        }
      case 1: value = .wellKnown(try f.take())
      case 2: value = .custom(try f.take())
      default: break
      }
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

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case wellKnown(WellKnownSchemaEncoding)
      case custom(String)
    }

    public var value: Value?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch value {
        case .wellKnown(let value): f.put(1, value)
        case .custom(let value): f.put(2, value)
        case nil: break
        }
      case 1: value = .wellKnown(try f.take())
      case 2: value = .custom(try f.take())
      default: break
      }
    }
  }

  /// Names the schema of a data track's frames.
  public struct DataTrackSchemaId: ProtobufMessage {
    public var name = ""
    public var encoding: DataTrackSchemaEncoding?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &name)
      try f.field(2, &encoding)
    }
  }

  /// The sender of a data track packet.
  public struct DataTrackExtensionParticipantSid: ProtobufMessage {
    public var id: DataTrackExtensionID = .invalid
    public var participantSid = ""

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &id)
      try f.field(2, &participantSid)
    }
  }

  /// What a subscriber of a data track wants.
  public struct DataTrackSubscriptionOptions: ProtobufMessage {
    public var targetFps: UInt32?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &targetFps)
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
      try f.field(1, &pubHandle)
      try f.field(2, &name)
      try f.field(3, &encryption)
      try f.field(4, &frameEncoding)
      try f.field(5, &schema)
    }
  }

  /// The server has taken a data track.
  public struct PublishDataTrackResponse: ProtobufMessage {
    public var info: DataTrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &info)
    }
  }

  /// A client drops its data track.
  public struct UnpublishDataTrackRequest: ProtobufMessage {
    public var pubHandle: UInt32 = 0

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &pubHandle)
    }
  }

  /// The server has dropped a data track.
  public struct UnpublishDataTrackResponse: ProtobufMessage {
    public var info: DataTrackInfo?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &info)
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
        try f.field(1, &publisherIdentity)
        try f.field(2, &publisherSid)
        try f.field(3, &trackSid)
      }
    }

    public var subHandles: [UInt32: PublishedDataTrack] = [:]

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &subHandles)
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
        try f.field(1, &trackSid)
        try f.field(2, &subscribe)
        try f.field(3, &options)
      }
    }

    public var updates: [Update] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &updates)
    }
  }

  /// Names a blob.
  public struct DataBlobKey: ProtobufMessage {
    /// What it carries.
    public enum Key: Equatable, Sendable {
      case generic(String)
      case schemaId(DataTrackSchemaId)
    }

    public var key: Key?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch key {
        case .generic(let value): f.put(1, value)
        case .schemaId(let value): f.put(2, value)
        case nil: break
        }
      case 1: key = .generic(try f.take())
      case 2: key = .schemaId(try f.take())
      default: break
      }
    }
  }

  /// Bytes kept at the server.
  public struct DataBlob: ProtobufMessage {
    public var key: DataBlobKey?
    public var contents: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &key)
      try f.field(2, &contents)
    }
  }

  /// Keep a blob.
  public struct StoreDataBlobRequest: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var blob: DataBlob?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      try f.field(2, &blob)
    }
  }

  /// A blob is kept.
  public struct StoreDataBlobResponse: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var key: DataBlobKey?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      try f.field(2, &key)
    }
  }

  /// Fetch a blob.
  public struct GetDataBlobRequest: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var participantIdentity = ""
    public var key: DataBlobKey?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      try f.field(2, &participantIdentity)
      try f.field(3, &key)
    }
  }

  /// A blob.
  public struct GetDataBlobResponse: ProtobufMessage {
    public var requestId: UInt32 = 0
    public var blob: DataBlob?

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      try f.field(2, &blob)
    }
  }
}
