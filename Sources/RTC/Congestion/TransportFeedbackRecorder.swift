import PalbeRTP
import PalbeUnits
import PalbeWire

/// Notes when the packets of one transport arrive, and reports it to their sender ten times a second
/// (draft-holmer-rmcat-transport-wide-cc-extensions-01).
///
/// ## Overview
///
///     record(number, at) ─► ring of arrival times ─► poll: one RTPFB packet, format 15
///
/// A packet that comes after its number was reported as lost is reported again: the next feedback starts with it.
/// The ring holds the last 2,048 numbers; one further ahead pushes the oldest out unreported. Recording allocates
/// nothing.
public struct TransportFeedbackRecorder: Sendable {
  /// Numbers the ring holds.
  static let capacity: UInt64 = 2_048
  /// Numbers one feedback packet reports on at most: at worst two bits and two bytes each, below 1,200 bytes.
  static let statusLimit = 500

  /// Time between two reports.
  public let interval: TimeDelta
  var unwrapper = SequenceUnwrapper()
  /// When a number arrived; `.min` where it did not. Valid for numbers of `floor` up to `highest`. Empty until the first
  /// one: who only listens needs none.
  var arrivals: [Int64] = []
  /// The lowest number the ring still knows.
  var floor: UInt64 = 0
  var highest: UInt64?
  /// The first number the next feedback reports on.
  var next: UInt64 = 0
  var feedbackCount: UInt8 = 0
  var deadline: Instant?

  /// - Parameter interval: time between two reports.
  public init(interval: TimeDelta = .milliseconds(100)) {
    self.interval = interval
  }

  /// Takes note of a packet. Of a duplicate the first arrival counts.
  public mutating func record(transportSequence: UInt16, at now: Instant) {
    let number = unwrapper.unwrap(SequenceNumber(transportSequence)).rawValue
    guard let highest else {
      floor = number
      next = number
      self.highest = number
      arrivals = [Int64](repeating: .min, count: Int(Self.capacity))
      arrivals[slot(number)] = now.nanoseconds
      deadline = now + interval
      return
    }
    if number > highest {
      clear(from: highest + 1, before: number + 1)
      self.highest = number
      if number - floor >= Self.capacity { floor = number - Self.capacity + 1 }
      next = max(next, floor)
    } else if number < floor {
      // Before the first one of all: the ring has room for it when it is not full.
      guard highest - number < Self.capacity else { return }
      clear(from: number + 1, before: floor)
      floor = number
      arrivals[slot(number)] = .min
    }
    guard arrivals[slot(number)] == .min else { return }
    arrivals[slot(number)] = now.nanoseconds
    next = min(next, number)
    deadline = deadline ?? now + interval
  }

  /// When `poll` has a report; nil when nothing arrived since the last one.
  public var nextDeadline: Instant? { deadline }

  /// The next feedback packet, nil when none is due. Call until nil: a long list goes in several packets.
  ///
  /// - Parameters:
  ///   - sender: who reports.
  ///   - media: a source of the peer's; the report is on its whole transport.
  public mutating func poll(at now: Instant, sender: SSRC, media: SSRC) -> [UInt8]? {
    var scratch = Scratch()
    var writer = ByteWriter(capacity: 128)
    return poll(at: now, sender: sender, media: media, using: &scratch, into: &writer) ? writer.bytes : nil
  }

  /// Memory that many recorders use one after the other, so that a report costs no allocation.
  public struct Scratch: Sendable {
    fileprivate var feedback = TransportFeedback(
      sender: SSRC(0), media: SSRC(0), baseSequence: 0, referenceTime: 0, feedbackCount: 0)
    fileprivate var symbols: [UInt8] = []

    /// Reserves nothing yet.
    public init() {}
  }

  /// The same, appended to `writer`; false when none is due.
  public mutating func poll(
    at now: Instant, sender: SSRC, media: SSRC, using scratch: inout Scratch, into writer: inout ByteWriter
  ) -> Bool {
    guard let deadline, now >= deadline else { return false }
    guard pollFeedback(sender: sender, media: media, &scratch.feedback) else {
      self.deadline = nil
      return false
    }
    RTCPPacket.write(scratch.feedback, using: &scratch.symbols, into: &writer)
    return true
  }

  private mutating func pollFeedback(
    sender: SSRC, media: SSRC, _ feedback: inout TransportFeedback
  ) -> Bool {
    guard let highest else { return false }
    var first = next
    while first <= highest, arrivals[slot(first)] == .min { first += 1 }
    guard first <= highest else { return false }
    // Lost packets before the first arrival are reported too, as far as they fit into one packet.
    let base = first - next < UInt64(Self.statusLimit) / 2 ? next : first
    let start = arrivals[slot(first)]
    let reference = floorDivide(start, TransportFeedback.referenceUnit.nanoseconds)
    let origin = reference * TransportFeedback.referenceUnit.nanoseconds
    // 24 bits of the reference time are sent; the sender unwraps them.
    feedback.sender = sender
    feedback.media = media
    feedback.baseSequence = UInt16(truncatingIfNeeded: base)
    feedback.statusCount = 0
    feedback.referenceTime = Int32(truncatingIfNeeded: (reference << 40) >> 40)
    feedback.feedbackCount = feedbackCount
    feedback.arrivals.removeAll(keepingCapacity: true)
    var number = first
    while number <= highest, number - base < UInt64(Self.statusLimit) {
      let arrival = arrivals[slot(number)]
      if arrival != .min {
        let ticks = floorDivide(arrival &- origin, TransportFeedback.tick.nanoseconds)
        guard let ticks = Int32(exactly: ticks),
          feedback.append(UInt16(truncatingIfNeeded: number), ticks: ticks)
        else { break }
      }
      number += 1
    }
    next = base + UInt64(feedback.statusCount)
    feedbackCount &+= 1
    return true
  }

  private func slot(_ number: UInt64) -> Int { Int(number % Self.capacity) }

  private mutating func clear(from first: UInt64, before end: UInt64) {
    guard first < end else { return }
    // Not a `for`: without optimisation a range of UInt64 allocates.
    var number = end - first > Self.capacity ? end - Self.capacity : first
    while number < end {
      arrivals[slot(number)] = .min
      number += 1
    }
  }

  private func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    let quotient = value / divisor
    return value % divisor < 0 ? quotient - 1 : quotient
  }
}
