import PalbeUnits
import PalbeWire

/// Fields of an RTP packet changed where they lie. Each needs a span of at least twelve bytes, that is a packet
/// which `RTPHeader.parse` accepted, and traps on a shorter one.
extension MutableSpan where Element == UInt8 {
  /// Sets the marker bit.
  @inlinable @_lifetime(self: copy self)
  public mutating func setRTP(marker: Bool) { self[1] = self[1] & 0x7f | (marker ? 0x80 : 0) }

  /// Sets the payload type.
  @inlinable @_lifetime(self: copy self)
  public mutating func setRTP(payloadType: PayloadType) { self[1] = self[1] & 0x80 | payloadType.rawValue }

  /// Sets the sequence number.
  @inlinable @_lifetime(self: copy self)
  public mutating func setRTP(sequenceNumber: SequenceNumber) {
    store(uint16: sequenceNumber.rawValue, at: 2)
  }

  /// Sets the timestamp.
  @inlinable @_lifetime(self: copy self)
  public mutating func setRTP(timestamp: RTPTimestamp) { store(uint32: timestamp.rawValue, at: 4) }

  /// Sets the synchronization source.
  @inlinable @_lifetime(self: copy self)
  public mutating func setRTP(ssrc: SSRC) { store(uint32: ssrc.rawValue, at: 8) }

  /// Pads the packet in the clear that takes the first `byteCount` bytes (RFC 3550 §5.1): it must have none yet.
  ///
  /// - Parameter padding: bytes, 1 to 255.
  /// - Returns: the new length.
  /// - Throws: `truncated` when there is no room.
  @inlinable @_lifetime(self: copy self)
  public mutating func padRTP(_ byteCount: Int, by padding: Int) throws(WireError) -> Int {
    let total = byteCount + padding
    guard total <= count else { throw .truncated(needed: total, have: count) }
    guard (1...255).contains(padding) else { throw .invalid(field: "padding", value: UInt64(padding)) }
    for index in byteCount..<total - 1 { self[index] = 0 }
    self[total - 1] = UInt8(truncatingIfNeeded: padding)
    self[0] |= 0x20
    return total
  }

  /// Copies `source` to `offset` in one move; traps when it does not fit.
  @inlinable @_lifetime(self: copy self)
  public mutating func copyBytes(from source: Span<UInt8>, at offset: Int) {
    let size = source.count
    precondition(offset >= 0 && size <= count && offset <= count - size)
    guard size > 0 else { return }
    // The bounds were checked above; both pointers live only inside the closures.
    unsafe withUnsafeMutableBytes { target in
      unsafe source.withUnsafeBytes { bytes in
        if let to = target.baseAddress, let from = bytes.baseAddress {
          unsafe (to + offset).copyMemory(from: from, byteCount: size)
        }
      }
    }
  }

  /// Moves the bytes of `range` to `offset`; the two may overlap. Traps when either lies outside.
  @inlinable @_lifetime(self: copy self)
  public mutating func moveBytes(_ range: Range<Int>, to offset: Int) {
    let size = range.count
    precondition(range.lowerBound >= 0 && range.upperBound <= count && offset >= 0 && offset <= count - size)
    guard size > 0 else { return }
    // The bounds were checked above; `copyMemory` allows overlap.
    unsafe withUnsafeMutableBytes { target in
      if let base = target.baseAddress {
        unsafe (base + offset).copyMemory(from: base + range.lowerBound, byteCount: size)
      }
    }
  }
}
