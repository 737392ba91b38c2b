// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: What travels in the data channels

extension LiveKit {
  /// One message in a data channel.
  public struct DataPacket: ProtobufMessage {
    /// Which channel carries it.
    public struct Kind: ProtobufEnum {
      public static let reliable = Kind(rawValue: 0)
      public static let lossy = Kind(rawValue: 1)
      public static let names: KeyValuePairs<Self, String> = [.reliable: "RELIABLE", .lossy: "LOSSY"]

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case user(UserPacket)
      case speaker(ActiveSpeakerUpdate)
      case sipDtmf(SipDTMF)
      case transcription(Transcription)
      case metrics(MetricsBatch)
      case chatMessage(ChatMessage)
      case rpcRequest(RpcRequest)
      case rpcAck(RpcAck)
      case rpcResponse(RpcResponse)
      case streamHeader(DataStream.Header)
      case streamChunk(DataStream.Chunk)
      case streamTrailer(DataStream.Trailer)
      case encryptedPacket(EncryptedPacket)

      public var user: UserPacket? { if case .user(let it) = self { it } else { nil } }
      public var speaker: ActiveSpeakerUpdate? { if case .speaker(let it) = self { it } else { nil } }
      public var sipDtmf: SipDTMF? { if case .sipDtmf(let it) = self { it } else { nil } }
      public var transcription: Transcription? { if case .transcription(let it) = self { it } else { nil } }
      public var metrics: MetricsBatch? { if case .metrics(let it) = self { it } else { nil } }
      public var chatMessage: ChatMessage? { if case .chatMessage(let it) = self { it } else { nil } }
      public var rpcRequest: RpcRequest? { if case .rpcRequest(let it) = self { it } else { nil } }
      public var rpcAck: RpcAck? { if case .rpcAck(let it) = self { it } else { nil } }
      public var rpcResponse: RpcResponse? { if case .rpcResponse(let it) = self { it } else { nil } }
      public var streamHeader: DataStream.Header? { if case .streamHeader(let it) = self { it } else { nil } }
      public var streamChunk: DataStream.Chunk? { if case .streamChunk(let it) = self { it } else { nil } }
      public var streamTrailer: DataStream.Trailer? {
        if case .streamTrailer(let it) = self { it } else { nil }
      }
      public var encryptedPacket: EncryptedPacket? {
        if case .encryptedPacket(let it) = self { it } else { nil }
      }
    }

