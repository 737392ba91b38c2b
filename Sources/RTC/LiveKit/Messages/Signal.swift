// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

// The names are those of LiveKit's protocol in camel case; what a field means stands there.
import PalbeProtobuf

// MARK: The two frames of the signal link

extension LiveKit {
  /// Client to server. A message this version does not know is nil.
  public struct SignalRequest: ProtobufMessage {
    /// What it carries.
    public enum Message: Equatable, Sendable {
      case offer(SessionDescription)
      case answer(SessionDescription)
      case trickle(TrickleRequest)
      case addTrack(AddTrackRequest)
      case mute(MuteTrackRequest)
      case subscription(UpdateSubscription)
      case trackSetting(UpdateTrackSettings)
      case leave(LeaveRequest)
      case updateLayers(UpdateVideoLayers)
      case subscriptionPermission(SubscriptionPermission)
      case syncState(SyncState)
      case simulate(SimulateScenario)
      case ping(Int64)
      case updateMetadata(UpdateParticipantMetadata)
      case pingReq(Ping)
      case updateAudioTrack(UpdateLocalAudioTrack)
      case updateVideoTrack(UpdateLocalVideoTrack)
      case publishDataTrackRequest(PublishDataTrackRequest)
      case unpublishDataTrackRequest(UnpublishDataTrackRequest)
      case updateDataSubscription(UpdateDataSubscription)
      case storeDataBlobRequest(StoreDataBlobRequest)
      case getDataBlobRequest(GetDataBlobRequest)

      public var offer: SessionDescription? { if case .offer(let it) = self { it } else { nil } }
      public var answer: SessionDescription? { if case .answer(let it) = self { it } else { nil } }
      public var trickle: TrickleRequest? { if case .trickle(let it) = self { it } else { nil } }
      public var addTrack: AddTrackRequest? { if case .addTrack(let it) = self { it } else { nil } }
      public var mute: MuteTrackRequest? { if case .mute(let it) = self { it } else { nil } }
      public var subscription: UpdateSubscription? {
        if case .subscription(let it) = self { it } else { nil }
      }
      public var trackSetting: UpdateTrackSettings? {
        if case .trackSetting(let it) = self { it } else { nil }
      }
      public var leave: LeaveRequest? { if case .leave(let it) = self { it } else { nil } }
      public var updateLayers: UpdateVideoLayers? { if case .updateLayers(let it) = self { it } else { nil } }
      public var subscriptionPermission: SubscriptionPermission? {
        if case .subscriptionPermission(let it) = self { it } else { nil }
      }
      public var syncState: SyncState? { if case .syncState(let it) = self { it } else { nil } }
      public var simulate: SimulateScenario? { if case .simulate(let it) = self { it } else { nil } }
      public var ping: Int64? { if case .ping(let it) = self { it } else { nil } }
      public var updateMetadata: UpdateParticipantMetadata? {
        if case .updateMetadata(let it) = self { it } else { nil }
      }
      public var pingReq: Ping? { if case .pingReq(let it) = self { it } else { nil } }
      public var updateAudioTrack: UpdateLocalAudioTrack? {
        if case .updateAudioTrack(let it) = self { it } else { nil }
      }
      public var updateVideoTrack: UpdateLocalVideoTrack? {
        if case .updateVideoTrack(let it) = self { it } else { nil }
      }
      public var publishDataTrackRequest: PublishDataTrackRequest? {
        if case .publishDataTrackRequest(let it) = self { it } else { nil }
      }
      public var unpublishDataTrackRequest: UnpublishDataTrackRequest? {
        if case .unpublishDataTrackRequest(let it) = self { it } else { nil }
      }
      public var updateDataSubscription: UpdateDataSubscription? {
        if case .updateDataSubscription(let it) = self { it } else { nil }
      }
      public var storeDataBlobRequest: StoreDataBlobRequest? {
        if case .storeDataBlobRequest(let it) = self { it } else { nil }
      }
      public var getDataBlobRequest: GetDataBlobRequest? {
        if case .getDataBlobRequest(let it) = self { it } else { nil }
      }
    }

