import PalbeUnits

/// Who fails again and again waits, twice as long each time: a table of fixed size.
///
/// An attempt counts as failed until it is forgiven, so that a thousand at once are not a thousand free ones. When the places of
/// a key are taken, a newcomer inherits the mildest of four: whoever is waiting stays waiting.
struct AttemptThrottle: Sendable {
  private struct Place {
    /// Zero is a place that nobody has taken.
    var key: UInt64 = 0
    var failures = 0
    var updated = Instant.zero
    var until = Instant.zero
  }

  private static let ways = 4

  private var places: [Place]
  private let setCount: UInt64
  private let free: Int
  private let longest: TimeDelta
  private let memory: TimeDelta

  /// - Parameters:
  ///   - free: failures without a wait.
  ///   - longest: the longest wait.
  ///   - memory: a key that did not fail for this long is forgotten.
  init(free: Int, longest: TimeDelta, memory: TimeDelta, placeCount: Int = 16_384) {
    setCount = UInt64(max(1, placeCount / Self.ways))
    places = Array(repeating: Place(), count: Int(setCount) * Self.ways)
    self.free = free
    self.longest = longest
    self.memory = memory
  }

  /// Counts an attempt as failed. Returns how long to wait when it must not be made, and then it does not count.
  /// - Parameter key: a keyed hash, so that nobody can choose keys that share a place.
  mutating func charge(_ key: UInt64, at now: Instant) -> TimeDelta? {
    let key = max(1, key)
    let first = Int(key % setCount) * Self.ways
    var chosen = first
    var mildest = Int.max
    for index in first..<first + Self.ways {
      if places[index].key == key {
        chosen = index
        break
      }
      let failures = isForgotten(index, at: now) ? -1 : places[index].failures
      if failures < mildest { (chosen, mildest) = (index, failures) }
    }
    if isForgotten(chosen, at: now) { places[chosen] = Place() }
    places[chosen].key = key
    guard places[chosen].until <= now else { return places[chosen].until - now }
    places[chosen].failures = min(places[chosen].failures + 1, free + 40)
    places[chosen].updated = now
    let beyond = places[chosen].failures - free
    if beyond > 0 {
      let wait = TimeDelta(nanoseconds: 1_000_000_000 << Int64(min(beyond - 1, 20)))
      places[chosen].until = now + min(wait, longest)
    }
    return nil
  }

  /// The attempt was a good one, which does not count; with `wholly` the key is forgotten.
  mutating func forgive(_ key: UInt64, wholly: Bool) {
    let key = max(1, key)
    let first = Int(key % setCount) * Self.ways
    guard let index = (first..<first + Self.ways).first(where: { places[$0].key == key }) else { return }
    places[index].failures -= 1
    if places[index].failures <= free { places[index].until = .zero }
    if wholly || places[index].failures <= 0 { places[index] = Place() }
  }

  private func isForgotten(_ index: Int, at now: Instant) -> Bool {
    places[index].key == 0 || now - places[index].updated >= memory
  }
}
