import PalbeUnits

extension LiveKit {
  /// The ids a server gives out. Clients check the prefixes, and some crash on another one.
  public enum Sid {
    /// `PA_` and twelve characters.
    public static func participant(using random: inout RandomSource) -> String { make("PA_", &random) }

    /// `RM_` and twelve characters.
    public static func room(using random: inout RandomSource) -> String { make("RM_", &random) }

    /// `DTR_` and twelve characters.
    public static func dataTrack(using random: inout RandomSource) -> String { make("DTR_", &random) }

    /// `TR_`, a letter for the type, a letter for the source, and twelve characters.
    public static func track(_ type: TrackType, _ source: TrackSource, using random: inout RandomSource)
      -> String
    {
      let kind =
        switch type {
        case .audio: "A"
        case .video: "V"
        default: "D"
        }
      let origin =
        switch source {
        case .camera: "C"
        case .microphone: "M"
        case .screenShare: "S"
        case .screenShareAudio: "s"
        default: "U"
        }
      return make("TR_" + kind + origin, &random)
    }

    private static let alphabet = Array("23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".utf8)

    private static func make(_ prefix: String, _ random: inout RandomSource) -> String {
      let characters = (0..<12).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
      return prefix + String(decoding: characters, as: UTF8.self)
    }
  }
}
