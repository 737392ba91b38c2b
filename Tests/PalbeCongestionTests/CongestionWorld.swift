import PalbeCongestion
import PalbeNetSim
import PalbeRTP
import PalbeUnits
import PalbeWire
import Testing

/// A sender of video, with estimator and pacer, and its receiver.
final class Flow {
  /// What the sender has to send.
  enum Source {
    /// As much as the estimate allows, up to a rate.
    case adaptive(DataRate)
    /// Always the same.
    case fixed(DataRate)
    /// Simulcast: what the allocator chooses of these rates.
    case layers([DataRate])
  }

  struct Sample {
    var at: TimeDelta
    var estimate: Int
    var queue: TimeDelta
    var lost: Double
  }

  private struct Waiting {
    var byteCount: Int
    var since: Instant
  }

  let sender: SocketAddress
  let receiver: SocketAddress
  var estimator: BandwidthEstimator
  var allocator = LayerAllocator()
  /// The layer chosen, and when.
  var layers = ChangeMeter<VideoLayer?>()
  /// When pictures arrived.
  var arrivals = ContinuityMeter()
  var pacer: Pacer
  var recorder: TransportFeedbackRecorder
  var source: Source
  /// Parts per million that the receiver's clock is fast.
  var drift = 0
  /// Whether the receiver sends feedback.
  var sendsFeedback = true
  var sendsPadding = true
  /// What the receiver claims in REMB, once a second.
  var receiverEstimate: DataRate?
  var nextREMB = Instant.zero
  private var queue: [Waiting] = []
  private var queuedBytes = 0
  var nextFrame = Instant.zero
  private var nextSend: Instant?
  private var random: RandomSource
  /// When each datagram left, by its serial.
  private var departures: [Instant] = []
  private(set) var samples: [Sample] = []
  private(set) var sentBytes = 0
  private(set) var arrivedBytes = 0
  private(set) var paddingBytes = 0
  private(set) var late = 0
  private var queueSinceSample = TimeDelta.zero

  init(
    _ number: UInt8, source: Source, limits: BandwidthEstimator.Limits = .init(), feedback: TimeDelta,
    seed: UInt64
  ) {
    sender = SocketAddress(ipv4: 192, 0, 2, number, port: 1)
    receiver = SocketAddress(ipv4: 198, 51, 100, number, port: 1)
    estimator = BandwidthEstimator(limits: limits)
    pacer = Pacer(target: limits.start)
    recorder = TransportFeedbackRecorder(interval: feedback)
    self.source = source
    random = RandomSource(seed: seed)
  }

  func receiverTime(_ now: Instant) -> Instant {
    now + TimeDelta(nanoseconds: now.nanoseconds / 1_000_000 * Int64(drift)) + .seconds(1_000)
  }

  /// The next instant at which this flow does something by itself.
  func nextEvent(after now: Instant) -> Instant {
    var next = nextFrame
    if let deadline = estimator.nextDeadline { next = min(next, deadline) }
    if sendsPadding, let padding = estimator.nextProbePadding { next = min(next, padding) }
    if let nextSend { next = min(next, nextSend) }
    if sendsFeedback, let deadline = recorder.nextDeadline {
      // The recorder's clock drifts; a step of a millisecond finds it.
      next = min(
        next, receiverTime(now) >= deadline ? now : now + max(.milliseconds(1), deadline - receiverTime(now)))
    }
    return max(next, now + .microseconds(50))
  }

  func run(_ network: inout NetworkSimulator, at now: Instant) {
    estimator.handleTimeout(at: now)
    if now >= nextFrame { produce(at: now) }
    drain(&network, at: now)
    if sendsFeedback {
      while let bytes = recorder.poll(at: receiverTime(now), sender: SSRC(1), media: SSRC(2)) {
        network.send(bytes, from: receiver, to: sender, at: now)
      }
    }
    if let receiverEstimate, now >= nextREMB {
      nextREMB = now + .seconds(1)
      estimator.receive(receiverEstimate: receiverEstimate, at: now)
    }
  }

  private func produce(at now: Instant) {
    nextFrame = now + .microseconds(33_333)
    let rate: Int64
    switch source {
    case .adaptive(let limit): rate = min(limit.bitsPerSecond, estimator.estimate.bitsPerSecond * 95 / 100)
    case .fixed(let fixed): rate = fixed.bitsPerSecond
    case .layers(let rates): rate = choose(rates, at: now)
    }
    // Frames are not all of one size.
    var bytes = Int(Double(rate) / 8 / 30 * Double.random(in: 0.7...1.3, using: &random))
    while bytes > 0 {
      let count = min(bytes, 1_200)
      queue.append(Waiting(byteCount: max(count, 60), since: now))
      queuedBytes += max(count, 60)
      bytes -= count
    }
  }

  /// Asks the allocator with every frame.
  private func choose(_ rates: [DataRate], at now: Instant) -> Int64 {
    if layers.changes.isEmpty {
      var ladder = LayerRates()
      for (spatial, rate) in rates.enumerated() { ladder[spatial, 0] = rate }
      allocator.update(LayerAllocator.Track(rates: ladder), for: 1, at: now)
      estimator.setDesired(allocator.desired, at: now)
    }
    allocator.allocate(estimator.estimate, at: now)
    let layer = allocator.layer(of: 1)
    layers.note(layer, at: now)
    return layer.map { rates[Int($0.spatial)].bitsPerSecond } ?? 0
  }

