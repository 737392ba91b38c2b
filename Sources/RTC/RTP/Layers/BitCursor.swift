import PalbeUnits
import PalbeWire

/// A place in bytes that are read bit by bit, the highest first.
struct BitCursor: BitwiseCopyable {
  /// Bits before it.
  private(set) var position = 0

  /// The next bits as a number, 32 at most.
  mutating func read(_ count: Int, from bytes: Span<UInt8>) throws(WireError) -> UInt32 {
    let end = position + count
    guard end <= 8 * bytes.count else { throw .truncated(needed: (end + 7) / 8, have: bytes.count) }
    var value: UInt32 = 0
    while position < end {
      let taken = min(8 - position & 7, end - position)
      let rest = UInt32(bytes[position >> 3]) >> UInt32(8 - position & 7 - taken)
      value = value << UInt32(taken) | rest & (1 << UInt32(taken) - 1)
      position += taken
    }
    return value
  }

  /// The next bit.
  mutating func flag(from bytes: Span<UInt8>) throws(WireError) -> Bool { try read(1, from: bytes) != 0 }

  mutating func skip(_ count: Int, in bytes: Span<UInt8>) throws(WireError) {
    guard position + count <= 8 * bytes.count else {
      throw .truncated(needed: (position + count + 7) / 8, have: bytes.count)
    }
    position += count
  }

  /// A number below `limit` in as few bits as it needs (AV1's `ns(n)`).
  mutating func number(below limit: UInt32, from bytes: Span<UInt8>) throws(WireError) -> UInt32 {
    let width = 32 - limit.leadingZeroBitCount
    let short = UInt32(1) << UInt32(width) - limit
    let value = try read(width - 1, from: bytes)
    guard value >= short else { return value }
    return try value << 1 - short + read(1, from: bytes)
  }
}

/// Bits written one behind the other into bytes that somebody lends.
struct BitWriter: BitwiseCopyable {
  private(set) var position = 0

  var byteCount: Int { (position + 7) / 8 }

  /// Appends the lower bits of a number, the highest first.
  @_lifetime(target: copy target)
  mutating func write(
    _ value: UInt32, _ count: Int, into target: inout MutableSpan<UInt8>
  ) throws(WireError) {
    guard position + count <= 8 * target.count else {
      throw .truncated(needed: (position + count + 7) / 8, have: target.count)
    }
    for bit in 0..<count {
      if position & 7 == 0 { target[position >> 3] = 0 }
      if value >> UInt32(count - 1 - bit) & 1 != 0 { target[position >> 3] |= 0x80 >> UInt8(position & 7) }
      position += 1
    }
  }

  /// Appends the bits from a place up to another one.
  @_lifetime(target: copy target)
  mutating func copy(
    _ bytes: Span<UInt8>, from start: Int, to end: Int, into target: inout MutableSpan<UInt8>
  ) throws(WireError) {
    var cursor = BitCursor()
    try cursor.skip(start, in: bytes)
    while cursor.position < end {
      let count = min(8, end - cursor.position)
      try write(cursor.read(count, from: bytes), count, into: &target)
    }
  }
}
