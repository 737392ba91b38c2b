import PalbeUnits

/// What is kept of one SSRC in one direction.
struct SourceState: Sendable {
  let ssrc: SSRC
  var rtp = SequenceWindow()
  var rtcp = SequenceWindow()

  init(_ ssrc: SSRC) { self.ssrc = ssrc }
}

/// The sources of one direction, found by SSRC without an allocation: open addressing over an array that is at most
/// half full.
struct SourceTable: Sendable {
  let limit: Int
  var states: [SourceState] = []
  /// Index into `states` plus one; zero where nothing is.
  private var slots: [UInt16] = [UInt16](repeating: 0, count: 16)

  /// - Parameter limit: sources at most, up to 16,384.
  init(limit: Int) { self.limit = max(1, min(limit, 16_384)) }

  func index(of ssrc: SSRC) -> Int? {
    var slot = firstSlot(ssrc)
    while slots[slot] != 0 {
      let index = Int(slots[slot]) - 1
      if states[index].ssrc == ssrc { return index }
      slot = (slot + 1) & (slots.count - 1)
    }
    return nil
  }

  var isFull: Bool { states.count >= limit }

  /// Adds a source that is not there; the caller has checked `isFull`.
  mutating func insert(_ ssrc: SSRC) -> Int {
    states.append(SourceState(ssrc))
    if states.count * 2 > slots.count { rebuild(slotCount: slots.count * 2) } else { place(states.count - 1) }
    return states.count - 1
  }

  mutating func remove(_ ssrc: SSRC) {
    guard let index = index(of: ssrc) else { return }
    states.swapAt(index, states.count - 1)
    states.removeLast()
    rebuild(slotCount: slots.count)
  }

  private mutating func rebuild(slotCount: Int) {
    slots = [UInt16](repeating: 0, count: slotCount)
    for index in states.indices { place(index) }
  }

  private mutating func place(_ index: Int) {
    var slot = firstSlot(states[index].ssrc)
    while slots[slot] != 0 { slot = (slot + 1) & (slots.count - 1) }
    slots[slot] = UInt16(index + 1)
  }

  /// SSRCs are random numbers, but a peer chooses its own: the worst it can do is a walk over all its sources.
  private func firstSlot(_ ssrc: SSRC) -> Int {
    Int(truncatingIfNeeded: (ssrc.rawValue &* 0x9e37_79b1) >> 8) & (slots.count - 1)
  }
}
