import PalbeUnits
import PalbeWire

/// The packets sent last, by sequence number, to answer a NACK with the same bytes again.
///
/// A ring of fixed slots: all memory is reserved at the start, storing copies into it, and a slot is overwritten by
/// the packet that comes one capacity later. Pages are touched only once they are used.
public struct RetransmissionCache: ~Copyable {
  /// Bytes a slot holds.
  public static let slotByteCount = 1_500

  @usableFromInline struct Slot: BitwiseCopyable {
    /// Zero where nothing is stored.
    @usableFromInline var byteCount: UInt16 = 0
    @usableFromInline var sequenceNumber: UInt16 = 0
    @usableFromInline var lastSent: Int64 = .min

    @inlinable init() {}
  }

  @usableFromInline var bytes: [UInt8]
  @usableFromInline var slots: [Slot]
  @usableFromInline let mask: Int

  /// Room for the last `capacity` packets, rounded up to a power of two of at most 32,768.
  public init(capacity: Int) {
    var size = 1
    while size < min(capacity, 32_768) { size *= 2 }
    mask = size - 1
    slots = [Slot](repeating: Slot(), count: size)
    // Left uninitialised: bytes are plain values, and none is read before `store` wrote it.
    unsafe bytes = [UInt8](unsafeUninitializedCapacity: size * Self.slotByteCount) { _, count in
      count = size * Self.slotByteCount
    }
  }

  /// How many packets fit.
  public var capacity: Int { mask + 1 }

  /// Keeps a copy of a packet. Returns false, and forgets what the slot held, when it is empty or too long.
  @inlinable @discardableResult
  public mutating func store(_ sequenceNumber: SequenceNumber, _ packet: Span<UInt8>) -> Bool {
    let index = Int(sequenceNumber.rawValue) & mask
    guard packet.count > 0, packet.count <= Self.slotByteCount else {
      slots[index] = Slot()
      return false
    }
    var all = bytes.mutableSpan
    all.copyBytes(from: packet, at: index * Self.slotByteCount)
    slots[index].byteCount = UInt16(truncatingIfNeeded: packet.count)
    slots[index].sequenceNumber = sequenceNumber.rawValue
    slots[index].lastSent = .min
    return true
  }

  /// The packet stored under that number, nil when there is none any more.
  @inlinable @_lifetime(borrow self)
  public func lookup(_ sequenceNumber: SequenceNumber) -> Span<UInt8>? {
    let index = Int(sequenceNumber.rawValue) & mask
    let slot = slots[index]
    guard slot.byteCount > 0, slot.sequenceNumber == sequenceNumber.rawValue else { return nil }
    let start = index * Self.slotByteCount
    return bytes.span.extracting(start..<start + Int(slot.byteCount))
  }

  /// Copies the packet to the start of `buffer` and returns its length; nil when it is gone or does not fit.
  @inlinable @_lifetime(buffer: copy buffer)
  public func copy(_ sequenceNumber: SequenceNumber, into buffer: inout MutableSpan<UInt8>) -> Int? {
    guard let packet = lookup(sequenceNumber), packet.count <= buffer.count else { return nil }
    buffer.copyBytes(from: packet, at: 0)
    return packet.count
  }

  /// True when the packet is there and was not repaired within `minimumInterval`; notes that it is repaired now.
  ///
  /// A receiver that asks again before a repair can have arrived must not make the sender amplify.
  @inlinable public mutating func claimRepair(
    _ sequenceNumber: SequenceNumber, at now: Instant, minimumInterval: TimeDelta
  ) -> Bool {
    let index = Int(sequenceNumber.rawValue) & mask
    let slot = slots[index]
    guard slot.byteCount > 0, slot.sequenceNumber == sequenceNumber.rawValue else { return false }
    guard now - Instant(nanoseconds: slot.lastSent) >= minimumInterval else { return false }
    slots[index].lastSent = now.nanoseconds
    return true
  }
}
