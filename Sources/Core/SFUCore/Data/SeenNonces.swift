/// The last nonces of operators' messages to a room: a message under one of them was sent before.
struct SeenNonces {
  static let limit = 1_024

  private var seen: Set<[UInt8]> = []
  /// A ring, once it is full.
  private var order: [[UInt8]] = []
  private var oldest = 0

  /// False for one that is among them.
  mutating func insert(_ nonce: [UInt8]) -> Bool {
    guard seen.insert(nonce).inserted else { return false }
    guard order.count == Self.limit else {
      order.append(nonce)
      return true
    }
    seen.remove(order[oldest])
    order[oldest] = nonce
    oldest = (oldest + 1) % Self.limit
    return true
  }
}
