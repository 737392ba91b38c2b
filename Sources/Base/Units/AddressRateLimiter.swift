/// How often an address may do something: token buckets in a table of fixed size.
///
///     var limiter = AddressRateLimiter(perSecond: 50, burst: 200, seed: seed)
///     guard limiter.take(from: source, at: now) else { return }   // nothing was allocated for it
///
/// An IPv6 network of 64 bits counts as one address, because one host can use all of it. The table never
/// grows. When its places are taken, a newcomer inherits the fullest bucket of four: whoever comes from very
/// many addresses gets at most the table's size in bursts, and somebody who is limited stays limited.
public struct AddressRateLimiter: Sendable {
  private struct Bucket {
    /// Zero is a place that nobody has taken.
    var key: UInt64 = 0
    /// In nanoseconds of earning: a token costs `cost`.
    var credit: Int64 = 0
    var updated = Instant.zero
  }

  private static let ways = 4

  private var buckets: [Bucket]
  private let setCount: UInt64
  private var cost: Int64 = 1
  private var capacity: Int64 = 1
  private let seed: UInt64

  /// - Parameters:
  ///   - rate: tokens that come back in a second, 1 to 1,000,000.
  ///   - burst: tokens at most, 1 to 1,000,000.
  ///   - seed: drawn at random, so that nobody can choose addresses that share a place.
  ///   - placeCount: how many addresses are told apart; rounded up to a multiple of four.
  public init(perSecond rate: Int, burst: Int, seed: UInt64, placeCount: Int = 4_096) {
    setCount = UInt64(max(1, (placeCount + Self.ways - 1) / Self.ways))
    buckets = Array(repeating: Bucket(), count: Int(setCount) * Self.ways)
    self.seed = seed
    setRate(perSecond: rate, burst: burst)
  }

  /// Counts by other numbers from now on. What an address has saved is kept as far as it fits.
  public mutating func setRate(perSecond rate: Int, burst: Int) {
    cost = 1_000_000_000 / Int64(min(max(1, rate), 1_000_000))
    capacity = cost * Int64(min(max(1, burst), 1_000_000))
  }

  /// Takes a token of this address; false when it has none left. Allocates nothing.
  public mutating func take(from address: SocketAddress, at now: Instant) -> Bool {
    let key = Self.key(of: address, seed: seed)
    let first = Int(key % setCount) * Self.ways
    var chosen = first
    var fullest = Int64.min
    for index in first..<first + Self.ways {
      if buckets[index].key == key {
        chosen = index
        break
      }
      let credit = buckets[index].key == 0 ? Int64.max : credit(index, at: now)
      if credit > fullest {
        chosen = index
        fullest = credit
      }
    }
    let credit = buckets[chosen].key == 0 ? capacity : credit(chosen, at: now)
    let isAllowed = credit >= cost
    buckets[chosen] = Bucket(key: key, credit: isAllowed ? credit - cost : credit, updated: now)
    return isAllowed
  }

  private func credit(_ index: Int, at now: Instant) -> Int64 {
    let earned = max(0, (now - buckets[index].updated).nanoseconds)
    return min(capacity, buckets[index].credit + min(earned, capacity))
  }

  /// Never zero.
  private static func key(of address: SocketAddress, seed: UInt64) -> UInt64 {
    var key = address.high ^ seed ^ UInt64(address.family.rawValue)
    // The finalizer of MurmurHash3 mixes every bit into every other.
    for factor: UInt64 in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
      key = (key ^ key >> 33) &* factor
    }
    return max(1, key ^ key >> 33)
  }
}
