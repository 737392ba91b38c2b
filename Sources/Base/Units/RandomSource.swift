/// Randomness that the shell hands to a core.
///
/// A shell passes the system's generator; a test passes a seed, and the run replays.
///
///     var random = RandomSource {
///       var system = SystemRandomNumberGenerator()
///       return system.next()
///     }
public struct RandomSource: RandomNumberGenerator, Sendable {
  @usableFromInline
  enum Kind: Sendable {
    case drawn(@Sendable () -> UInt64)
    case seeded(UInt64)
  }
  @usableFromInline var kind: Kind

  /// Draws from `next`, which must be uniform and, outside tests, unpredictable.
  public init(_ next: @escaping @Sendable () -> UInt64) { kind = .drawn(next) }

  /// A reproducible sequence (SplitMix64). Never for keys outside tests.
  public init(seed: UInt64) { kind = .seeded(seed) }

  @inlinable public mutating func next() -> UInt64 {
    switch kind {
    case .drawn(let next): return next()
    case .seeded(var state):
      state &+= 0x9e37_79b9_7f4a_7c15
      kind = .seeded(state)
      var z = state
      z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
      z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
      return z ^ (z >> 31)
    }
  }

  /// `count` fresh random bytes, for values that are not secret. Secrets are drawn into `SymmetricKey`.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    var result = [UInt8]()
    result.reserveCapacity(count)
    while result.count < count {
      var word = next()
      for _ in 0..<min(8, count - result.count) {
        result.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return result
  }
}
