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
    }

    public var message: Message?

    public init() {}
    public init(_ message: Message) { self.message = message }

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch message {
        case .offer(let value): f.put(1, value)
        case .answer(let value): f.put(2, value)
        case .trickle(let value): f.put(3, value)
        case .addTrack(let value): f.put(4, value)
        case .mute(let value): f.put(5, value)
        case .subscription(let value): f.put(6, value)
        case .trackSetting(let value): f.put(7, value)
        case .leave(let value): f.put(8, value)
        case .updateLayers(let value): f.put(10, value)
        case .subscriptionPermission(let value): f.put(11, value)
        case .syncState(let value): f.put(12, value)
        case .simulate(let value): f.put(13, value)
        case .ping(let value): f.put(14, value)
        case .updateMetadata(let value): f.put(15, value)
        case .pingReq(let value): f.put(16, value)
        case .updateAudioTrack(let value): f.put(17, value)
        case .updateVideoTrack(let value): f.put(18, value)
        case .publishDataTrackRequest(let value): f.put(19, value)
        case .unpublishDataTrackRequest(let value): f.put(20, value)
        case .updateDataSubscription(let value): f.put(21, value)
        case .storeDataBlobRequest(let value): f.put(22, value)
        case .getDataBlobRequest(let value): f.put(23, value)
        case nil: break
        }
      case 1: message = .offer(try f.take())
      case 2: message = .answer(try f.take())
      case 3: message = .trickle(try f.take())
      case 4: message = .addTrack(try f.take())
      case 5: message = .mute(try f.take())
      case 6: message = .subscription(try f.take())
      case 7: message = .trackSetting(try f.take())
      case 8: message = .leave(try f.take())
      case 10: message = .updateLayers(try f.take())
      case 11: message = .subscriptionPermission(try f.take())
      case 12: message = .syncState(try f.take())
      case 13: message = .simulate(try f.take())
      case 14: message = .ping(try f.take())
      case 15: message = .updateMetadata(try f.take())
      case 16: message = .pingReq(try f.take())
      case 17: message = .updateAudioTrack(try f.take())
      case 18: message = .updateVideoTrack(try f.take())
      case 19: message = .publishDataTrackRequest(try f.take())
      case 20: message = .unpublishDataTrackRequest(try f.take())
      case 21: message = .updateDataSubscription(try f.take())
      case 22: message = .storeDataBlobRequest(try f.take())
      case 23: message = .getDataBlobRequest(try f.take())
      default: break
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
    }

    public var message: Message?

    public init() {}
    public init(_ message: Message) { self.message = message }

    public mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      switch f.decoding {
      case 0:
        switch message {
        case .join(let value): f.put(1, value)
        case .answer(let value): f.put(2, value)
        case .offer(let value): f.put(3, value)
        case .trickle(let value): f.put(4, value)
        case .update(let value): f.put(5, value)
        case .trackPublished(let value): f.put(6, value)
        case .leave(let value): f.put(8, value)
        case .mute(let value): f.put(9, value)
        case .speakersChanged(let value): f.put(10, value)
        case .roomUpdate(let value): f.put(11, value)
        case .connectionQuality(let value): f.put(12, value)
        case .streamStateUpdate(let value): f.put(13, value)
        case .subscribedQualityUpdate(let value): f.put(14, value)
        case .subscriptionPermissionUpdate(let value): f.put(15, value)
        case .refreshToken(let value): f.put(16, value)
        case .trackUnpublished(let value): f.put(17, value)
        case .pong(let value): f.put(18, value)
        case .reconnect(let value): f.put(19, value)
        case .pongResp(let value): f.put(20, value)
        case .subscriptionResponse(let value): f.put(21, value)
        case .requestResponse(let value): f.put(22, value)
        case .trackSubscribed(let value): f.put(23, value)
        case .roomMoved(let value): f.put(24, value)
        case .mediaSectionsRequirement(let value): f.put(25, value)
        case .subscribedAudioCodecUpdate(let value): f.put(26, value)
        case .publishDataTrackResponse(let value): f.put(27, value)
        case .unpublishDataTrackResponse(let value): f.put(28, value)
        case .dataTrackSubscriberHandles(let value): f.put(29, value)
        case .storeDataBlobResponse(let value): f.put(30, value)
        case .getDataBlobResponse(let value): f.put(31, value)
        case nil: break
        }
      case 1: message = .join(try f.take())
      case 2: message = .answer(try f.take())
      case 3: message = .offer(try f.take())
      case 4: message = .trickle(try f.take())
      case 5: message = .update(try f.take())
      case 6: message = .trackPublished(try f.take())
      case 8: message = .leave(try f.take())
      case 9: message = .mute(try f.take())
      case 10: message = .speakersChanged(try f.take())
      case 11: message = .roomUpdate(try f.take())
      case 12: message = .connectionQuality(try f.take())
      case 13: message = .streamStateUpdate(try f.take())
      case 14: message = .subscribedQualityUpdate(try f.take())
      case 15: message = .subscriptionPermissionUpdate(try f.take())
      case 16: message = .refreshToken(try f.take())
      case 17: message = .trackUnpublished(try f.take())
      case 18: message = .pong(try f.take())
      case 19: message = .reconnect(try f.take())
      case 20: message = .pongResp(try f.take())
      case 21: message = .subscriptionResponse(try f.take())
      case 22: message = .requestResponse(try f.take())
      case 23: message = .trackSubscribed(try f.take())
      case 24: message = .roomMoved(try f.take())
      case 25: message = .mediaSectionsRequirement(try f.take())
      case 26: message = .subscribedAudioCodecUpdate(try f.take())
      case 27: message = .publishDataTrackResponse(try f.take())
      case 28: message = .unpublishDataTrackResponse(try f.take())
      case 29: message = .dataTrackSubscriberHandles(try f.take())
      case 30: message = .storeDataBlobResponse(try f.take())
      case 31: message = .getDataBlobResponse(try f.take())
      default: break
      }
    }
  }
}
