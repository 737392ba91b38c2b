import PalbeLiveKit
import PalbeProtobuf

/// Writes the join request: who we are, what we publish, and the first offer, so that set-up is one round
/// trip.
enum JoinRequestBuilder {
  /// The version of LiveKit's protocol that is spoken.
  static let protocolVersion: Int32 = 16

  static func make(
    configuration: CallConfiguration, senders: [MediaSender], offer: LiveKit.SessionDescription?
  ) -> [UInt8] {
    var request = LiveKit.JoinRequest()
    request.clientInfo = .with {
      $0.sdk = .unknown
      $0.version = configuration.clientVersion
      $0.protocol = protocolVersion
    }
    request.connectionSettings = .with { $0.autoSubscribe = true }
    request.addTrackRequests = senders.map { addTrack($0, configuration) }
    request.publisherOffer = offer
    return LiveKit.WrappedJoinRequest.with { $0.joinRequest = request.serialized() }.serialized()
  }

  private static func addTrack(
    _ sender: MediaSender, _ configuration: CallConfiguration
  ) -> LiveKit.AddTrackRequest {
    var request = LiveKit.AddTrackRequest()
    request.cid = sender.cid
    request.encryption = configuration.encryption.announced
    switch sender.track {
    case .microphone:
      request.name = "microphone"
      request.type = .audio
      request.source = .microphone
      request.disableRed = true
    case .camera:
      request.name = "camera"
      request.type = .video
      request.source = .camera
      request.width = UInt32(clamping: configuration.videoWidth)
      request.height = UInt32(clamping: configuration.videoHeight)
      request.layers = [
        .with {
          $0.quality = .high
          $0.width = request.width
          $0.height = request.height
        }
      ]
    }
    return request
  }
}
