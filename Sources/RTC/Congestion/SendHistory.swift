import PalbeUnits

/// What a sender remembers of its packets until the receiver has reported on them.
///
/// A ring of eight bytes a packet, indexed by the transport-wide number. A number that was overwritten, and one that
/// was never sent, are unknown: a report on them changes nothing. The ring begins small and doubles, up to its capacity,
/// while it holds less than `reach` of packets to a receiver that reports.
struct SendHistory: Sendable {
  /// What the receiver said of a packet.
  enum Fate: UInt8 {
    case unknown = 0
    case lost = 1
    case received = 2
  }

  /// One packet.
  struct Packet: BitwiseCopyable {
    /// Microseconds, truncated; `SendHistory.sendTime(of:)` completes them.
    var sentAt: UInt32
    var byteCount: UInt16
    /// The probe cluster it belongs to; zero: none.
    var cluster: UInt8
    var fate: UInt8
  }

  /// A pause after which nothing sent before can be told apart by truncated times.
  private static let forgetAfter = TimeDelta.seconds(60)

  /// Reports on packets sent longer ago are not waited for.
  private static let reach = TimeDelta.seconds(2)
  /// Two seconds of a video of 1 Mbit/s.
  private static let startingCapacity = 256

  private var packets: [Packet]
  private var mask: UInt64
  private let capacity: Int
  /// The lowest number that is still known.
  private var floor: UInt64 = 0
  /// The number of the next packet; its lower 16 bits go on the wire.
  private(set) var next: UInt64 = 0
  private(set) var lastSentAt = Instant.zero

  /// - Parameter capacity: rounded up to a power of two, 64 to 32,768.
  init(capacity: Int) {
    var size = 64
    while size < min(capacity, 32_768) { size *= 2 }
    self.capacity = size
    let start = min(size, Self.startingCapacity)
    packets = Self.empty(start)
    mask = UInt64(start - 1)
  }

  private static func empty(_ count: Int) -> [Packet] {
    [Packet](repeating: Packet(sentAt: 0, byteCount: 0, cluster: 0, fate: 0), count: count)
  }

  /// Numbers a packet.
  ///
  /// - Parameter isReported: the receiver reports on packets.
  mutating func append(byteCount: Int, cluster: UInt8, isReported: Bool, at now: Instant) -> UInt16 {
    if next > 0, now - lastSentAt > Self.forgetAfter { floor = next }
    lastSentAt = now
    let number = next
    if isReported, number - floor > mask, packets.count < capacity,
      now - sendTime(of: self[number]) < Self.reach
    {
      grow()
    }
    packets[Int(number & mask)] = Packet(
      sentAt: Self.truncated(now), byteCount: UInt16(clamping: byteCount), cluster: cluster,
      fate: Fate.unknown.rawValue)
    next += 1
    if next - floor > UInt64(packets.count) { floor = next - UInt64(packets.count) }
    return UInt16(truncatingIfNeeded: number)
  }

  private mutating func grow() {
    var larger = Self.empty(2 * packets.count)
    var number = floor
    while number < next {
      larger[Int(number) & (larger.count - 1)] = self[number]
      number += 1
    }
    packets = larger
    mask = UInt64(larger.count - 1)
  }

  /// The numbers from `base` on, `count` of them, as far as they are known.
  func known(from base: UInt16, count: Int) -> Range<UInt64> {
    guard next > floor, count > 0 else { return 0..<0 }
    // The newest number with these 16 bits, or one that is still to come.
    let ahead = Int(Int16(bitPattern: base &- UInt16(truncatingIfNeeded: next)))
    let first = Int(clamping: next) + ahead
    let low = max(first, Int(clamping: floor))
    let high = min(first + count, Int(clamping: next))
    return low < high ? UInt64(low)..<UInt64(high) : 0..<0
  }

  subscript(number: UInt64) -> Packet {
    get { packets[Int(number & mask)] }
    set { packets[Int(number & mask)] = newValue }
  }

  /// When a known packet was sent.
  func sendTime(of packet: Packet) -> Instant {
    lastSentAt - .microseconds(Int(Self.truncated(lastSentAt) &- packet.sentAt))
  }

  private static func truncated(_ instant: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: instant.nanoseconds / 1_000)
  }
}
