import PalbeRTP
import PalbeUnits

extension BandwidthEstimator {
  /// A step of the receiver's clock beyond which nothing measured before counts.
  private static let clockJump = TimeDelta.seconds(2)

  /// Takes in a report of the receiver.
  public mutating func receive(_ feedback: TransportFeedback, at now: Instant) {
    advance(to: now)
    let numbers = history.known(from: feedback.baseSequence, count: Int(feedback.statusCount))
    guard !numbers.isEmpty else { return }
    advanceClock(to: feedback.referenceTime)
    let wasWaiting = waitingSince
    lastFeedback = self.now
    isReported = true
    lastTimeout = nil
    waitingSince = nil
    bridge(to: numbers.lowerBound, in: feedback)
    nextReported = max(nextReported, numbers.upperBound)
    let newest = read(feedback, numbers: numbers)
    // Packets sent after the newest reported one still wait.
    if numbers.upperBound < history.next { waitingSince = wasWaiting.map { max($0, self.now) } ?? self.now }
    if let newest { roundTrip.add(max(0, (self.now - newest).inMilliseconds), at: self.now) }
    conclude()
    poll()
  }

  /// Notes what the report says of each packet, and returns when the newest one that arrived was sent.
  private mutating func read(_ feedback: TransportFeedback, numbers: Range<UInt64>) -> Instant? {
    var newest: Instant?
    var next = 0
    let arrivals = feedback.arrivals
    var number = numbers.lowerBound
    while number < numbers.upperBound {
      let wire = UInt16(truncatingIfNeeded: number)
      let offset = wire &- feedback.baseSequence
      // Arrivals are in the order of their numbers; those before ours are of packets that we forgot.
      while next < arrivals.count, arrivals[next].sequence &- feedback.baseSequence < offset { next += 1 }
      var packet = history[number]
      let fate = SendHistory.Fate(rawValue: packet.fate) ?? .unknown
      if next < arrivals.count, arrivals[next].sequence == wire {
        if fate != .received {
          let sentAt = history.sendTime(of: packet)
          let arrival = arrivalOrigin + TransportFeedback.tick * Int(arrivals[next].ticks)
          note(packet, fate: fate, sentAt: sentAt, arrival: arrival)
          packet.fate = SendHistory.Fate.received.rawValue
          history[number] = packet
          newest = sentAt
        }
        next += 1
      } else if fate == .unknown {
        loss.count(isLost: true, sentAt: history.sendTime(of: packet))
        if packet.cluster != 0 { prober.lost(packet.cluster) }
        packet.fate = SendHistory.Fate.lost.rawValue
        history[number] = packet
      }
      number += 1
    }
    return newest
  }

  /// A report was lost: what it would have told is taken to be like what the others tell, or the rate that arrived
  /// would seem lower than it is.
  private mutating func bridge(to first: UInt64, in feedback: TransportFeedback) {
    guard nextReported > 0, nextReported < first, feedback.arrivals.count > 0, delivery.bitsPerSecond != nil
    else {
      return
    }
    let known = history.known(
      from: UInt16(truncatingIfNeeded: nextReported), count: Int(clamping: first - nextReported))
    let start = delivery.lastArrival
    let span = arrivalOrigin + TransportFeedback.tick * Int(feedback.arrivals[0].ticks) - start
    guard !known.isEmpty, span > .zero, span < .seconds(1) else { return }
    let step = span / (Int(known.upperBound - known.lowerBound) + 1)
    var number = known.lowerBound
    while number < known.upperBound {
      let packet = history[number]
      if packet.fate == SendHistory.Fate.unknown.rawValue {
        delivery.add(
          byteCount: Int(Double(packet.byteCount) * (1 - loss.ratio)),
          at: start + step * Int(number - known.lowerBound + 1))
      }
      number += 1
    }
  }

  private mutating func note(
    _ packet: SendHistory.Packet, fate: SendHistory.Fate, sentAt: Instant, arrival: Instant
  ) {
    let byteCount = Int(packet.byteCount)
    if fate == .lost { loss.recovered(sentAt: sentAt) } else { loss.count(isLost: false, sentAt: sentAt) }
    if packet.cluster != 0 {
      prober.received(packet.cluster, byteCount: byteCount, arrival: arrival, isLate: fate == .lost)
    }
    delivery.add(byteCount: byteCount, at: arrival)
    queue.add((arrival - sentAt).inMilliseconds, at: arrival)
    if let step = groups.add(sent: sentAt, arrival: arrival) { trend.update(step, jitter: queue.jitter) }
  }

