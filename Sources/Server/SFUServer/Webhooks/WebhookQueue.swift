import PalbeUnits

/// Events that wait for their receiver: in order for each room and URL, again after a failure, bounded.
///
/// A room and a URL make a lane. A lane has one event under way; the next one goes when that is delivered or
/// given up. After a failure the lane waits, twice as long each time.
struct WebhookQueue: Sendable {
  struct Lane: Hashable, Sendable {
    /// The URL's place in the configuration.
    var url: Int
    var room: String
  }

  /// An event on its way to one URL.
  struct Delivery: Sendable {
    var lane: Lane
    var event: String
    var body: [UInt8]
    /// How often it was sent without success.
    var failureCount = 0
  }

  enum Failure { case again, givenUp }

  static let longestWait = TimeDelta.seconds(30)
  /// Then an event is given up, about a minute after the first time.
  static let attemptLimit = 8

  private struct Line {
    var deliveries: [Delivery] = []
    var isUnderWay = false
    var notBefore = Instant.zero
  }

  private let capacity: Int
  private let firstWait: TimeDelta
  private(set) var count = 0
  private var lines: [Lane: Line] = [:]
  /// Lanes with something to send and nothing under way, in the order in which they came.
  private var idle: [Lane] = []

  /// - Parameters:
  ///   - capacity: deliveries that wait or are under way.
  ///   - firstWait: after a first failure, at most a minute.
  init(capacity: Int, firstWait: TimeDelta = .milliseconds(500)) {
    self.capacity = capacity
    self.firstWait = firstWait
  }

  /// False when there is no place.
  mutating func append(_ delivery: Delivery) -> Bool {
    guard count < capacity else { return false }
    count += 1
    if lines[delivery.lane] == nil { idle.append(delivery.lane) }
    lines[delivery.lane, default: Line()].deliveries.append(delivery)
    return true
  }

  /// What may be sent now; to be followed by `delivered` or `failed` for its lane.
  mutating func next(at now: Instant) -> Delivery? {
    guard let index = idle.firstIndex(where: { lines[$0].map { $0.notBefore <= now } ?? false }) else {
      return nil
    }
    let lane = idle.remove(at: index)
    lines[lane]?.isUnderWay = true
    return lines[lane]?.deliveries.first
  }

  /// When the next lane's wait is over; nil when none waits.
  var nextDeadline: Instant? { idle.compactMap { lines[$0]?.notBefore }.min() }

  mutating func delivered(_ lane: Lane) {
    guard var line = lines[lane], line.isUnderWay else { return }
    line.deliveries.removeFirst()
    line.isUnderWay = false
    line.notBefore = .zero
    count -= 1
    put(back: line, lane)
  }

  /// - Parameter isFinal: trying again makes no sense.
  mutating func failed(_ lane: Lane, isFinal: Bool, at now: Instant) -> Failure {
    guard var line = lines[lane], line.isUnderWay, !line.deliveries.isEmpty else { return .givenUp }
    line.deliveries[0].failureCount += 1
    let failureCount = line.deliveries[0].failureCount
    guard !isFinal, failureCount < Self.attemptLimit else {
      delivered(lane)
      return .givenUp
    }
    line.isUnderWay = false
    let wait = TimeDelta(nanoseconds: firstWait.nanoseconds << Int64(failureCount - 1))
    line.notBefore = now + min(wait, Self.longestWait)
    put(back: line, lane)
    return .again
  }

  private mutating func put(back line: Line, _ lane: Lane) {
    lines[lane] = line.deliveries.isEmpty ? nil : line
    if !line.deliveries.isEmpty { idle.append(lane) }
  }
}
