import PalbeUnits

/// Finds gaps in one source's sequence numbers and says when to ask for which packet (RFC 4585 §6.2.1).
///
/// ## Overview
///
///     received(n) ─► gap ─► missing, waits `reorderDelay` ─► asked ─► asked again every round trip ─► given up
///                                       ╰─ received ─► recovered
///
/// A packet is given up after `maximumTries` requests or `maximumAge`. At most `capacity` packets are missing at a
/// time: a larger gap is not worth repairs, all missing packets are given up, and only a key frame helps.
public struct NackTracker: Sendable {
  /// When to ask, and when to stop.
  public struct Configuration: Sendable {
    /// How long a gap may be mere reordering.
    public var reorderDelay = TimeDelta.milliseconds(5)
    /// The shortest time between two requests for the same packet, whatever the round trip.
    public var minimumInterval = TimeDelta.milliseconds(20)
    /// Requests for one packet.
    public var maximumTries = 10
    /// How long a packet is worth asking for.
    public var maximumAge = TimeDelta.seconds(1)
    /// Packets missing at the same time.
    public var capacity = 512

    /// The values above.
    public init() {}
  }

  /// What a packet was.
  public enum Arrival: Hashable, Sendable {
    /// Newer than all before.
    case new
    /// It was missing, and is not any more.
    case recovered
    /// It came before, or was given up.
    case duplicate
  }

  struct Missing: Sendable {
    var number: UInt64
    var since: Instant
    var askAt: Instant
    var tries: Int
  }

  let configuration: Configuration
  /// In ascending order.
  var missing: [Missing] = []
  var highest: UInt64?
  /// Packets that will not come any more, since the beginning.
  public private(set) var givenUpCount: UInt64 = 0
  /// Packets that came after they were asked for.
  public private(set) var recoveredCount: UInt64 = 0

  /// Nothing received yet.
  public init(configuration: Configuration = Configuration()) {
    self.configuration = configuration
    missing.reserveCapacity(configuration.capacity)
  }

  /// Takes note of a packet. No allocation.
  public mutating func received(_ sequence: ExtendedSequenceNumber, at now: Instant) -> Arrival {
    let number = sequence.rawValue
    guard let highest else {
      self.highest = number
      return .new
    }
    guard number > highest else {
      guard let index = position(of: number) else { return .duplicate }
      if missing[index].tries > 0 { recoveredCount += 1 }
      missing.remove(at: index)
      return .recovered
    }
    let gap = number - highest - 1
    self.highest = number
    guard gap <= UInt64(max(0, configuration.capacity)) else {
      giveUp(missing.count)
      givenUpCount += gap
      return .new
    }
    let excess = missing.count + Int(gap) - configuration.capacity
    if excess > 0 { giveUp(excess) }
    var lost = highest + 1
    while lost < number {
      missing.append(Missing(number: lost, since: now, askAt: now + configuration.reorderDelay, tries: 0))
      lost += 1
    }
    return .new
  }

  /// The packets to ask for now, in ascending order; they count as asked. Empty most of the time.
  ///
  /// - Parameter roundTrip: to the sender and back; a packet is not asked for again within that time.
  public mutating func poll(at now: Instant, roundTrip: TimeDelta) -> [SequenceNumber] {
    var numbers: [SequenceNumber] = []
    poll(at: now, roundTrip: roundTrip, into: &numbers)
    return numbers
  }

  /// The same, appended to `numbers`.
  public mutating func poll(at now: Instant, roundTrip: TimeDelta, into numbers: inout [SequenceNumber]) {
    guard !missing.isEmpty else { return }
    let before = missing.count
    missing.removeAll { entry in
      entry.tries >= configuration.maximumTries && entry.askAt <= now
        || now - entry.since >= configuration.maximumAge
    }
    givenUpCount += UInt64(before - missing.count)
    let interval = max(roundTrip, configuration.minimumInterval)
    for index in missing.indices where missing[index].askAt <= now {
      numbers.append(SequenceNumber(UInt16(truncatingIfNeeded: missing[index].number)))
      missing[index].tries += 1
      missing[index].askAt = now + interval
    }
  }

  /// When `poll` has something to do; nil while nothing is missing.
  public var nextDeadline: Instant? {
    var earliest: Instant?
    for entry in missing {
      let at = min(entry.askAt, entry.since + configuration.maximumAge)
      earliest = min(earliest ?? at, at)
    }
    return earliest
  }

  /// Packets missing now.
  public var missingCount: Int { missing.count }

  /// Forgets what is missing up to `sequence`: its frame is not wanted any more.
  public mutating func forget(through sequence: ExtendedSequenceNumber) {
    var count = 0
    while count < missing.count, missing[count].number <= sequence.rawValue { count += 1 }
    giveUp(count)
  }

  private mutating func giveUp(_ count: Int) {
    let count = min(count, missing.count)
    missing.removeFirst(count)
    givenUpCount += UInt64(count)
  }

  /// Binary search.
  private func position(of number: UInt64) -> Int? {
    var low = 0
    var high = missing.count
    while low < high {
      let middle = (low + high) / 2
      if missing[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < missing.count && missing[low].number == number ? low : nil
  }
}