    public var message: Message?

    public init() {}
    public init(_ message: Message) { self.message = message }

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "offer", &message, Message.offer) { $0?.offer }
      try f.oneof(2, "answer", &message, Message.answer) { $0?.answer }
      try f.oneof(3, "trickle", &message, Message.trickle) { $0?.trickle }
      try f.oneof(4, "add_track", &message, Message.addTrack) { $0?.addTrack }
      try f.oneof(5, "mute", &message, Message.mute) { $0?.mute }
      try f.oneof(6, "subscription", &message, Message.subscription) { $0?.subscription }
      try f.oneof(7, "track_setting", &message, Message.trackSetting) { $0?.trackSetting }
      try f.oneof(8, "leave", &message, Message.leave) { $0?.leave }
      try f.oneof(10, "update_layers", &message, Message.updateLayers) { $0?.updateLayers }
      try f.oneof(
        11, "subscription_permission", &message, Message.subscriptionPermission
      ) { $0?.subscriptionPermission }
      try f.oneof(12, "sync_state", &message, Message.syncState) { $0?.syncState }
      try f.oneof(13, "simulate", &message, Message.simulate) { $0?.simulate }
      try f.oneof(14, "ping", &message, Message.ping) { $0?.ping }
      try f.oneof(15, "update_metadata", &message, Message.updateMetadata) { $0?.updateMetadata }
      try f.oneof(16, "ping_req", &message, Message.pingReq) { $0?.pingReq }
      try f.oneof(17, "update_audio_track", &message, Message.updateAudioTrack) { $0?.updateAudioTrack }
      try f.oneof(18, "update_video_track", &message, Message.updateVideoTrack) { $0?.updateVideoTrack }
      try f.oneof(
        19, "publish_data_track_request", &message, Message.publishDataTrackRequest
      ) { $0?.publishDataTrackRequest }
      try f.oneof(
        20, "unpublish_data_track_request", &message, Message.unpublishDataTrackRequest
      ) { $0?.unpublishDataTrackRequest }
      try f.oneof(
        21, "update_data_subscription", &message, Message.updateDataSubscription
      ) { $0?.updateDataSubscription }
      try f.oneof(
        22, "store_data_blob_request", &message, Message.storeDataBlobRequest
      ) { $0?.storeDataBlobRequest }
      try f.oneof(23, "get_data_blob_request", &message, Message.getDataBlobRequest) {
        $0?.getDataBlobRequest
      }
    }
  }

  /// Server to client. A message this version does not know is nil.
  public struct SignalResponse: ProtobufMessage {
    /// What it carries.
    public enum Message: Equatable, Sendable {
      case join(JoinResponse)
      case answer(SessionDescription)
      case offer(SessionDescription)
      case trickle(TrickleRequest)
      case update(ParticipantUpdate)
      case trackPublished(TrackPublishedResponse)
      case leave(LeaveRequest)
      case mute(MuteTrackRequest)
      case speakersChanged(SpeakersChanged)
      case roomUpdate(RoomUpdate)
      case connectionQuality(ConnectionQualityUpdate)
      case streamStateUpdate(StreamStateUpdate)
      case subscribedQualityUpdate(SubscribedQualityUpdate)
      case subscriptionPermissionUpdate(SubscriptionPermissionUpdate)
      case refreshToken(String)
      case trackUnpublished(TrackUnpublishedResponse)
      case pong(Int64)
      case reconnect(ReconnectResponse)
      case pongResp(Pong)
      case subscriptionResponse(SubscriptionResponse)
      case requestResponse(RequestResponse)
      case trackSubscribed(TrackSubscribed)
      case roomMoved(RoomMovedResponse)
      case mediaSectionsRequirement(MediaSectionsRequirement)
      case subscribedAudioCodecUpdate(SubscribedAudioCodecUpdate)
      case publishDataTrackResponse(PublishDataTrackResponse)
      case unpublishDataTrackResponse(UnpublishDataTrackResponse)
      case dataTrackSubscriberHandles(DataTrackSubscriberHandles)
      case storeDataBlobResponse(StoreDataBlobResponse)
      case getDataBlobResponse(GetDataBlobResponse)

      public var join: JoinResponse? { if case .join(let it) = self { it } else { nil } }
      public var answer: SessionDescription? { if case .answer(let it) = self { it } else { nil } }
      public var offer: SessionDescription? { if case .offer(let it) = self { it } else { nil } }
      public var trickle: TrickleRequest? { if case .trickle(let it) = self { it } else { nil } }
      public var update: ParticipantUpdate? { if case .update(let it) = self { it } else { nil } }
      public var trackPublished: TrackPublishedResponse? {
        if case .trackPublished(let it) = self { it } else { nil }
      }
      public var leave: LeaveRequest? { if case .leave(let it) = self { it } else { nil } }
      public var mute: MuteTrackRequest? { if case .mute(let it) = self { it } else { nil } }
      public var speakersChanged: SpeakersChanged? {
        if case .speakersChanged(let it) = self { it } else { nil }
      }
      public var roomUpdate: RoomUpdate? { if case .roomUpdate(let it) = self { it } else { nil } }
      public var connectionQuality: ConnectionQualityUpdate? {
        if case .connectionQuality(let it) = self { it } else { nil }
      }
      public var streamStateUpdate: StreamStateUpdate? {
        if case .streamStateUpdate(let it) = self { it } else { nil }
      }
      public var subscribedQualityUpdate: SubscribedQualityUpdate? {
        if case .subscribedQualityUpdate(let it) = self { it } else { nil }
      }
      public var subscriptionPermissionUpdate: SubscriptionPermissionUpdate? {
        if case .subscriptionPermissionUpdate(let it) = self { it } else { nil }
      }
      public var refreshToken: String? { if case .refreshToken(let it) = self { it } else { nil } }
      public var trackUnpublished: TrackUnpublishedResponse? {
        if case .trackUnpublished(let it) = self { it } else { nil }
      }
      public var pong: Int64? { if case .pong(let it) = self { it } else { nil } }
      public var reconnect: ReconnectResponse? { if case .reconnect(let it) = self { it } else { nil } }
      public var pongResp: Pong? { if case .pongResp(let it) = self { it } else { nil } }
      public var subscriptionResponse: SubscriptionResponse? {
        if case .subscriptionResponse(let it) = self { it } else { nil }
      }
      public var requestResponse: RequestResponse? {
        if case .requestResponse(let it) = self { it } else { nil }
      }
      public var trackSubscribed: TrackSubscribed? {
        if case .trackSubscribed(let it) = self { it } else { nil }
      }
      public var roomMoved: RoomMovedResponse? { if case .roomMoved(let it) = self { it } else { nil } }
      public var mediaSectionsRequirement: MediaSectionsRequirement? {
        if case .mediaSectionsRequirement(let it) = self { it } else { nil }
      }
      public var subscribedAudioCodecUpdate: SubscribedAudioCodecUpdate? {
        if case .subscribedAudioCodecUpdate(let it) = self { it } else { nil }
      }
      public var publishDataTrackResponse: PublishDataTrackResponse? {
        if case .publishDataTrackResponse(let it) = self { it } else { nil }
      }
      public var unpublishDataTrackResponse: UnpublishDataTrackResponse? {
        if case .unpublishDataTrackResponse(let it) = self { it } else { nil }
      }
      public var dataTrackSubscriberHandles: DataTrackSubscriberHandles? {
        if case .dataTrackSubscriberHandles(let it) = self { it } else { nil }
      }
      public var storeDataBlobResponse: StoreDataBlobResponse? {
        if case .storeDataBlobResponse(let it) = self { it } else { nil }
      }
      public var getDataBlobResponse: GetDataBlobResponse? {
        if case .getDataBlobResponse(let it) = self { it } else { nil }
      }
    }

    public var message: Message?

    public init() {}
    public init(_ message: Message) { self.message = message }

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.oneof(1, "join", &message, Message.join) { $0?.join }
      try f.oneof(2, "answer", &message, Message.answer) { $0?.answer }
      try f.oneof(3, "offer", &message, Message.offer) { $0?.offer }
      try f.oneof(4, "trickle", &message, Message.trickle) { $0?.trickle }
      try f.oneof(5, "update", &message, Message.update) { $0?.update }
      try f.oneof(6, "track_published", &message, Message.trackPublished) { $0?.trackPublished }
      try f.oneof(8, "leave", &message, Message.leave) { $0?.leave }
      try f.oneof(9, "mute", &message, Message.mute) { $0?.mute }
      try f.oneof(10, "speakers_changed", &message, Message.speakersChanged) { $0?.speakersChanged }
      try f.oneof(11, "room_update", &message, Message.roomUpdate) { $0?.roomUpdate }
      try f.oneof(12, "connection_quality", &message, Message.connectionQuality) { $0?.connectionQuality }
      try f.oneof(13, "stream_state_update", &message, Message.streamStateUpdate) { $0?.streamStateUpdate }
      try f.oneof(
        14, "subscribed_quality_update", &message, Message.subscribedQualityUpdate
      ) { $0?.subscribedQualityUpdate }
      try f.oneof(
        15, "subscription_permission_update", &message, Message.subscriptionPermissionUpdate
      ) { $0?.subscriptionPermissionUpdate }
      try f.oneof(16, "refresh_token", &message, Message.refreshToken) { $0?.refreshToken }
      try f.oneof(17, "track_unpublished", &message, Message.trackUnpublished) { $0?.trackUnpublished }
      try f.oneof(18, "pong", &message, Message.pong) { $0?.pong }
      try f.oneof(19, "reconnect", &message, Message.reconnect) { $0?.reconnect }
      try f.oneof(20, "pong_resp", &message, Message.pongResp) { $0?.pongResp }
      try f.oneof(21, "subscription_response", &message, Message.subscriptionResponse) {
        $0?.subscriptionResponse
      }
      try f.oneof(22, "request_response", &message, Message.requestResponse) { $0?.requestResponse }
      try f.oneof(23, "track_subscribed", &message, Message.trackSubscribed) { $0?.trackSubscribed }
      try f.oneof(24, "room_moved", &message, Message.roomMoved) { $0?.roomMoved }
      try f.oneof(
        25, "media_sections_requirement", &message, Message.mediaSectionsRequirement
      ) { $0?.mediaSectionsRequirement }
      try f.oneof(
        26, "subscribed_audio_codec_update", &message, Message.subscribedAudioCodecUpdate
      ) { $0?.subscribedAudioCodecUpdate }
      try f.oneof(
        27, "publish_data_track_response", &message, Message.publishDataTrackResponse
      ) { $0?.publishDataTrackResponse }
      try f.oneof(
        28, "unpublish_data_track_response", &message, Message.unpublishDataTrackResponse
      ) { $0?.unpublishDataTrackResponse }
      try f.oneof(
        29, "data_track_subscriber_handles", &message, Message.dataTrackSubscriberHandles
      ) { $0?.dataTrackSubscriberHandles }
      try f.oneof(
        30, "store_data_blob_response", &message, Message.storeDataBlobResponse
      ) { $0?.storeDataBlobResponse }
      try f.oneof(31, "get_data_blob_response", &message, Message.getDataBlobResponse) {
        $0?.getDataBlobResponse
      }
    }
  }
}
