import PalbeUnits
import PalbeWire

/// Which packets of a transport arrived, and when (draft-holmer-rmcat-transport-wide-cc-extensions-01 §3.1).
///
///     sender SSRC | media SSRC | base sequence, status count | reference time (24), feedback count (8)
///     packet chunks (runs and bit vectors of 2 B) | receive deltas (1 or 2 B each)
///
/// Packets that did not arrive are not listed: a claim of 65,535 lost ones costs no memory.
public struct TransportFeedback: Hashable, Sendable {
  /// A packet that arrived.
  public struct Arrival: Hashable, Sendable, BitwiseCopyable {
    /// Its transport-wide number.
    public var sequence: UInt16
    /// Quarter milliseconds after the reference time.
    public var ticks: Int32

    /// From its fields.
    public init(sequence: UInt16, ticks: Int32) {
      self.sequence = sequence
      self.ticks = ticks
    }
  }

  /// Who received.
  public var sender: SSRC
  /// Whose packets.
  public var media: SSRC
  /// The first number reported on.
  public var baseSequence: UInt16
  /// How many numbers are reported on, lost ones included.
  public var statusCount: UInt16
  /// The receiver's clock in units of 64 ms, a signed 24-bit number.
  public var referenceTime: Int32
  /// Counts feedback packets.
  public var feedbackCount: UInt8
  /// Packets that arrived, in order of their numbers.
  public var arrivals: [Arrival]

  /// One unit of `Arrival.ticks`.
  public static let tick = TimeDelta.microseconds(250)
  /// One unit of `referenceTime`.
  public static let referenceUnit = TimeDelta.milliseconds(64)

  /// From its fields.
  public init(
    sender: SSRC, media: SSRC, baseSequence: UInt16, statusCount: UInt16 = 0, referenceTime: Int32,
    feedbackCount: UInt8, arrivals: [Arrival] = []
  ) {
    self.sender = sender
    self.media = media
    self.baseSequence = baseSequence
    self.statusCount = statusCount
    self.referenceTime = referenceTime
    self.feedbackCount = feedbackCount
    self.arrivals = arrivals
  }

  /// When a packet arrived, on the receiver's clock as the wire carries it (it wraps every 12.4 days).
  public func arrivalTime(of arrival: Arrival) -> Instant {
    Instant.zero + Self.referenceUnit * Int(referenceTime) + Self.tick * Int(arrival.ticks)
  }

  /// Adds the next packet that arrived. Returns false, and changes nothing, when it does not fit: its delta is
  /// beyond 16 bits, or its number lies before the last one or 32,768 or more behind the base.
  public mutating func append(_ sequence: UInt16, ticks: Int32) -> Bool {
    let position = Int(sequence &- baseSequence)
    let delta = ticks.subtractingReportingOverflow(arrivals.last?.ticks ?? 0)
    guard position < 0x8000, position >= Int(statusCount), !delta.overflow,
      Int16(exactly: delta.partialValue) != nil
    else { return false }
    arrivals.append(Arrival(sequence: sequence, ticks: ticks))
    statusCount = UInt16(position + 1)
    return true
  }

  /// What a status symbol says.
  enum Status: UInt8 {
    case lost = 0
    case smallDelta = 1
    case largeDelta = 2
    case reserved = 3
  }

