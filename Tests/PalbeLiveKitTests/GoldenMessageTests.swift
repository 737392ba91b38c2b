import PalbeLiveKit
import PalbeProtobuf
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

/// Decodes a message and encodes it again.
private func again<Message: ProtobufMessage>(_ type: Message.Type) -> Reencode {
  { bytes throws(ProtobufError) in try type.init(serialized: bytes).serialized() }
}

typealias Reencode = @Sendable ([UInt8]) throws(ProtobufError) -> [UInt8]

private let messages: [String: Reencode] = [
  "SignalRequest": again(LiveKit.SignalRequest.self),
  "SignalResponse": again(LiveKit.SignalResponse.self),
  "WrappedJoinRequest": again(LiveKit.WrappedJoinRequest.self),
  "JoinRequest": again(LiveKit.JoinRequest.self),
  "ConnectionSettings": again(LiveKit.ConnectionSettings.self),
  "ClientInfo": again(LiveKit.ClientInfo.self),
  "JoinResponse": again(LiveKit.JoinResponse.self),
  "ReconnectResponse": again(LiveKit.ReconnectResponse.self),
  "ServerInfo": again(LiveKit.ServerInfo.self),
  "ICEServer": again(LiveKit.ICEServer.self),
  "ClientConfiguration": again(LiveKit.ClientConfiguration.self),
  "VideoConfiguration": again(LiveKit.VideoConfiguration.self),
  "DisabledCodecs": again(LiveKit.DisabledCodecs.self),
  "SessionDescription": again(LiveKit.SessionDescription.self),
  "TrickleRequest": again(LiveKit.TrickleRequest.self),
  "MediaSectionsRequirement": again(LiveKit.MediaSectionsRequirement.self),
  "SyncState": again(LiveKit.SyncState.self),
  "DataChannelReceiveState": again(LiveKit.DataChannelReceiveState.self),
  "DataChannelInfo": again(LiveKit.DataChannelInfo.self),
  "LeaveRequest": again(LiveKit.LeaveRequest.self),
  "RegionSettings": again(LiveKit.RegionSettings.self),
  "RegionInfo": again(LiveKit.RegionInfo.self),
  "Ping": again(LiveKit.Ping.self),
  "Pong": again(LiveKit.Pong.self),
  "SimulateScenario": again(LiveKit.SimulateScenario.self),
  "RequestResponse": again(LiveKit.RequestResponse.self),
  "Room": again(LiveKit.Room.self),
  "RoomUpdate": again(LiveKit.RoomUpdate.self),
  "RoomMovedResponse": again(LiveKit.RoomMovedResponse.self),
  "TimedVersion": again(LiveKit.TimedVersion.self),
  "Codec": again(LiveKit.Codec.self),
  "PlayoutDelay": again(LiveKit.PlayoutDelay.self),
  "ParticipantInfo": again(LiveKit.ParticipantInfo.self),
  "ParticipantPermission": again(LiveKit.ParticipantPermission.self),
  "ParticipantUpdate": again(LiveKit.ParticipantUpdate.self),
  "UpdateParticipantMetadata": again(LiveKit.UpdateParticipantMetadata.self),
  "SpeakerInfo": again(LiveKit.SpeakerInfo.self),
  "SpeakersChanged": again(LiveKit.SpeakersChanged.self),
  "ConnectionQualityInfo": again(LiveKit.ConnectionQualityInfo.self),
  "ConnectionQualityUpdate": again(LiveKit.ConnectionQualityUpdate.self),
  "AddTrackRequest": again(LiveKit.AddTrackRequest.self),
  "SimulcastCodec": again(LiveKit.SimulcastCodec.self),
  "TrackPublishedResponse": again(LiveKit.TrackPublishedResponse.self),
  "TrackUnpublishedResponse": again(LiveKit.TrackUnpublishedResponse.self),
  "TrackInfo": again(LiveKit.TrackInfo.self),
  "SimulcastCodecInfo": again(LiveKit.SimulcastCodecInfo.self),
  "VideoLayer": again(LiveKit.VideoLayer.self),
  "MuteTrackRequest": again(LiveKit.MuteTrackRequest.self),
  "UpdateLocalAudioTrack": again(LiveKit.UpdateLocalAudioTrack.self),
  "UpdateLocalVideoTrack": again(LiveKit.UpdateLocalVideoTrack.self),
  "UpdateVideoLayers": again(LiveKit.UpdateVideoLayers.self),
  "UpdateSubscription": again(LiveKit.UpdateSubscription.self),
  "ParticipantTracks": again(LiveKit.ParticipantTracks.self),
  "UpdateTrackSettings": again(LiveKit.UpdateTrackSettings.self),
  "SubscriptionResponse": again(LiveKit.SubscriptionResponse.self),
  "TrackSubscribed": again(LiveKit.TrackSubscribed.self),
  "SubscriptionPermission": again(LiveKit.SubscriptionPermission.self),
  "TrackPermission": again(LiveKit.TrackPermission.self),
  "SubscriptionPermissionUpdate": again(LiveKit.SubscriptionPermissionUpdate.self),
  "StreamStateUpdate": again(LiveKit.StreamStateUpdate.self),
  "StreamStateInfo": again(LiveKit.StreamStateInfo.self),
  "SubscribedQualityUpdate": again(LiveKit.SubscribedQualityUpdate.self),
  "SubscribedCodec": again(LiveKit.SubscribedCodec.self),
  "SubscribedQuality": again(LiveKit.SubscribedQuality.self),
  "SubscribedAudioCodecUpdate": again(LiveKit.SubscribedAudioCodecUpdate.self),
  "SubscribedAudioCodec": again(LiveKit.SubscribedAudioCodec.self),
  "DataPacket": again(LiveKit.DataPacket.self),
  "UserPacket": again(LiveKit.UserPacket.self),
  "ActiveSpeakerUpdate": again(LiveKit.ActiveSpeakerUpdate.self),
  "EncryptedPacket": again(LiveKit.EncryptedPacket.self),
  "EncryptedPacketPayload": again(LiveKit.EncryptedPacketPayload.self),
  "SipDTMF": again(LiveKit.SipDTMF.self),
  "Transcription": again(LiveKit.Transcription.self),
  "TranscriptionSegment": again(LiveKit.TranscriptionSegment.self),
  "ChatMessage": again(LiveKit.ChatMessage.self),
  "RpcRequest": again(LiveKit.RpcRequest.self),
  "RpcAck": again(LiveKit.RpcAck.self),
  "RpcResponse": again(LiveKit.RpcResponse.self),
  "RpcError": again(LiveKit.RpcError.self),
  "DataStream.TextHeader": again(LiveKit.DataStream.TextHeader.self),
  "DataStream.ByteHeader": again(LiveKit.DataStream.ByteHeader.self),
  "DataStream.Header": again(LiveKit.DataStream.Header.self),
  "DataStream.Chunk": again(LiveKit.DataStream.Chunk.self),
  "DataStream.Trailer": again(LiveKit.DataStream.Trailer.self),
  "DataTrackInfo": again(LiveKit.DataTrackInfo.self),
  "DataTrackFrameEncoding": again(LiveKit.DataTrackFrameEncoding.self),
  "DataTrackSchemaEncoding": again(LiveKit.DataTrackSchemaEncoding.self),
  "DataTrackSchemaId": again(LiveKit.DataTrackSchemaId.self),
  "DataTrackExtensionParticipantSid": again(LiveKit.DataTrackExtensionParticipantSid.self),
  "DataTrackSubscriptionOptions": again(LiveKit.DataTrackSubscriptionOptions.self),
  "PublishDataTrackRequest": again(LiveKit.PublishDataTrackRequest.self),
  "PublishDataTrackResponse": again(LiveKit.PublishDataTrackResponse.self),
  "UnpublishDataTrackRequest": again(LiveKit.UnpublishDataTrackRequest.self),
  "UnpublishDataTrackResponse": again(LiveKit.UnpublishDataTrackResponse.self),
  "DataTrackSubscriberHandles": again(LiveKit.DataTrackSubscriberHandles.self),
  "DataTrackSubscriberHandles.PublishedDataTrack": again(
    LiveKit.DataTrackSubscriberHandles.PublishedDataTrack.self),
  "UpdateDataSubscription": again(LiveKit.UpdateDataSubscription.self),
  "UpdateDataSubscription.Update": again(LiveKit.UpdateDataSubscription.Update.self),
  "DataBlobKey": again(LiveKit.DataBlobKey.self),
  "DataBlob": again(LiveKit.DataBlob.self),
  "StoreDataBlobRequest": again(LiveKit.StoreDataBlobRequest.self),
  "StoreDataBlobResponse": again(LiveKit.StoreDataBlobResponse.self),
  "GetDataBlobRequest": again(LiveKit.GetDataBlobRequest.self),
  "GetDataBlobResponse": again(LiveKit.GetDataBlobResponse.self),
]

