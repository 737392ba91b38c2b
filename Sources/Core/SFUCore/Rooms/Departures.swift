import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// Who left a room lately, for those whose signaling was cut meanwhile: some clients take nobody for gone who is only missing
/// in the snapshot of a resume.
struct Departures {
  private static let limit = 1_000

  private struct Entry {
    let info: LiveKit.ParticipantInfo
    let at: Instant
  }

  private var entries: [Entry] = []

  /// - Parameter age: what is older than this is forgotten: nobody resumes after so long.
  mutating func note(_ info: LiveKit.ParticipantInfo, at now: Instant, age: TimeDelta) {
    let old = entries.prefix { now - $0.at > age }.count
    entries.removeFirst(max(old, entries.count + 1 - Self.limit))
    // Who it was, and nothing of what it told about itself.
    let kept = LiveKit.ParticipantInfo.with {
      $0.sid = info.sid
      $0.identity = info.identity
      $0.state = info.state
      $0.name = info.name
      $0.version = info.version
      $0.joinedAt = info.joinedAt
      $0.joinedAtMs = info.joinedAtMs
      $0.kind = info.kind
      $0.disconnectReason = info.disconnectReason
    }
    entries.append(Entry(info: kept, at: now))
  }

  /// The last session of each who left since then, except of those who are there again.
  func infos(since start: Instant, except present: Set<String>) -> [LiveKit.ParticipantInfo] {
    var seen = present
    return entries.reversed().filter { $0.at >= start && seen.insert($0.info.identity).inserted }.map(\.info)
  }
}
