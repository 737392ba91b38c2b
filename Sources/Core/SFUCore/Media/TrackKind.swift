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

  var clockRate: Int { self == .audio ? 48_000 : 90_000 }
}

/// What we forward: codecs whose key frames can be told from the outside.
enum MediaCodec: String, CaseIterable {
  case opus
  case vp8 = "VP8"
  case h264 = "H264"
  case vp9 = "VP9"
  case av1 = "AV1"

  var kind: TrackKind { self == .opus ? .audio : .video }
  /// Clients that have several sizes of a picture send them in one stream.
  var hasSizesInOneStream: Bool { self == .vp9 || self == .av1 }
  var mimeType: String { (kind == .audio ? "audio/" : "video/") + rawValue }
  /// RFC 2198 around Opus.
  static let redundantMimeType = "audio/red"

  /// From a codec's name, with or without its kind, in any case.
  init?(name: String) {
    let last = name.split(separator: "/").last?.lowercased()
    guard let codec = Self.allCases.first(where: { $0.rawValue.lowercased() == last }) else { return nil }
    self = codec
  }

  /// Whether packets of one format can be decoded as the other (RFC 6184 §8.1, RFC 9628 §7, AV1's §7.2).
  func isSameFormat(_ one: RTPCodec, _ other: RTPCodec) -> Bool {
    profile(one) == profile(other) && (self != .h264 || Self.mode(one) == Self.mode(other))
  }

  /// How much a format is liked when the publisher offers several; the higher the better.
  func preference(_ codec: RTPCodec) -> Int {
    switch self {
    case .opus, .vp8: 0
    // Baseline is what every client can decode.
    case .h264: (Self.mode(codec) == "1" ? 2 : 0) + (profile(codec) == "42" ? 1 : 0)
    case .vp9, .av1: profile(codec) == "0" ? 1 : 0
    }
  }

  static func mode(_ codec: RTPCodec) -> String { codec.parameter("packetization-mode") ?? "0" }

  /// What tells formats of a codec apart, besides H264's mode. H264's baseline and constrained baseline are one: what sends
  /// one of them in a call sends the other.
  func profile(_ codec: RTPCodec) -> String {
    switch self {
    case .opus, .vp8: ""
    case .h264: (codec.parameter("profile-level-id") ?? "42001f").prefix(2).lowercased()
    case .vp9: codec.parameter("profile-id") ?? "0"
    case .av1: codec.parameter("profile") ?? "0"
    }
  }
}
