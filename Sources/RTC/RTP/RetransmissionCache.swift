import PalbeUnits
import PalbeWire

/// The packets stored last, by sequence number, to answer a NACK from.
///
/// The bytes lie one behind the other in a ring: storing copies them to its head, over the oldest ones. All memory is
/// reserved at the start, and touched only once it is used; a ring with a limit begins small instead and grows until
/// `capacity` packets fit, or to its limit, and from then on allocates nothing.
public struct RetransmissionCache: ~Copyable {
  /// Bytes of a packet at most.
  public static let packetByteLimit = 1_500

  @usableFromInline struct Slot: BitwiseCopyable {
    /// Zero where nothing is stored.
    @usableFromInline var byteCount: UInt16 = 0
    @usableFromInline var sequenceNumber: UInt16 = 0
    /// Where the packet lies.
    @usableFromInline var offset: UInt32 = 0
    /// Bytes stored before it, ever: what lies further back than the ring is long was overwritten.
    @usableFromInline var position: UInt64 = 0
    @usableFromInline var lastSent: Int64 = .min

    @inlinable init() {}
  }

  @usableFromInline var bytes: [UInt8]
  @usableFromInline var slots: [Slot]
  @usableFromInline let mask: Int
  private let byteLimit: Int
  /// Where the next packet goes.
  private var head = 0
  /// Bytes stored ever, those left free at the ring's end included.
  @usableFromInline var end: UInt64 = 0
  /// Nothing before this is there any more, however long the ring is.
  @usableFromInline var floor: UInt64 = 0
  /// Packets since the head was at the ring's beginning.
  private var lapCount = 0

  /// Room for the last `capacity` packets, rounded up to a power of two of at most 32,768.
  ///
  /// - Parameter byteLimit: bytes of the ring at most; fewer packets fit when they are too long for it.
  public init(capacity: Int, byteLimit: Int? = nil) {
    var size = 1
    while size < min(capacity, 32_768) { size *= 2 }
    mask = size - 1
    slots = [Slot](repeating: Slot(), count: size)
    let whole = size * Self.packetByteLimit
    self.byteLimit = max(Self.packetByteLimit, min(byteLimit ?? whole, whole))
    let start = byteLimit == nil ? whole : max(Self.packetByteLimit, 16 * size)
    bytes = unsafe Self.uninitialized(min(self.byteLimit, start))
  }

  /// Holds nothing, whatever is stored: the place of one that is not needed yet.
  public init() {
    mask = 0
    slots = [Slot()]
    byteLimit = 0
    bytes = []
  }

  /// Left uninitialised: bytes are plain values, and none is read before `store` wrote it.
  @unsafe private static func uninitialized(_ size: Int) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: size) { _, count in count = size }
  }

  /// How many packets fit.
  public var capacity: Int { mask + 1 }

  /// Keeps a copy of a packet. Returns false, and forgets what the slot held, when it is empty or too long.
  @discardableResult
  public mutating func store(_ sequenceNumber: SequenceNumber, _ packet: Span<UInt8>) -> Bool {
    let index = Int(sequenceNumber.rawValue) & mask
    guard packet.count > 0, packet.count <= min(Self.packetByteLimit, byteLimit) else {
      slots[index] = Slot()
      return false
    }
    if head + packet.count > bytes.count { wrap(for: packet.count) }
    let start = head
    var all = bytes.mutableSpan
    all.copyBytes(from: packet, at: start)
    slots[index].byteCount = UInt16(truncatingIfNeeded: packet.count)
    slots[index].sequenceNumber = sequenceNumber.rawValue
    slots[index].offset = UInt32(truncatingIfNeeded: start)
    slots[index].position = end
    slots[index].lastSent = .min
    head += packet.count
    end += UInt64(packet.count)
    lapCount += 1
    return true
  }

  /// The ring's end is reached: it grows, or the head goes back to its beginning.
  private mutating func wrap(for byteCount: Int) {
    let size = bytes.count
    if lapCount <= mask, size < byteLimit {
      // Whatever lies further back was overwritten, and must not come back with the longer ring.
      floor = max(floor, end > UInt64(size) ? end - UInt64(size) : 0)
      let used = head
      var longer = unsafe Self.uninitialized(min(byteLimit, max(2 * size, head + byteCount)))
      var target = longer.mutableSpan
      target.copyBytes(from: bytes.span.extracting(0..<used), at: 0)
      bytes = longer
      if head + byteCount <= bytes.count { return }
    }
    end += UInt64(bytes.count - head)
    head = 0
    lapCount = 0
  }

  @inlinable func holds(_ slot: Slot, _ sequenceNumber: SequenceNumber) -> Bool {
    slot.byteCount > 0 && slot.sequenceNumber == sequenceNumber.rawValue && slot.position >= floor
      && end - slot.position <= UInt64(bytes.count)
  }

  /// The packet stored under that number, nil when there is none any more.
  @inlinable @_lifetime(borrow self)
  public func lookup(_ sequenceNumber: SequenceNumber) -> Span<UInt8>? {
    let slot = slots[Int(sequenceNumber.rawValue) & mask]
    guard holds(slot, sequenceNumber) else { return nil }
    let start = Int(slot.offset)
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
    guard holds(slot, sequenceNumber) else { return false }
    guard now - Instant(nanoseconds: slot.lastSent) >= minimumInterval else { return false }
    slots[index].lastSent = now.nanoseconds
    return true
  }
}