  /// Changes the rate by what was noted.
  private mutating func conclude() {
    limit.sent(byteCount: 0, estimate: rate.rate, at: now)
    let delivered = delivery.bitsPerSecond
    let verdict = loss.evaluate(
      rate: rate.rate, delivered: delivered, isQueueing: queue.isReal && queue.delay > 30, at: now)
    switch verdict {
    case .keep: break
    case .cut(let lower):
      rate.lower(to: lower, delivered: limit.isLimited ? nil : delivered, at: now)
      prober.overused(at: now)
    case .restore(let before): rate.restore(to: before)
    }
    if let finding = prober.finding(loss: loss.inherent, estimate: rate.rate, at: now) {
      apply(finding, delivered: delivered)
    }
    let usage = judge(isRising: noteDelivery(delivered))
    let before = rate.rate
    rate.update(
      usage, delivered: delivered, roundTrip: .seconds(min(roundTrip.value ?? 200, 10_000) / 1_000),
      isLimited: limit.isLimited, at: now)
    if usage == .over, rate.rate < before { prober.overused(at: now) }
  }

  /// How long the slope may show a probe that is over: its regression reaches back that far.
  private static let longestAftermath = TimeDelta.seconds(1)
  /// Milliseconds that the queue may grow then.
  private static let growthInAftermath = 10.0

  /// Until the rate that arrived is that of a sender who has just begun to send more, as after a switch to a larger
  /// picture, whose key frame alone makes a queue; a decrease would take the rate of before for the link's.
  private static let rampUp = TimeDelta.milliseconds(700)
  /// Milliseconds of a queue that is not waited for.
  private static let longQueue = 150.0

  /// True while a queue, and a slope, may be of our probe's making: until the slope was seen to be normal again, or the queue
  /// grows beyond what the probe made of it.
  private mutating func isInAftermath(isDisturbed: Bool) -> Bool {
    if isDisturbed {
      aftermath = (now + Self.longestAftermath, max(aftermath?.delay ?? 0, queue.delay))
      return true
    }
    guard let after = aftermath else { return false }
    if trend.usage == .over, now < after.until, queue.delay <= after.delay + Self.growthInAftermath {
      return true
    }
    aftermath = nil
    return false
  }

  /// True when more arrives than a moment ago: then the link carries more than what its queue would make believe.
  private mutating func noteDelivery(_ delivered: Double?) -> Bool {
    guard let delivered else { return false }
    guard let usual = usualDelivery else {
      usualDelivery = (delivered, now)
      return false
    }
    let weight = min(max((now - usual.at).inSeconds, 0), 1)
    usualDelivery = (usual.rate + weight * (delivered - usual.rate), now)
    return delivered > 1.25 * usual.rate
  }

  /// What slope and queue say together.
  private mutating func judge(isRising: Bool) -> LinkUsage {
    let isDisturbed = prober.isDisturbing(at: now)
    let isOurs = isInAftermath(isDisturbed: isDisturbed)
    var usage = trend.usage
    if usage == .over, isOurs || !queue.isReal { usage = .normal }
    if limit.isLimited { limitedAt = now }
    if usage == .over, !limit.isLimited || isRising, let limitedAt, now - limitedAt < Self.rampUp,
      queue.delay < Self.longQueue
    {
      usage = .under
    }
    guard queue.isStanding, !isDisturbed else {
      standing.since = nil
      return usage
    }
    let since = standing.since ?? now
    standing.since = since
    guard now - since >= .milliseconds(400) else { return usage }
    if let answered = standing.answered, now - answered < .seconds(2) {
      // We sent less for a while: a queue that is no shorter is not ours, or not a queue.
      if now - answered >= .milliseconds(1_500), queue.delay > 0.8 * standing.delay {
        queue.rebase(at: now)
        standing = (nil, nil, 0)
      }
      return usage
    }
    standing = (since, now, queue.delay)
    return .over
  }

  /// Believes a probe that found more; one that found less only when a second one agrees.
  private mutating func apply(_ finding: Prober.Finding, delivered: Double?) {
    let found = finding.result.rate
    if found > rate.rate {
      lowProbes = 0
      if trend.usage != .over || !queue.isReal || found > 1.2 * rate.rate {
        rate.setProbed(found, capacity: finding.result.isSaturated ? found / ProbeMeter.utilization : nil)
      }
    } else if finding.result.isSaturated, found < 0.8 * rate.rate {
      lowProbes += 1
      if lowProbes >= 2 {
        lowProbes = 0
        rate.lower(to: max(found, 0.95 * (delivered ?? 0)), delivered: nil, at: now)
      }
    } else {
      lowProbes = 0
      // A full link was measured: a little less is sent, and the probe's queue drains.
      if finding.result.isSaturated {
        rate.lower(
          to: max(found, 0.92 * rate.rate), delivered: found / ProbeMeter.utilization, at: now)
      }
    }
  }

  /// Puts the reference time, 24 bits of 64 ms, on a clock that does not wrap.
  private mutating func advanceClock(to reference: Int32) {
    defer { lastReference = reference }
    guard let lastReference else {
      arrivalOrigin = .zero
      return
    }
    let step = ((reference &- lastReference) << 8) >> 8
    let time = TransportFeedback.referenceUnit * Int(step)
    if time.nanoseconds.magnitude > UInt64(Self.clockJump.nanoseconds) {
      // A pause, another receiver, or garbage: start again with an origin that stays small.
      arrivalOrigin = .zero
      groups = PacketGroups()
      trend.reset()
      queue.reset()
      delivery.reset()
      return
    }
    arrivalOrigin += time
  }
}