  static func parse(_ body: inout ByteReader) throws(WireError) -> TransportFeedback {
    let sender = SSRC(try body.uint32())
    let media = SSRC(try body.uint32())
    let base = try body.uint16()
    let count = try body.uint16()
    let time = try body.uint24()
    var feedback = TransportFeedback(
      sender: sender, media: media, baseSequence: base, statusCount: count,
      referenceTime: Int32(bitPattern: time << 8) >> 8, feedbackCount: try body.uint8())
    // Each arrival needs a delta byte, so this list is no longer than the packet.
    var pending = [(sequence: UInt16, isLarge: Bool)]()
    let limit = body.remaining
    var position = 0
    func note(_ symbol: UInt8) throws(WireError) {
      switch Status(rawValue: symbol) {
      case .lost: break
      case .smallDelta, .largeDelta:
        guard pending.count < limit else { throw .truncated(needed: pending.count + 1, have: limit) }
        pending.append((base &+ UInt16(truncatingIfNeeded: position), symbol == Status.largeDelta.rawValue))
      default: throw .invalid(field: "TWCC packet status", value: UInt64(symbol))
      }
      position += 1
    }
    while position < Int(count) {
      let chunk = try body.uint16()
      let left = Int(count) - position
      if chunk & 0x8000 == 0 {
        let symbol = UInt8(chunk >> 13 & 3)
        let run = min(Int(chunk & 0x1fff), left)
        guard run > 0 else { throw .invalid(field: "TWCC run length", value: 0) }
        if symbol == Status.lost.rawValue {
          position += run
        } else {
          for _ in 0..<run { try note(symbol) }
        }
      } else if chunk & 0x4000 == 0 {
        for index in 0..<min(14, left) { try note(UInt8(chunk >> UInt16(13 - index) & 1)) }
      } else {
        for index in 0..<min(7, left) { try note(UInt8(chunk >> UInt16(12 - 2 * index) & 3)) }
      }
    }
    var ticks: Int32 = 0
    feedback.arrivals.reserveCapacity(pending.count)
    for (sequence, isLarge) in pending {
      ticks &+= isLarge ? Int32(Int16(bitPattern: try body.uint16())) : Int32(try body.uint8())
      feedback.arrivals.append(Arrival(sequence: sequence, ticks: ticks))
    }
    return feedback  // what follows are zeros up to the word
  }

  func write(into writer: inout ByteWriter, using symbols: inout [UInt8]) {
    writer.uint32(sender.rawValue)
    writer.uint32(media.rawValue)
    writer.uint16(baseSequence)
    writer.uint16(statusCount)
    writer.uint24(UInt32(bitPattern: referenceTime) & 0xff_ffff)
    writer.uint8(feedbackCount)
    fill(&symbols)
    var index = 0
    while index < symbols.count { index += Self.writeChunk(symbols, from: index, into: &writer) }
    var last: Int32 = 0
    for arrival in arrivals {
      let delta = arrival.ticks &- last
      if (0...255).contains(delta) {
        writer.uint8(UInt8(delta))
      } else {
        writer.uint16(UInt16(bitPattern: Int16(truncatingIfNeeded: delta)))
      }
      last = arrival.ticks
    }
  }

  /// One symbol for each number reported on.
  private func fill(_ symbols: inout [UInt8]) {
    symbols.removeAll(keepingCapacity: true)
    symbols.append(contentsOf: repeatElement(Status.lost.rawValue, count: Int(statusCount)))
    var last: Int32 = 0
    for arrival in arrivals {
      let position = Int(arrival.sequence &- baseSequence)
      let isSmall = (0...255).contains(arrival.ticks &- last)
      if position < symbols.count { symbols[position] = (isSmall ? Status.smallDelta : .largeDelta).rawValue }
      last = arrival.ticks
    }
  }

  /// Writes the chunk that covers most symbols from `index` on, and returns how many.
  private static func writeChunk(_ symbols: [UInt8], from index: Int, into writer: inout ByteWriter) -> Int {
    let rest = symbols[index...]
    let first = symbols[index]
    let run = min(rest.prefix { $0 == first }.count, 0x1fff)
    let vector = rest.prefix(14)
    let fitsOneBit = !vector.contains(Status.largeDelta.rawValue)
    if run >= (fitsOneBit ? min(14, rest.count) : 7) || run == rest.count {
      writer.uint16(UInt16(first) << 13 | UInt16(run))
      return run
    }
    if fitsOneBit {
      var chunk: UInt16 = 0x8000
      for (offset, symbol) in vector.enumerated() { chunk |= UInt16(symbol) << UInt16(13 - offset) }
      writer.uint16(chunk)
      return vector.count
    }
    var chunk: UInt16 = 0xc000
    for (offset, symbol) in rest.prefix(7).enumerated() { chunk |= UInt16(symbol) << UInt16(12 - 2 * offset) }
    writer.uint16(chunk)
    return min(7, rest.count)
  }
}