struct GoldenMessageTests {
  struct Line: Sendable, CustomTestStringConvertible {
    var name: String
    var bytes: [UInt8]
    var testDescription: String { name }
  }

  static let lines: [Line] = {
    guard let data = try? Vectors.golden("Tests/PalbeLiveKitTests/Golden/messages.txt") else { return [] }
    return String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
      let parts = line.split(separator: " ")
      guard parts.count == 2, let bytes = Hex.decode(parts[1]) else { return nil }
      return Line(name: String(parts[0]), bytes: bytes)
    }
  }()

  /// The fields of a message in the order of their numbers. Members of a oneof may be written out of order.
  static func sorted(_ bytes: [UInt8]) throws -> [[UInt8]] {
    var reader = ProtobufReader(bytes.span)
    var fields: [(UInt32, [UInt8])] = []
    var start = 0
    while let tag = try reader.tag() {
      try reader.skip(tag.wire)
      fields.append((tag.field, Array(bytes[start..<reader.offset])))
      start = reader.offset
    }
    return fields.enumerated().sorted { ($0.element.0, $0.offset) < ($1.element.0, $1.offset) }.map(
      \.element.1)
  }

  @Test("every message is there, each with a golden line")
  func complete() {
    #expect(Self.lines.count == 194)
    #expect(Set(Self.lines.map(\.name)) == Set(messages.keys))
  }

  @Test("bytes of another implementation come back as they were", arguments: lines)
  func roundTrip(_ line: Line) throws {
    let reencode = try #require(messages[line.name])
    let bytes = try reencode(line.bytes)
    #expect(try Self.sorted(bytes) == Self.sorted(line.bytes))
  }

  @Test("every prefix decodes or throws, and never traps", arguments: lines)
  func truncation(_ line: Line) throws {
    let reencode = try #require(messages[line.name])
    for length in 0..<line.bytes.count {
      do throws(ProtobufError) { _ = try reencode(Array(line.bytes.prefix(length))) } catch {}
    }
  }

  @Test("mutations never trap", arguments: lines)
  func mutations(_ line: Line) throws {
    let reencode = try #require(messages[line.name])
    guard !line.bytes.isEmpty else { return }
    var random = RandomSource(seed: UInt64(line.bytes.count))
    for _ in 0..<100 {
      var bytes = line.bytes
      let at = Int.random(in: 0..<bytes.count, using: &random)
      bytes[at] = UInt8.random(in: 0...255, using: &random)
      do throws(ProtobufError) { _ = try reencode(bytes) } catch {}
    }
  }
}
