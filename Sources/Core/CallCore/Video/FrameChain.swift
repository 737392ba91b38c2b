/// Decides which video frames may be decoded: a key frame, or one whose predecessor was.
///
/// Frames are numbered in the order they were sent as far as the receiver can tell. A frame that was lost,
/// could not be opened or is late breaks the chain, and only a key frame mends it.
struct FrameChain: Hashable, Sendable {
  enum Verdict: Hashable, Sendable {
    /// It may be decoded, and counts as decoded.
    case decodable
    /// What it refers to is missing: a key frame is needed.
    case orphan
    /// A later frame was given out already.
    case stale
  }

  private var nextSerial: UInt64 = 0
  private var newest: UInt64?
  private var isHolding = false

  /// The number of the next assembled frame.
  mutating func number() -> UInt64 {
    defer { nextSerial += 1 }
    return nextSerial
  }

  /// What to do with a frame that can be read now.
  mutating func judge(_ serial: UInt64, isKeyFrame: Bool) -> Verdict {
    if let newest, serial <= newest { return .stale }
    guard isKeyFrame || isHolding && newest.map({ $0 + 1 == serial }) ?? false else { return .orphan }
    newest = serial
    isHolding = true
    return .decodable
  }

  /// A frame is missing: nothing before the next key frame follows.
  mutating func breakOff() { isHolding = false }
}
