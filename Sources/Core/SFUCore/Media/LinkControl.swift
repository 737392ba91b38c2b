import PalbeCongestion
import PalbeRTP
import PalbeUnits
import PalbeWire

/// What a subscriber's link carries, and when its packets leave.
///
/// ## Overview
///
///     feedback, REMB ─▶ estimator ─▶ estimate ─▶ allocator: which layers        (`Participant.allocate`)
///                           │            └─────▶ pacer: when video leaves
///                           └─ probe ─▶ repeated packets, or padding
///
/// While the pacer allows, which is nearly always, a packet goes straight through: it is numbered and counted, and
/// nothing else. One that has to wait lies in its source's history, and those behind it wait too. Sound never waits.
///
/// A link that nobody reports on within `patience` is taken for one without limits: it is a client that negotiated
/// feedback and sends none.
final class LinkControl {
  private static let patience = TimeDelta.seconds(3)
  /// While padding is wanted and there is none to send.
  private static let retry = TimeDelta.milliseconds(50)

  unowned let participant: Participant
  private(set) var estimator = BandwidthEstimator()
  private var pacer = Pacer(target: BandwidthEstimator.Limits().start)
  var allocator = LayerAllocator()
  private var queue = PacedQueue()
  /// Since when feedback is expected; nil where none was negotiated.
  private var expectedSince: Instant?
  /// Something was reported.
  private(set) var isReported = false
  private var isProbing = false
  /// Bytes of repairs that may leave, as of an instant.
  private var repairRoom = 0.0
  private var repairsAt = Instant.zero
  private var isClosed = false
  /// When `poll` has something.
  private(set) var nextSendAt = Instant.distantFuture
  /// Its context asks it for packets.
  var isListed = false
  var nextAllocationAt = Instant.zero

  init(participant: Participant) { self.participant = participant }

  /// Packets carry what the client reports on, from now on.
  func expectFeedback(at now: Instant) {
    guard participant.context.configuration.controlsCongestion else { return }
    expectedSince = expectedSince ?? now
  }

  /// The sum that may be sent; nil where nobody says.
  func budget(at now: Instant) -> DataRate? {
    guard let expectedSince, isReported || now - expectedSince < Self.patience else { return nil }
    return estimator.estimate
  }

  // MARK: Sending

  /// The transport-wide number of the next packet.
  @inline(__always) var nextNumber: UInt16 { estimator.nextNumber }

  /// A packet left.
  @inline(__always)
  func sent(_ kind: Pacer.Kind, byteCount: Int, at now: Instant) {
    guard expectedSince != nil else { return }
    _ = estimator.packetSent(byteCount: byteCount, at: now)
    pacer.sent(kind, byteCount: byteCount, at: now)
    if isProbing, estimator.probe == nil { endProbe(at: now) }
  }

  private func endProbe(at now: Instant) {
    isProbing = false
    pacer.setProbe(nil, at: now)
  }

  /// True when a packet must not leave yet.
  @inline(__always)
  func mustWait(byteCount: Int, at now: Instant) -> Bool {
    guard isReported else { return false }
    guard queue.isEmpty else { return true }
    let decision = pacer.decide(
      .video, byteCount: byteCount, since: now, queued: DataSize(bytes: Int64(byteCount)), at: now)
    return decision != .now
  }

  /// Keeps a packet for later. Where too many wait, all of its track are given up for a new key frame.
  func hold(_ packet: PacedPacket, at now: Instant) {
    guard !isClosed else { return }
    guard !queue.isFull else { return packet.track.interrupt(at: now) }
    queue.append(packet)
    schedule(at: now)
  }

  /// Drops what waits of a track and was not begun. Returns the first of its numbers.
  func dropHeld(_ track: DownTrack, exceptOf frame: RTPTimestamp?) -> SequenceNumber? {
    queue.isEmpty ? nil : queue.remove(track, exceptOf: frame)
  }

