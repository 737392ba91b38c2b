/// Which counters under one key were seen: a bitmap over the newest 4,096 (e2ee hazard H10).
///
/// Counters older than the window count as seen. Asked before a frame is opened, marked only after it
/// authenticated: a forgery must not move the window.
///
/// Not copyable: a copy of a kilobyte for each frame would be easy to make and hard to see.
struct ReplayWindow: ~Copyable, Sendable {
  /// How many counters, the highest seen included, can still be told apart.
  static let size: UInt64 = 4_096

  enum Verdict: Equatable, Sendable { case fresh, replayed, tooOld }

  // A ring of twice the window, so that clearing whole words never touches a bit inside the window.
  private var words = InlineArray<128, UInt64>(repeating: 0)
  private var highest: UInt64?

  @inline(__always)
  func verdict(on counter: UInt64) -> Verdict {
    guard let highest, counter <= highest else { return .fresh }
    guard highest - counter < ReplayWindow.size else { return .tooOld }
    let word = words[Int(truncatingIfNeeded: counter >> 6) & 127]
    return word >> (counter & 63) & 1 == 0 ? .fresh : .replayed
  }

  /// Takes note of an authenticated counter.
  @inline(__always)
  mutating func mark(_ counter: UInt64) {
    if let highest, counter > highest {
      let first = highest >> 6
      let steps = min(counter >> 6 - first, 128)
      var step: UInt64 = 1
      while step <= steps {
        words[Int(truncatingIfNeeded: first &+ step) & 127] = 0
        step += 1
      }
    }
    if counter > highest ?? 0 || highest == nil { highest = counter }
    words[Int(truncatingIfNeeded: counter >> 6) & 127] |= 1 << (counter & 63)
  }
}