    /// Unreliable: the channel decides, and the server rewrites it.
    public var kind: Kind = .reliable
    public var value: Value?
    public var participantIdentity = ""
    public var destinationIdentities: [String] = []
    /// Per sender, from 1, on the reliable channel.
    public var sequence: UInt32 = 0
    public var participantSid = ""
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "kind", &kind)
      try f.oneof(2, "user", &value, Value.user) { $0?.user }
      try f.oneof(3, "speaker", &value, Value.speaker) { $0?.speaker }
      try f.field(4, "participant_identity", &participantIdentity)
      try f.field(5, "destination_identities", &destinationIdentities)
      try f.oneof(6, "sip_dtmf", &value, Value.sipDtmf) { $0?.sipDtmf }
      try f.oneof(7, "transcription", &value, Value.transcription) { $0?.transcription }
      try f.oneof(8, "metrics", &value, Value.metrics) { $0?.metrics }
      try f.oneof(9, "chat_message", &value, Value.chatMessage) { $0?.chatMessage }
      try f.oneof(10, "rpc_request", &value, Value.rpcRequest) { $0?.rpcRequest }
      try f.oneof(11, "rpc_ack", &value, Value.rpcAck) { $0?.rpcAck }
      try f.oneof(12, "rpc_response", &value, Value.rpcResponse) { $0?.rpcResponse }
      try f.oneof(13, "stream_header", &value, Value.streamHeader) { $0?.streamHeader }
      try f.oneof(14, "stream_chunk", &value, Value.streamChunk) { $0?.streamChunk }
      try f.oneof(15, "stream_trailer", &value, Value.streamTrailer) { $0?.streamTrailer }
      try f.field(16, "sequence", &sequence)
      try f.field(17, "participant_sid", &participantSid)
      try f.oneof(18, "encrypted_packet", &value, Value.encryptedPacket) { $0?.encryptedPacket }
      try f.unknown(&unknownFields)
    }
  }

  /// An application's bytes.
  public struct UserPacket: ProtobufMessage {
    public var participantSid = ""
    public var payload: [UInt8] = []
    public var destinationSids: [String] = []
    public var topic: String?
    public var participantIdentity = ""
    public var destinationIdentities: [String] = []
    public var id: String?
    public var startTime: UInt64?
    public var endTime: UInt64?
    public var nonce: [UInt8] = []
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "participant_sid", &participantSid)
      try f.field(2, "payload", &payload)
      try f.field(3, "destination_sids", &destinationSids)
      try f.field(4, "topic", &topic)
      try f.field(5, "participant_identity", &participantIdentity)
      try f.field(6, "destination_identities", &destinationIdentities)
      try f.field(8, "id", &id)
      try f.field(9, "start_time", &startTime)
      try f.field(10, "end_time", &endTime)
      try f.field(11, "nonce", &nonce)
      try f.unknown(&unknownFields)
    }
  }

  /// Speakers, from servers before `SpeakersChanged`.
  public struct ActiveSpeakerUpdate: ProtobufMessage {
    public var speakers: [SpeakerInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "speakers", &speakers)
    }
  }

  /// An `EncryptedPacketPayload` under the frame key.
  public struct EncryptedPacket: ProtobufMessage {
    public var encryptionType: EncryptionType = .none
    public var iv: [UInt8] = []
    public var keyIndex: UInt32 = 0
    public var encryptedValue: [UInt8] = []
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "encryption_type", &encryptionType)
      try f.field(2, "iv", &iv)
      try f.field(3, "key_index", &keyIndex)
      try f.field(4, "encrypted_value", &encryptedValue)
      try f.unknown(&unknownFields)
    }
  }

  /// The part of a data packet that is encrypted end to end.
  public struct EncryptedPacketPayload: ProtobufMessage {
    /// What it carries.
    public enum Value: Equatable, Sendable {
      case user(UserPacket)
      case chatMessage(ChatMessage)
      case rpcRequest(RpcRequest)
      case rpcAck(RpcAck)
      case rpcResponse(RpcResponse)
      case streamHeader(DataStream.Header)
      case streamChunk(DataStream.Chunk)
      case streamTrailer(DataStream.Trailer)

      public var user: UserPacket? { if case .user(let it) = self { it } else { nil } }
      public var chatMessage: ChatMessage? { if case .chatMessage(let it) = self { it } else { nil } }
      public var rpcRequest: RpcRequest? { if case .rpcRequest(let it) = self { it } else { nil } }
      public var rpcAck: RpcAck? { if case .rpcAck(let it) = self { it } else { nil } }
      public var rpcResponse: RpcResponse? { if case .rpcResponse(let it) = self { it } else { nil } }
      public var streamHeader: DataStream.Header? { if case .streamHeader(let it) = self { it } else { nil } }
      public var streamChunk: DataStream.Chunk? { if case .streamChunk(let it) = self { it } else { nil } }
      public var streamTrailer: DataStream.Trailer? {
        if case .streamTrailer(let it) = self { it } else { nil }
      }
    }

    public var value: Value?
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "user", &value, Value.user) { $0?.user }
      try f.oneof(3, "chat_message", &value, Value.chatMessage) { $0?.chatMessage }
      try f.oneof(4, "rpc_request", &value, Value.rpcRequest) { $0?.rpcRequest }
      try f.oneof(5, "rpc_ack", &value, Value.rpcAck) { $0?.rpcAck }
      try f.oneof(6, "rpc_response", &value, Value.rpcResponse) { $0?.rpcResponse }
      try f.oneof(7, "stream_header", &value, Value.streamHeader) { $0?.streamHeader }
      try f.oneof(8, "stream_chunk", &value, Value.streamChunk) { $0?.streamChunk }
      try f.oneof(9, "stream_trailer", &value, Value.streamTrailer) { $0?.streamTrailer }
      try f.unknown(&unknownFields)
    }
  }

  /// A key pressed on a telephone.
  public struct SipDTMF: ProtobufMessage {
    public var code: UInt32 = 0
    public var digit = ""
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(3, "code", &code)
      try f.field(4, "digit", &digit)
      try f.unknown(&unknownFields)
    }
  }

  /// What a participant said, as text.
  public struct Transcription: ProtobufMessage {
    public var transcribedParticipantIdentity = ""
    public var trackId = ""
    public var segments: [TranscriptionSegment] = []
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(2, "transcribed_participant_identity", &transcribedParticipantIdentity)
      try f.field(3, "track_id", &trackId)
      try f.field(4, "segments", &segments)
      try f.unknown(&unknownFields)
    }
  }

  /// A part of what a participant said.
  public struct TranscriptionSegment: ProtobufMessage {
    public var id = ""
    public var text = ""
    public var startTime: UInt64 = 0
    public var endTime: UInt64 = 0
    public var final = false
    public var language = ""
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "id", &id)
      try f.field(2, "text", &text)
      try f.field(3, "start_time", &startTime)
      try f.field(4, "end_time", &endTime)
      try f.field(5, "final", &final)
      try f.field(6, "language", &language)
      try f.unknown(&unknownFields)
    }
  }

  /// A line of chat.
  public struct ChatMessage: ProtobufMessage {
    public var id = ""
    public var timestamp: Int64 = 0
    public var editTimestamp: Int64?
    public var message = ""
    public var deleted = false
    public var generated = false
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "id", &id)
      try f.field(2, "timestamp", &timestamp)
      try f.field(3, "edit_timestamp", &editTimestamp)
      try f.field(4, "message", &message)
      try f.field(5, "deleted", &deleted)
      try f.field(6, "generated", &generated)
      try f.unknown(&unknownFields)
    }
  }

  /// A call to a method of another participant.
  public struct RpcRequest: ProtobufMessage {
    public var id = ""
    public var method = ""
    public var payload = ""
    public var responseTimeoutMs: UInt32 = 0
    public var version: UInt32 = 0
    public var compressedPayload: [UInt8] = []
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "id", &id)
      try f.field(2, "method", &method)
      try f.field(3, "payload", &payload)
      try f.field(4, "response_timeout_ms", &responseTimeoutMs)
      try f.field(5, "version", &version)
      try f.field(6, "compressed_payload", &compressedPayload)
      try f.unknown(&unknownFields)
    }
  }

  /// The call arrived.
  public struct RpcAck: ProtobufMessage {
    public var requestId = ""
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.unknown(&unknownFields)
    }
  }

  /// The result of a call.
  public struct RpcResponse: ProtobufMessage {
    /// What it carries.
    public enum Value: Equatable, Sendable {
      case payload(String)
      case error(RpcError)
      case compressedPayload([UInt8])

      public var payload: String? { if case .payload(let it) = self { it } else { nil } }
      public var error: RpcError? { if case .error(let it) = self { it } else { nil } }
      public var compressedPayload: [UInt8]? { if case .compressedPayload(let it) = self { it } else { nil } }
    }

    public var requestId = ""
    public var value: Value?
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "request_id", &requestId)
      try f.oneof(2, "payload", &value, Value.payload) { $0?.payload }
      try f.oneof(3, "error", &value, Value.error) { $0?.error }
      try f.oneof(4, "compressed_payload", &value, Value.compressedPayload) { $0?.compressedPayload }
      try f.unknown(&unknownFields)
    }
  }

  /// Why a call failed.
  public struct RpcError: ProtobufMessage {
    public var code: UInt32 = 0
    public var message = ""
    public var data = ""
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "code", &code)
      try f.field(2, "message", &message)
      try f.field(3, "data", &data)
      try f.unknown(&unknownFields)
    }
  }
}
