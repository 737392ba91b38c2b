import PalbeUnits

/// Measures at what rate a cluster of packets left and arrived.
struct ProbeMeter: Sendable {
  /// What a cluster showed.
  struct Result {
    /// Bits per second that the link carried.
    var rate: Double
    /// True when the link, not the sender, set that rate.
    var isSaturated: Bool
  }

  /// Arriving at less than this part of the sent rate means that the link was full.
  private static let saturation = 0.9
  /// What is used of a full link.
  static let utilization = 0.95
  /// Fewer packets measure nothing.
  private static let packetCount = 3

  let cluster: ProbeCluster
  private(set) var sentPackets = 0
  private(set) var sentBytes = 0
  private(set) var firstSent = Instant.zero
  private var lastSent = Instant.zero
  private var lastSentBytes = 0
  private var reportedPackets = 0
  private var receivedPackets = 0
  private var receivedBytes = 0
  private var firstArrival = Instant.zero
  private var firstArrivalBytes = 0
  private var lastArrival = Instant.zero

  init(_ cluster: ProbeCluster) { self.cluster = cluster }

  mutating func sent(byteCount: Int, at now: Instant) {
    if sentPackets == 0 { firstSent = now }
    lastSent = now
    lastSentBytes = byteCount
    sentPackets += 1
    sentBytes += byteCount
  }

  mutating func lost() { reportedPackets += 1 }

  mutating func received(byteCount: Int, arrival: Instant, isLate: Bool) {
    if !isLate { reportedPackets += 1 }
    if receivedPackets == 0 || arrival < firstArrival {
      firstArrival = arrival
      firstArrivalBytes = byteCount
    }
    lastArrival = receivedPackets == 0 ? arrival : max(lastArrival, arrival)
    receivedPackets += 1
    receivedBytes += byteCount
  }

  /// Every packet was reported on.
  var isComplete: Bool { reportedPackets >= sentPackets }

  /// - Parameter loss: what the link loses by itself, 0 to 1.
  func result(loss: Double) -> Result? {
    guard receivedPackets >= Self.packetCount, 2 * receivedPackets >= sentPackets else { return nil }
    let sendTime = (lastSent - firstSent).inSeconds
    let arrivalTime = (lastArrival - firstArrival).inSeconds
    guard sendTime > 0 else { return nil }
    let sent = Double(sentBytes - lastSentBytes) * 8 / sendTime
    // Arriving all at once is not a rate: something held them up on the way.
    guard arrivalTime > sendTime / 8 else { return nil }
    let proven = Double(receivedBytes - firstArrivalBytes) * 8 / arrivalTime
    let arrived = proven / max(1 - loss, 0.5)
    // Of so few packets now and then hardly one is lost. What is only reckoned to have arrived proves no more than was asked.
    let believed = max(proven, min(arrived, Double(cluster.rate.bitsPerSecond)))
    guard arrived < Self.saturation * sent else {
      return Result(rate: min(sent, believed), isSaturated: false)
    }
    return Result(rate: Self.utilization * believed, isSaturated: true)
  }
}
