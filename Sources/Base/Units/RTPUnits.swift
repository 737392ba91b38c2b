/// A synchronization source (RFC 3550 §5.1).
public struct SSRC: Hashable, Sendable, BitwiseCopyable {
  public var rawValue: UInt32
  @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }
}

/// A 7-bit RTP payload type (RFC 3550 §5.1).
public struct PayloadType: Hashable, Sendable, BitwiseCopyable {
  /// 0 to 127.
  public var rawValue: UInt8
  @inlinable public init(_ rawValue: UInt8) { self.rawValue = rawValue & 0x7f }
}

/// The 16 bits of a sequence number that are on the wire. Order is that of RFC 1982: within half the circle.
public struct SequenceNumber: Hashable, Sendable, BitwiseCopyable {
  public var rawValue: UInt16
  @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }

  @inlinable public static func + (number: SequenceNumber, steps: Int) -> SequenceNumber {
    SequenceNumber(number.rawValue &+ UInt16(truncatingIfNeeded: steps))
  }
  /// Signed distance from `earlier` to `self` on the circle, -32768…32767.
  @inlinable public func distance(from earlier: SequenceNumber) -> Int {
    Int(Int16(bitPattern: rawValue &- earlier.rawValue))
  }
  /// True within the half circle after `other`.
  @inlinable public func isNewer(than other: SequenceNumber) -> Bool { distance(from: other) > 0 }
}

/// A sequence number that never wraps: the wire's 16 bits extended by the roll-over count (RFC 3711 §3.3.1).
public struct ExtendedSequenceNumber: Hashable, Comparable, Sendable, BitwiseCopyable {
  public var rawValue: UInt64
  @inlinable public init(_ rawValue: UInt64) { self.rawValue = rawValue }

  /// What goes on the wire.
  @inlinable public var truncated: SequenceNumber { SequenceNumber(UInt16(truncatingIfNeeded: rawValue)) }
  /// How often the 16 bits have wrapped.
  @inlinable public var rollover: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

  @inlinable public static func < (left: ExtendedSequenceNumber, right: ExtendedSequenceNumber) -> Bool {
    left.rawValue < right.rawValue
  }
}

/// Extends truncated sequence numbers around the highest one seen.
public struct SequenceUnwrapper: Sendable, BitwiseCopyable {
  @usableFromInline var highest: UInt64?

  @inlinable public init() {}

  /// The extended number nearest to the highest seen so far. The first number starts at roll-over 1, so that packets
  /// older than the first one do not fall below zero.
  @inlinable public mutating func unwrap(_ number: SequenceNumber) -> ExtendedSequenceNumber {
    guard let highest else {
      let first = 1 << 16 | UInt64(number.rawValue)
      self.highest = first
      return ExtendedSequenceNumber(first)
    }
    let step = number.distance(from: SequenceNumber(UInt16(truncatingIfNeeded: highest)))
    let value = UInt64(max(0, Int64(highest) + Int64(step)))
    if value > highest { self.highest = value }
    return ExtendedSequenceNumber(value)
  }
}

/// A 32-bit RTP timestamp in units of the payload's clock rate.
public struct RTPTimestamp: Hashable, Sendable, BitwiseCopyable {
  public var rawValue: UInt32
  @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }

  @inlinable public static func + (timestamp: RTPTimestamp, ticks: Int) -> RTPTimestamp {
    RTPTimestamp(timestamp.rawValue &+ UInt32(truncatingIfNeeded: ticks))
  }
  /// Signed distance from `earlier` to `self` on the circle, in ticks.
  @inlinable public func distance(from earlier: RTPTimestamp) -> Int {
    Int(Int32(bitPattern: rawValue &- earlier.rawValue))
  }
}
