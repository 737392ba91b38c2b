/// Which of the last 1,024 packet indices were used, and the highest (RFC 3711 §3.3.1 and §3.3.2).
///
/// A receiver refuses what it accepted before; a sender refuses to protect an index twice.
package struct SequenceWindow: Sendable {
  /// Indices remembered.
  package static let count: UInt64 = 1_024

  /// What is known about an index.
  package enum Status: Sendable { case fresh, used, tooOld }

  /// The highest index used; meaningless while nothing was.
  package private(set) var highest: UInt64 = 0
  /// False until the first index.
  package private(set) var isStarted = false
  /// Bit i stands for the index of the window that is i modulo 1,024.
  private var bits = InlineArray<16, UInt64>(repeating: 0)

  package init() {}

  /// The 48-bit index of a packet with that sequence number: the one nearest to the highest.
  ///
  /// Before the first packet the roll-over count is zero. Below index zero there is nothing, so a number that would
  /// lie there is one far ahead under roll-over count zero.
  package func index(of sequenceNumber: UInt16) -> UInt64 {
    guard isStarted else { return UInt64(sequenceNumber) }
    let step = Int64(Int16(bitPattern: sequenceNumber &- UInt16(truncatingIfNeeded: highest)))
    let index = Int64(bitPattern: highest) + step
    return index < 0 ? UInt64(sequenceNumber) : UInt64(index)
  }

  /// Whether that index may be used.
  package func status(of index: UInt64) -> Status {
    guard isStarted, index <= highest else { return .fresh }
    guard highest - index < Self.count else { return .tooOld }
    return bits[Int(index >> 6 & 15)] >> (index & 63) & 1 == 1 ? .used : .fresh
  }

  /// Notes that the index is used; one older than the window changes nothing.
  package mutating func use(_ index: UInt64) {
    if !isStarted {
      isStarted = true
      highest = index
    } else if index > highest {
      forget(from: highest + 1, through: index)
      highest = index
    } else if highest - index >= Self.count {
      return
    }
    bits[Int(index >> 6 & 15)] |= 1 << (index & 63)
  }

  /// Clears the bits of indices that enter the window.
  private mutating func forget(from first: UInt64, through last: UInt64) {
    guard last - first < Self.count - 1 else {
      bits = InlineArray(repeating: 0)
      return
    }
    var index = first
    while index <= last {
      bits[Int(index >> 6 & 15)] &= ~(1 << (index & 63))
      index += 1
    }
  }
}
