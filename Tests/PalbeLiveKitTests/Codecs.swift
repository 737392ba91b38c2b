import PalbeLiveKit
import PalbeProtobuf
import PalbeWire

/// A message type without its type: for tables of all of them.
struct Codec: Sendable {
  /// As the protocol names it: `DataStream.Header`.
  var name: String
  /// Reads from the wire and writes to the wire.
  var again: @Sendable ([UInt8]) throws(ProtobufError) -> [UInt8]
  /// Reads from the wire and writes JSON.
  var json: @Sendable ([UInt8], ProtobufJSONStyle) throws(ProtobufError) -> String
  /// Reads JSON and writes to the wire.
  var bytes: @Sendable (String) throws(JSONError) -> [UInt8]

  init<Message: ProtobufMessage>(_ type: Message.Type) {
    let prefix = "PalbeLiveKit.LiveKit."
    name = String(String(reflecting: type).dropFirst(prefix.count))
    again = { bytes throws(ProtobufError) in try Message(serialized: bytes).serialized() }
    json = { bytes, style throws(ProtobufError) in try Message(serialized: bytes).json(style) }
    bytes = { json throws(JSONError) in try Message(json: json).serialized() }
  }

  static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

  static let all: [Codec] = [
    Codec(LiveKit.SignalRequest.self),
    Codec(LiveKit.SignalResponse.self),
    Codec(LiveKit.SimulcastCodec.self),
    Codec(LiveKit.AddTrackRequest.self),
    Codec(LiveKit.PublishDataTrackRequest.self),
    Codec(LiveKit.PublishDataTrackResponse.self),
    Codec(LiveKit.UnpublishDataTrackRequest.self),
    Codec(LiveKit.UnpublishDataTrackResponse.self),
    Codec(LiveKit.DataTrackSubscriberHandles.self),
    Codec(LiveKit.DataTrackSubscriberHandles.PublishedDataTrack.self),
    Codec(LiveKit.TrickleRequest.self),
    Codec(LiveKit.MuteTrackRequest.self),
    Codec(LiveKit.JoinResponse.self),
    Codec(LiveKit.ReconnectResponse.self),
    Codec(LiveKit.TrackPublishedResponse.self),
    Codec(LiveKit.TrackUnpublishedResponse.self),
    Codec(LiveKit.SessionDescription.self),
    Codec(LiveKit.ParticipantUpdate.self),
    Codec(LiveKit.UpdateSubscription.self),
    Codec(LiveKit.UpdateDataSubscription.self),
    Codec(LiveKit.UpdateDataSubscription.Update.self),
    Codec(LiveKit.StoreDataBlobRequest.self),
    Codec(LiveKit.StoreDataBlobResponse.self),
    Codec(LiveKit.GetDataBlobRequest.self),
    Codec(LiveKit.GetDataBlobResponse.self),
    Codec(LiveKit.UpdateTrackSettings.self),
    Codec(LiveKit.UpdateLocalAudioTrack.self),
    Codec(LiveKit.UpdateLocalVideoTrack.self),
    Codec(LiveKit.LeaveRequest.self),
    Codec(LiveKit.UpdateVideoLayers.self),
    Codec(LiveKit.UpdateParticipantMetadata.self),
    Codec(LiveKit.ICEServer.self),
    Codec(LiveKit.SpeakersChanged.self),
    Codec(LiveKit.RoomUpdate.self),
    Codec(LiveKit.ConnectionQualityInfo.self),
    Codec(LiveKit.ConnectionQualityUpdate.self),
    Codec(LiveKit.StreamStateInfo.self),
    Codec(LiveKit.StreamStateUpdate.self),
    Codec(LiveKit.SubscribedQuality.self),
    Codec(LiveKit.SubscribedCodec.self),
    Codec(LiveKit.SubscribedQualityUpdate.self),
    Codec(LiveKit.SubscribedAudioCodecUpdate.self),
    Codec(LiveKit.TrackPermission.self),
    Codec(LiveKit.SubscriptionPermission.self),
    Codec(LiveKit.SubscriptionPermissionUpdate.self),
    Codec(LiveKit.RoomMovedResponse.self),
    Codec(LiveKit.SyncState.self),
    Codec(LiveKit.DataChannelReceiveState.self),
    Codec(LiveKit.DataChannelInfo.self),
    Codec(LiveKit.SimulateScenario.self),
    Codec(LiveKit.Ping.self),
    Codec(LiveKit.Pong.self),
    Codec(LiveKit.RegionSettings.self),
    Codec(LiveKit.RegionInfo.self),
    Codec(LiveKit.SubscriptionResponse.self),
    Codec(LiveKit.RequestResponse.self),
    Codec(LiveKit.TrackSubscribed.self),
    Codec(LiveKit.ConnectionSettings.self),
    Codec(LiveKit.JoinRequest.self),
    Codec(LiveKit.WrappedJoinRequest.self),
    Codec(LiveKit.MediaSectionsRequirement.self),
    Codec(LiveKit.Room.self),
    Codec(LiveKit.Codec.self),
    Codec(LiveKit.PlayoutDelay.self),
    Codec(LiveKit.ParticipantPermission.self),
    Codec(LiveKit.ParticipantInfo.self),
    Codec(LiveKit.SimulcastCodecInfo.self),
    Codec(LiveKit.TrackInfo.self),
    Codec(LiveKit.DataTrackInfo.self),
    Codec(LiveKit.DataTrackFrameEncoding.self),
    Codec(LiveKit.DataTrackSchemaEncoding.self),
    Codec(LiveKit.DataTrackSchemaId.self),
    Codec(LiveKit.DataTrackExtensionParticipantSid.self),
    Codec(LiveKit.DataTrackSubscriptionOptions.self),
    Codec(LiveKit.DataBlobKey.self),
    Codec(LiveKit.DataBlob.self),
    Codec(LiveKit.VideoLayer.self),
    Codec(LiveKit.DataPacket.self),
    Codec(LiveKit.EncryptedPacket.self),
    Codec(LiveKit.EncryptedPacketPayload.self),
    Codec(LiveKit.ActiveSpeakerUpdate.self),
    Codec(LiveKit.SpeakerInfo.self),
    Codec(LiveKit.UserPacket.self),
    Codec(LiveKit.SipDTMF.self),
    Codec(LiveKit.Transcription.self),
    Codec(LiveKit.TranscriptionSegment.self),
    Codec(LiveKit.ChatMessage.self),
    Codec(LiveKit.RpcRequest.self),
    Codec(LiveKit.RpcAck.self),
    Codec(LiveKit.RpcResponse.self),
    Codec(LiveKit.RpcError.self),
    Codec(LiveKit.ParticipantTracks.self),
    Codec(LiveKit.ServerInfo.self),
    Codec(LiveKit.ClientInfo.self),
    Codec(LiveKit.ClientConfiguration.self),
    Codec(LiveKit.VideoConfiguration.self),
    Codec(LiveKit.DisabledCodecs.self),
    Codec(LiveKit.TimedVersion.self),
    Codec(LiveKit.DataStream.TextHeader.self),
    Codec(LiveKit.DataStream.ByteHeader.self),
    Codec(LiveKit.DataStream.Header.self),
    Codec(LiveKit.DataStream.Chunk.self),
    Codec(LiveKit.DataStream.Trailer.self),
    Codec(LiveKit.SubscribedAudioCodec.self),
    Codec(LiveKit.CreateRoomRequest.self),
    Codec(LiveKit.ListRoomsRequest.self),
    Codec(LiveKit.ListRoomsResponse.self),
    Codec(LiveKit.DeleteRoomRequest.self),
    Codec(LiveKit.DeleteRoomResponse.self),
    Codec(LiveKit.ListParticipantsRequest.self),
    Codec(LiveKit.ListParticipantsResponse.self),
    Codec(LiveKit.RoomParticipantIdentity.self),
    Codec(LiveKit.RemoveParticipantResponse.self),
    Codec(LiveKit.MuteRoomTrackRequest.self),
    Codec(LiveKit.MuteRoomTrackResponse.self),
    Codec(LiveKit.UpdateParticipantRequest.self),
    Codec(LiveKit.UpdateSubscriptionsRequest.self),
    Codec(LiveKit.UpdateSubscriptionsResponse.self),
    Codec(LiveKit.SendDataRequest.self),
    Codec(LiveKit.SendDataResponse.self),
    Codec(LiveKit.UpdateRoomMetadataRequest.self),
    Codec(LiveKit.RoomConfiguration.self),
    Codec(LiveKit.ForwardParticipantRequest.self),
    Codec(LiveKit.ForwardParticipantResponse.self),
    Codec(LiveKit.MoveParticipantRequest.self),
    Codec(LiveKit.MoveParticipantResponse.self),
    Codec(LiveKit.PerformRpcRequest.self),
    Codec(LiveKit.PerformRpcResponse.self),
    Codec(LiveKit.WebhookEvent.self),
    Codec(LiveKit.MetricsBatch.self),
    Codec(LiveKit.TimeSeriesMetric.self),
    Codec(LiveKit.MetricSample.self),
    Codec(LiveKit.EventMetric.self),
  ]
}

