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

      public var rawValue: Int32
      public init(rawValue: Int32) { self.rawValue = rawValue }
    }

    /// What it carries.
    public enum Value: Equatable, Sendable {
      case user(UserPacket)
      case speaker(ActiveSpeakerUpdate)
      case sipDtmf(SipDTMF)
      case transcription(Transcription)
      case metrics([UInt8])
      case chatMessage(ChatMessage)
      case rpcRequest(RpcRequest)
      case rpcAck(RpcAck)
      case rpcResponse(RpcResponse)
      case streamHeader(DataStream.Header)
      case streamChunk(DataStream.Chunk)
      case streamTrailer(DataStream.Trailer)
      case encryptedPacket(EncryptedPacket)
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
      try f.field(1, &kind)
      try f.field(4, &participantIdentity)
      try f.field(5, &destinationIdentities)
      switch f.decoding {
      case 0:
        switch value {
        case .user(let value): f.put(2, value)
        case .speaker(let value): f.put(3, value)
        case .sipDtmf(let value): f.put(6, value)
        case .transcription(let value): f.put(7, value)
        case .metrics(let value): f.put(8, value)
        case .chatMessage(let value): f.put(9, value)
        case .rpcRequest(let value): f.put(10, value)
        case .rpcAck(let value): f.put(11, value)
        case .rpcResponse(let value): f.put(12, value)
        case .streamHeader(let value): f.put(13, value)
        case .streamChunk(let value): f.put(14, value)
        case .streamTrailer(let value): f.put(15, value)
        case .encryptedPacket(let value): f.put(18, value)
        case nil: break
        }
      case 2: value = .user(try f.take())
      case 3: value = .speaker(try f.take())
      case 6: value = .sipDtmf(try f.take())
      case 7: value = .transcription(try f.take())
      case 8: value = .metrics(try f.take())
      case 9: value = .chatMessage(try f.take())
      case 10: value = .rpcRequest(try f.take())
      case 11: value = .rpcAck(try f.take())
      case 12: value = .rpcResponse(try f.take())
      case 13: value = .streamHeader(try f.take())
      case 14: value = .streamChunk(try f.take())
      case 15: value = .streamTrailer(try f.take())
      case 18: value = .encryptedPacket(try f.take())
      default: break
      }
      try f.field(16, &sequence)
      try f.field(17, &participantSid)
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
      try f.field(1, &participantSid)
      try f.field(2, &payload)
      try f.field(3, &destinationSids)
      try f.field(4, &topic)
      try f.field(5, &participantIdentity)
      try f.field(6, &destinationIdentities)
      try f.field(8, &id)
      try f.field(9, &startTime)
      try f.field(10, &endTime)
      try f.field(11, &nonce)
      try f.unknown(&unknownFields)
    }
  }

  /// Speakers, from servers before `SpeakersChanged`.
  public struct ActiveSpeakerUpdate: ProtobufMessage {
    public var speakers: [SpeakerInfo] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &speakers)
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
      try f.field(1, &encryptionType)
      try f.field(2, &iv)
      try f.field(3, &keyIndex)
      try f.field(4, &encryptedValue)
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
    }

    public var value: Value?
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch value {
        case .user(let value): f.put(1, value)
        case .chatMessage(let value): f.put(3, value)
        case .rpcRequest(let value): f.put(4, value)
        case .rpcAck(let value): f.put(5, value)
        case .rpcResponse(let value): f.put(6, value)
        case .streamHeader(let value): f.put(7, value)
        case .streamChunk(let value): f.put(8, value)
        case .streamTrailer(let value): f.put(9, value)
        case nil: break
        }
      case 1: value = .user(try f.take())
      case 3: value = .chatMessage(try f.take())
      case 4: value = .rpcRequest(try f.take())
      case 5: value = .rpcAck(try f.take())
      case 6: value = .rpcResponse(try f.take())
      case 7: value = .streamHeader(try f.take())
      case 8: value = .streamChunk(try f.take())
      case 9: value = .streamTrailer(try f.take())
      default: break
      }
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
      try f.field(3, &code)
      try f.field(4, &digit)
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
      try f.field(2, &transcribedParticipantIdentity)
      try f.field(3, &trackId)
      try f.field(4, &segments)
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
      try f.field(1, &id)
      try f.field(2, &text)
      try f.field(3, &startTime)
      try f.field(4, &endTime)
      try f.field(5, &final)
      try f.field(6, &language)
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
      try f.field(1, &id)
      try f.field(2, &timestamp)
      try f.field(3, &editTimestamp)
      try f.field(4, &message)
      try f.field(5, &deleted)
      try f.field(6, &generated)
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
      try f.field(1, &id)
      try f.field(2, &method)
      try f.field(3, &payload)
      try f.field(4, &responseTimeoutMs)
      try f.field(5, &version)
      try f.field(6, &compressedPayload)
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
      try f.field(1, &requestId)
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
    }

    public var requestId = ""
    public var value: Value?
    /// Fields this version does not know, as they came: a server passes them on.
    public var unknownFields: [UInt8] = []

    public init() {}

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, &requestId)
      switch f.decoding {
      case 0:
        switch value {
        case .payload(let value): f.put(2, value)
        case .error(let value): f.put(3, value)
        case .compressedPayload(let value): f.put(4, value)
        case nil: break
        }
      case 2: value = .payload(try f.take())
      case 3: value = .error(try f.take())
      case 4: value = .compressedPayload(try f.take())
      default: break
      }
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
      try f.field(1, &code)
      try f.field(2, &message)
      try f.field(3, &data)
      try f.unknown(&unknownFields)
    }
  }
}
