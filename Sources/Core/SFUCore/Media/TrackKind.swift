import PalbeLiveKit
import PalbeSDP

/// What a track carries.
enum TrackKind: Sendable {
  case audio, video

  init?(_ type: LiveKit.TrackType) {
    switch type {
    case .audio: self = .audio
    case .video: self = .video
    default: return nil
    }
  }

  init?(_ kind: MediaKind) {
    switch kind {
    case .audio: self = .audio
    case .video: self = .video
    default: return nil
    }
  }

  /// The only codecs we forward: those that can be told apart from the outside and are used end-to-end encrypted.
  var codecName: String { self == .audio ? "opus" : "VP8" }
  var clockRate: Int { self == .audio ? 48_000 : 90_000 }
  var mimeType: String { self == .audio ? "audio/opus" : "video/VP8" }
}
