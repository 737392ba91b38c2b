import PalbeUnits

/// The 96 bits that tie a response to its request (RFC 8489 §5).
public struct STUNTransactionID: Hashable, Sendable, BitwiseCopyable {
  /// The first 32 bits.
  public var high: UInt32
  /// The last 64 bits.
  public var low: UInt64

  /// From its two parts.
  public init(high: UInt32, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// A fresh one; unpredictable, so that nobody off the path can answer in the peer's name.
  public init(using random: inout RandomSource) {
    high = UInt32(truncatingIfNeeded: random.next())
    low = random.next()
  }
}
