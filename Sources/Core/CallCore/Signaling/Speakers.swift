import PalbeLiveKit

/// Who speaks, from the changes that the server sends.
struct Speakers: Sendable {
  private static let limit = 256
  private var levels: [String: Float] = [:]

  /// Takes up changes; the sids of those who speak, loudest first.
  mutating func update(_ changes: [LiveKit.SpeakerInfo]) -> [String] {
    for speaker in changes.prefix(Self.limit) {
      if speaker.active, speaker.level > 0 {
        if levels.count < Self.limit || levels[speaker.sid] != nil { levels[speaker.sid] = speaker.level }
      } else {
        levels[speaker.sid] = nil
      }
    }
    return levels.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
  }
}