  /// True when a repair may go now. Repairs get half of the link at most: after a link has become slow there is more to
  /// repair than it carries, and nothing else would arrive any more. Who asked in vain asks again.
  func takesRepair(at now: Instant) -> Bool {
    guard isReported else { return true }
    let share = Double(estimator.estimate.bitsPerSecond) / 2 / 8
    repairRoom = min(max(6_000, share / 4), repairRoom + share * min((now - repairsAt).inSeconds, 10))
    repairsAt = now
    return repairRoom > 0
  }

  /// A repair left.
  func repaired(byteCount: Int) { if isReported { repairRoom -= Double(byteCount) } }

  private func schedule(at now: Instant) {
    nextSendAt = min(nextSendAt, now)
    participant.context.pace(self)
  }

  /// Bytes that wait.
  var heldByteCount: Int { queue.byteCount }

  /// Nothing waits and nothing is probed.
  var isIdle: Bool { isClosed || queue.isEmpty && !isProbing }

  func close() {
    isClosed = true
    queue.removeAll()
  }

  /// There is nowhere to send to: consent is gone, or a TCP connection has ended. A probe would ask for ever.
  func discard(at now: Instant) {
    queue.removeAll()
    if isProbing { endProbe(at: now) }
    nextSendAt = .distantFuture
  }

  /// Writes the next packet that waited, else what a probe wants. Nil: nothing may leave before `nextSendAt`.
  @_lifetime(buffer: copy buffer)
  func poll(
    using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    guard !isClosed else { return nil }
    nextSendAt = .distantFuture
    while let packet = queue.first {
      let decision = pacer.decide(
        .video, byteCount: packet.byteCount, since: packet.since,
        queued: DataSize(bytes: Int64(queue.byteCount)), at: now)
      switch decision {
      case .at(let time):
        nextSendAt = max(time, now + .microseconds(1))
        return nil
      case .late:
        packet.track.interrupt(at: now)
        // What is left of a frame that was begun is late too.
        if queue.first?.sequence == packet.sequence { queue.removeFirst() }
      case .now:
        queue.removeFirst()
        guard let count = packet.track.sendHeld(packet.sequence, using: &scratch, into: &buffer, at: now)
        else { continue }
        nextSendAt = now
        return count
      }
    }
    return pollProbe(using: &scratch, into: &buffer, at: now)
  }

  @_lifetime(buffer: copy buffer)
  private func pollProbe(
    using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    guard isProbing else { return nil }
    guard estimator.probe != nil else {
      endProbe(at: now)
      return nil
    }
    let wanted = estimator.probePadding(at: now)
    guard wanted > 0 else {
      nextSendAt = max(estimator.nextProbePadding ?? now + Self.retry, now + .microseconds(1))
      return nil
    }
    guard let count = participant.downlink.pad(wanted, using: &scratch, into: &buffer, at: now) else {
      nextSendAt = now + Self.retry
      return nil
    }
    nextSendAt = now
    return count
  }

  // MARK: Reports

  func receive(_ feedback: TransportFeedback, at now: Instant) {
    guard expectedSince != nil else { return }
    isReported = true
    estimator.receive(feedback, at: now)
    takeUp(at: now)
  }

  func receive(_ estimate: ReceiverEstimate, at now: Instant) {
    guard expectedSince != nil else { return }
    isReported = true
    estimator.receive(receiverEstimate: estimate.rate, at: now)
    takeUp(at: now)
  }

  func setDesired(_ rate: DataRate, at now: Instant) {
    // Nobody would say how a probe fared.
    guard expectedSince != nil else { return }
    estimator.setDesired(rate, at: now)
    takeUp(at: now)
  }

  func handleTimeout(at now: Instant) {
    guard let deadline = estimator.nextDeadline, deadline <= now else { return }
    estimator.handleTimeout(at: now)
    takeUp(at: now)
  }

  var nextDeadline: Instant? { expectedSince == nil ? nil : estimator.nextDeadline }

  /// The estimate changed, or a probe began.
  private func takeUp(at now: Instant) {
    pacer.setTarget(estimator.estimate, at: now)
    guard let probe = estimator.probe, !isProbing, !isClosed else { return }
    isProbing = true
    pacer.setProbe(probe, at: now)
    schedule(at: now)
  }
}
