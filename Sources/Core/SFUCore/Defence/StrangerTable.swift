import PalbeUnits

/// Limits what addresses may ask for that nobody has proven to be a participant's: a table of fixed size, so that no number
/// of senders makes it grow, looked at before anything is allocated for a datagram.
///
/// ## Implementation
///
/// An address (IPv4), or a network of 64 bits (IPv6), falls by a secret hash into a group of four places. One that has none
/// takes the place whose owner is closest to a rested account. Somebody who forges more sources than there are places
/// gets no more out of it than the forged sources would have together.
struct StrangerTable {
  private struct Place {
    var key: UInt64 = 0
    var account = WorkAccount()
  }

  private static let width = 4
  private let allowance: WorkAllowance
  private let secret: (UInt64, UInt64)
  private var places: [Place]

  /// - Parameters:
  ///   - groupBits: the table has 4 · 2^groupBits places of 16 bytes.
  init(_ allowance: WorkAllowance, groupBits: Int = 10, using random: inout RandomSource) {
    self.allowance = allowance
    secret = (random.next() | 1, random.next() | 1)
    places = Array(repeating: Place(), count: Self.width << groupBits)
  }

  /// False when the address has asked for too much.
  mutating func admits(_ address: SocketAddress, at now: Instant) -> Bool {
    let key = key(of: address)
    let group = Int(truncatingIfNeeded: key & UInt64(places.count / Self.width - 1)) * Self.width
    var choice = group
    for index in group..<group + Self.width {
      if places[index].key == key {
        return allowance.admits(1, on: &places[index].account, at: now)
      }
      if places[index].account.earnedAt < places[choice].account.earnedAt { choice = index }
    }
    places[choice] = Place(key: key)
    return allowance.admits(1, on: &places[choice].account, at: now)
  }

  /// Never zero, which is a free place's.
  private func key(of address: SocketAddress) -> UInt64 {
    // Two rounds of multiply and fold: the secret decides who shares a group with whom.
    let family = UInt64(address.family.rawValue)
    let first = (address.high ^ secret.1 &+ family).multipliedFullWidth(by: secret.0)
    let folded = first.high ^ first.low
    let second = (folded ^ secret.0).multipliedFullWidth(by: secret.1)
    return (second.high ^ second.low) | 1 << 63
  }
}
