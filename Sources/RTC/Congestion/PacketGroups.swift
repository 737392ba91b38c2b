import PalbeUnits

/// Joins packets that left in one burst, and measures how the distance of two bursts changed on the way
/// (draft-ietf-rmcat-gcc-02 §5.2 and §5.3).
struct PacketGroups: Sendable {
  /// The distance of two groups.
  struct Step {
    /// When the later group's last packet left.
    var sent: TimeDelta
    /// How much later than the earlier group it arrived.
    var arrived: TimeDelta
    /// When it arrived.
    var arrival: Instant
  }

  private struct Group: BitwiseCopyable {
    var firstSent: Instant
    var lastSent: Instant
    var firstArrival: Instant
    var lastArrival: Instant
  }

  /// Packets sent this close to a group's first one belong to it.
  private static let burst = TimeDelta.milliseconds(5)
  /// A group whose packets were held up together and then let go at once ends here.
  private static let longestBurst = TimeDelta.milliseconds(100)
  /// Groups that arrived before the one sent earlier, in a row, until the clock counts as reset.
  private static let reorderLimit = 3

  private var current: Group?
  private var previous: Group?
  private var reordered = 0

  /// Takes the next packet in the order of sending. Returns a distance when it is the first of a new group.
  mutating func add(sent: Instant, arrival: Instant) -> Step? {
    guard var group = current else {
      current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival)
      return nil
    }
    guard sent >= group.firstSent else { return nil }
    if belongs(sent: sent, arrival: arrival, to: group) {
      group.lastSent = max(group.lastSent, sent)
      group.lastArrival = max(group.lastArrival, arrival)
      current = group
      return nil
    }
    var step: Step?
    if let previous {
      let arrived = group.lastArrival - previous.lastArrival
      if arrived < .zero {
        reordered += 1
        if reordered >= Self.reorderLimit { self = PacketGroups() }
      } else {
        reordered = 0
        step = Step(sent: group.lastSent - previous.lastSent, arrived: arrived, arrival: group.lastArrival)
      }
    }
    if current != nil { previous = group }
    current = Group(firstSent: sent, lastSent: sent, firstArrival: arrival, lastArrival: arrival)
    return step
  }

  private func belongs(sent: Instant, arrival: Instant, to group: Group) -> Bool {
    if sent - group.firstSent <= Self.burst { return true }
    // Packets that a link held up and let go at once say nothing of its queue, except that it is not growing.
    let arrived = arrival - group.lastArrival
    return arrived - (sent - group.lastSent) < .zero && arrived <= Self.burst
      && arrival - group.firstArrival < Self.longestBurst
  }
}
