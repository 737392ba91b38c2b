import PalbeRTP
import PalbeUnits

/// The packets of a track as they left, protected: what is sent first, and what is sent again, are the same
/// bytes.
struct SentPackets: ~Copyable {
  private var cache: RetransmissionCache

  /// Room for the last `capacity` packets.
  init(capacity: Int) { cache = RetransmissionCache(capacity: capacity) }

  mutating func store(_ number: SequenceNumber, _ packet: Span<UInt8>) { cache.store(number, packet) }

  /// True when the packet is here and was not repaired within `minimumInterval`; it then counts as repaired.
  mutating func claimRepair(_ number: SequenceNumber, at now: Instant, minimumInterval: TimeDelta) -> Bool {
    cache.claimRepair(number, at: now, minimumInterval: minimumInterval)
  }

  /// Copies the packet to the start of `buffer`; nil when it is gone or does not fit.
  @_lifetime(buffer: copy buffer)
  func copy(_ number: SequenceNumber, to buffer: inout MutableSpan<UInt8>) -> Int? {
    guard let packet = cache.lookup(number), packet.count <= buffer.count else { return nil }
    buffer.copyBytes(from: packet, at: 0)
    return packet.count
  }
}