  private func drain(_ network: inout NetworkSimulator, at now: Instant) {
    pacer.setTarget(estimator.estimate, at: now)
    pacer.setProbe(estimator.probe, at: now)
    nextSend = nil
    while let first = queue.first {
      switch pacer.decide(
        .video, byteCount: first.byteCount, since: first.since, queued: DataSize(bytes: Int64(queuedBytes)),
        at: now)
      {
      case .now: transmit(first.byteCount, .video, &network, at: now)
      case .at(let time):
        nextSend = time
        return
      case .late: late += 1
      }
      queuedBytes -= first.byteCount
      queue.removeFirst()
    }
    guard sendsPadding else { return }
    while estimator.probe != nil {
      let bytes = estimator.probePadding(at: now)
      guard bytes > 0 else { return }
      transmit(max(min(bytes, 1_200), 60), .padding, &network, at: now)
      paddingBytes += min(bytes, 1_200)
    }
  }

  private func transmit(
    _ byteCount: Int, _ kind: Pacer.Kind, _ network: inout NetworkSimulator, at now: Instant
  ) {
    let number = estimator.packetSent(byteCount: byteCount, at: now)
    pacer.sent(kind, byteCount: byteCount, at: now)
    sentBytes += byteCount
    var bytes = [UInt8](repeating: 0, count: max(byteCount, 8))
    let serial = departures.count
    departures.append(now)
    bytes[0] = UInt8(number >> 8)
    bytes[1] = UInt8(truncatingIfNeeded: number)
    for index in 0..<4 { bytes[2 + index] = UInt8(truncatingIfNeeded: serial >> (8 * index)) }
    network.send(bytes, from: sender, to: receiver, at: now)
  }

  /// A datagram for either end.
  func receive(_ datagram: Datagram, link: Link, at now: Instant) {
    if datagram.destination == receiver {
      let bytes = datagram.bytes
      arrivedBytes += bytes.count
      arrivals.frame(at: datagram.arrival)
      let serial = (0..<4).reduce(0) { $0 | Int(bytes[2 + $1]) << (8 * $1) }
      queueSinceSample = max(
        queueSinceSample, datagram.arrival - departures[serial] - link.delay - link.jitter)
      recorder.record(
        transportSequence: UInt16(bytes[0]) << 8 | UInt16(bytes[1]), at: receiverTime(datagram.arrival))
    } else {
      var reader = RTCPReader(datagram.bytes.span)
      if case .transportFeedback(let feedback)? = try? reader.next() {
        estimator.receive(feedback, at: now)
      }
    }
  }

  func sample(_ elapsed: TimeDelta) {
    samples.append(
      Sample(
        at: elapsed, estimate: Int(estimator.estimate.bitsPerSecond), queue: queueSinceSample,
        lost: estimator.lossRatio))
    queueSinceSample = .zero
  }
}

/// Flows over one bottleneck in virtual time.
final class CongestionWorld {
  var network: NetworkSimulator
  var flows: [Flow] = []
  let scenario: SimulatedLink
  let seed: UInt64
  let start = Instant(nanoseconds: 1_000_000_000)
  var now: Instant

  init(_ scenario: SimulatedLink, seed: UInt64, back: Link = Link(delay: .milliseconds(25))) {
    self.scenario = scenario
    self.seed = seed
    network = NetworkSimulator(seed: seed, link: back)
    now = start
  }

  @discardableResult
  func add(
    _ source: Flow.Source, desired: DataRate = .megabitsPerSecond(5),
    limits: BandwidthEstimator.Limits = .init(),
    feedback: TimeDelta = .milliseconds(100)
  ) -> Flow {
    let flow = Flow(
      UInt8(flows.count + 1), source: source, limits: limits, feedback: feedback,
      seed: seed &* 31 &+ UInt64(flows.count))
    flow.nextFrame = now + .milliseconds(11 * flows.count)
    scenario.update(&network, from: flow.sender, to: flow.receiver, after: now - start)
    if let first = flows.first {
      network.shareBottleneck(from: flow.sender, to: flow.receiver, with: (first.sender, first.receiver))
    }
    flow.estimator.setDesired(desired, at: now)
    flows.append(flow)
    return flow
  }

  /// Runs until a time since the start, with a sample of each flow every 100 ms.
  func run(until end: TimeDelta) {
    var nextSample = now
    while now < start + end {
      var next = min(nextSample, start + end)
      if let change = scenario.changes.first(where: { start + $0 > now }) { next = min(next, start + change) }
      if let arrival = network.nextArrival { next = min(next, arrival) }
      for flow in flows { next = min(next, flow.nextEvent(after: now)) }
      now = max(now, next)
      for flow in flows {
        scenario.update(&network, from: flow.sender, to: flow.receiver, after: now - start)
      }
      while let datagram = network.poll(at: now) {
        let flow = flows.first { $0.receiver == datagram.destination || $0.sender == datagram.destination }
        flow?.receive(datagram, link: scenario.link(after: now - start), at: now)
      }
      for flow in flows { flow.run(&network, at: now) }
      if now >= nextSample {
        for flow in flows { flow.sample(now - start) }
        nextSample = now + .milliseconds(100)
      }
    }
  }
}
