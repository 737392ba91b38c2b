/// The transactions of a peer's latest checks, so that one that comes again is known.
///
/// A peer may send a check twice (RFC 8489 §6.2.1), and so may whoever saw it on its way: the second one is answered where the first
/// one's answer may have been lost, and changes nothing.
struct SeenTransactions: Sendable {
  /// A browser with a few paths sends about two checks a second, so this is half a minute of them.
  static let limit = 64

  private var ids: [STUNTransactionID] = []
  /// The oldest, once there are `limit`.
  private var oldest = 0

  /// Remembers one; false when it was there already.
  mutating func insert(_ id: STUNTransactionID) -> Bool {
    guard !ids.contains(id) else { return false }
    if ids.count < Self.limit {
      if ids.isEmpty { ids.reserveCapacity(Self.limit) }
      ids.append(id)
    } else {
      ids[oldest] = id
      oldest = (oldest + 1) % Self.limit
    }
    return true
  }
}
