// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: Streams of text and bytes in the data channels

extension LiveKit {
  /// A text or a file in chunks.
  public enum DataStream {
    /// What a text does to an earlier one.
    public struct OperationType: ProtobufEnum {
      public static let create = OperationType(rawValue: 0)
      public static let update = OperationType(rawValue: 1)
      public static let delete = OperationType(rawValue: 2)
      public static let reaction = OperationType(rawValue: 3)
      public static let names: KeyValuePairs<Self, String> = [
        .create: "CREATE", .update: "UPDATE", .delete: "DELETE", .reaction: "REACTION",
      ]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// How the chunks are packed.
    public struct CompressionType: ProtobufEnum {
      public static let none = CompressionType(rawValue: 0)
      public static let deflateRaw = CompressionType(rawValue: 1)
      public static let names: KeyValuePairs<Self, String> = [.none: "NONE", .deflateRaw: "DEFLATE_RAW"]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// The header of a text.
    public struct TextHeader: ProtobufMessage {
      public var operationType: DataStream.OperationType = .create
      public var version: Int32 = 0
      public var replyToStreamId = ""
      public var attachedStreamIds: [String] = []
      public var generated = false
      /// Fields this version does not know, as they came: a server passes them on.
      public var unknownFields: [UInt8] = []

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "operation_type", &operationType)
        try f.field(2, "version", &version)
        try f.field(3, "reply_to_stream_id", &replyToStreamId)
        try f.field(4, "attached_stream_ids", &attachedStreamIds)
        try f.field(5, "generated", &generated)
        try f.unknown(&unknownFields)
      }
    }

    /// The header of a file.
    public struct ByteHeader: ProtobufMessage {
      public var name = ""
      /// Fields this version does not know, as they came: a server passes them on.
      public var unknownFields: [UInt8] = []

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "name", &name)
        try f.unknown(&unknownFields)
      }
    }

    /// The first message of a stream.
    public struct Header: ProtobufMessage {
      /// What it carries.
      public enum ContentHeader: Equatable, Sendable {
        case textHeader(DataStream.TextHeader)
        case byteHeader(DataStream.ByteHeader)

        public var textHeader: DataStream.TextHeader? {
          if case .textHeader(let it) = self { it } else { nil }
        }
        public var byteHeader: DataStream.ByteHeader? {
          if case .byteHeader(let it) = self { it } else { nil }
        }
      }

      public var streamId = ""
      public var timestamp: Int64 = 0
      public var topic = ""
      public var mimeType = ""
      public var totalLength: UInt64?
      public var encryptionType: EncryptionType = .none
      public var attributes: [String: String] = [:]
      public var contentHeader: ContentHeader?
      public var inlineContent: [UInt8]?
      public var compression: DataStream.CompressionType = .none
      /// Fields this version does not know, as they came: a server passes them on.
      public var unknownFields: [UInt8] = []

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "stream_id", &streamId)
        try f.field(2, "timestamp", &timestamp)
        try f.field(3, "topic", &topic)
        try f.field(4, "mime_type", &mimeType)
        try f.field(5, "total_length", &totalLength)
        try f.field(7, "encryption_type", &encryptionType)
        try f.field(8, "attributes", &attributes)
        try f.oneof(9, "text_header", &contentHeader, ContentHeader.textHeader) { $0?.textHeader }
        try f.oneof(10, "byte_header", &contentHeader, ContentHeader.byteHeader) { $0?.byteHeader }
        try f.field(11, "inline_content", &inlineContent)
        try f.field(12, "compression", &compression)
        try f.unknown(&unknownFields)
      }
    }

    /// A part of a stream's content.
    public struct Chunk: ProtobufMessage {
      public var streamId = ""
      public var chunkIndex: UInt64 = 0
      public var content: [UInt8] = []
      public var version: Int32 = 0
      public var iv: [UInt8]?
      /// Fields this version does not know, as they came: a server passes them on.
      public var unknownFields: [UInt8] = []

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "stream_id", &streamId)
        try f.field(2, "chunk_index", &chunkIndex)
        try f.field(3, "content", &content)
        try f.field(4, "version", &version)
        try f.field(5, "iv", &iv)
        try f.unknown(&unknownFields)
      }
    }

    /// The last message of a stream.
    public struct Trailer: ProtobufMessage {
      public var streamId = ""
      public var reason = ""
      public var attributes: [String: String] = [:]
      /// Fields this version does not know, as they came: a server passes them on.
      public var unknownFields: [UInt8] = []

      public init() {}

      public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
        try f.field(1, "stream_id", &streamId)
        try f.field(2, "reason", &reason)
        try f.field(3, "attributes", &attributes)
        try f.unknown(&unknownFields)
      }
    }
  }
}
