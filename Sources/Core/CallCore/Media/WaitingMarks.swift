import PalbeUnits

/// What is to be remembered of a frame that waits in the key ring for its key. Oldest first.
struct WaitingMarks: Sendable {
  struct Mark: Sendable {
    var tag: UInt64
    var track: RemoteTrackID
    /// The packet's number (audio) or the frame's place in the chain (video).
    var serial: UInt64
    var timestamp: RTPTimestamp
    var arrival: Instant
  }

  /// A frame waits no longer than the ring keeps it, and a little more so that the ring decides first.
  static let patience = TimeDelta.milliseconds(520)
  static let limit = 8_192

  private var marks: [Mark] = []
  private var nextTag: UInt64 = 0

  /// The tag for the next frame that is opened.
  mutating func tag() -> UInt64 {
    defer { nextTag += 1 }
    return nextTag
  }

  mutating func add(_ mark: Mark) {
    if marks.count == Self.limit { marks.removeFirst() }
    marks.append(mark)
  }

  /// The frame with that tag is here.
  mutating func take(_ tag: UInt64) -> Mark? {
    marks.firstIndex { $0.tag == tag }.map { marks.remove(at: $0) }
  }

  var nextDeadline: Instant? { marks.first.map { $0.arrival + Self.patience } }

  /// Frames whose key did not come in time.
  mutating func expire(at now: Instant) -> [Mark] {
    let count = marks.firstIndex { $0.arrival + Self.patience > now } ?? marks.count
    guard count > 0 else { return [] }
    defer { marks.removeFirst(count) }
    return Array(marks[..<count])
  }
}