/// An enumeration without its type.
struct NamedValues: Sendable {
  var name: String
  var values: [String: Int32]

  init<Value: ProtobufEnum>(_ type: Value.Type, named name: String? = nil) {
    let prefix = "PalbeLiveKit.LiveKit."
    self.name = name ?? String(String(reflecting: type).dropFirst(prefix.count))
    values = Dictionary(uniqueKeysWithValues: Value.names.map { ($0.value, $0.key.rawValue) })
  }

  static let all: [NamedValues] = [
    NamedValues(LiveKit.SignalTarget.self),
    NamedValues(LiveKit.StreamState.self),
    NamedValues(LiveKit.NegotiatedDataChannelID.self),
    NamedValues(LiveKit.CandidateProtocol.self),
    NamedValues(LiveKit.LeaveRequest.Action.self),
    NamedValues(LiveKit.RequestResponse.Reason.self),
    NamedValues(LiveKit.WrappedJoinRequest.Compression.self),
    NamedValues(LiveKit.BackupCodecPolicy.self),
    NamedValues(LiveKit.TrackType.self),
    NamedValues(LiveKit.TrackSource.self),
    NamedValues(LiveKit.DataTrackExtensionID.self),
    NamedValues(LiveKit.VideoQuality.self),
    NamedValues(LiveKit.ConnectionQuality.self),
    NamedValues(LiveKit.ClientConfigSetting.self),
    NamedValues(LiveKit.DisconnectReason.self),
    NamedValues(LiveKit.RoomEndReason.self),
    NamedValues(LiveKit.ReconnectReason.self),
    NamedValues(LiveKit.SubscriptionError.self),
    NamedValues(LiveKit.AudioTrackFeature.self),
    NamedValues(LiveKit.PacketTrailerFeature.self),
    NamedValues(LiveKit.ParticipantInfo.State.self),
    NamedValues(LiveKit.ParticipantInfo.Kind.self),
    NamedValues(LiveKit.ParticipantInfo.KindDetail.self),
    NamedValues(LiveKit.EncryptionType.self, named: "Encryption.Type"),
    NamedValues(LiveKit.DataTrackFrameEncoding.WellKnownFrameEncoding.self),
    NamedValues(LiveKit.DataTrackSchemaEncoding.WellKnownSchemaEncoding.self),
    NamedValues(LiveKit.VideoLayer.Mode.self),
    NamedValues(LiveKit.DataPacket.Kind.self),
    NamedValues(LiveKit.ServerInfo.Edition.self),
    NamedValues(LiveKit.ClientInfo.SDK.self),
    NamedValues(LiveKit.ClientInfo.Capability.self),
    NamedValues(LiveKit.DataStream.OperationType.self),
    NamedValues(LiveKit.DataStream.CompressionType.self),
  ]
}
