import PalbeLiveKit
import PalbeNetSim
import PalbeProtobuf
import PalbeRTP
import PalbeUnits
import Testing

@testable import PalbeCongestion
@testable import PalbeSFUCore

/// What a real client does with what it receives: feedback, NACKs, key-frame requests, frames in order.
final class Viewer {
  /// How it says what its link carries.
  enum Feedback { case transportWide, receiverEstimate(DataRate), none }

  let client: ScriptedClient
  let feedback: Feedback
  private var recorder = TransportFeedbackRecorder(interval: .milliseconds(50))
  private var assembler = VP8FrameAssembler()
  private var nacks = NackTracker()
  private var unwrapper = SequenceUnwrapper()
  private var media: SSRC?
  private var stuckSince: Instant?
  private var nextRequest = Instant.zero
  private var nextEstimate = Instant.zero
  /// Pictures that could be shown.
  var pictures = ContinuityMeter()
  /// The layer shown.
  var layers = ChangeMeter<UInt8>()
  var timestamps: [(at: Instant, timestamp: RTPTimestamp)] = []
  var frames: [VP8AssembledFrame] = []
  var keepsFrames = false
  private(set) var bytes = 0
  private(set) var repeated = 0
  private(set) var requests = 0

  init(_ client: ScriptedClient, feedback: Feedback = .transportWide) {
    self.client = client
    self.feedback = feedback
  }

  /// Looks at what arrived, and returns what it answers.
  func run(at now: Instant) throws -> [[UInt8]] {
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = 3
    for packet in client.packets {
      bytes += packet.bytes.count
      if let number = ids.read(packet.header, in: packet.bytes.span).transportSequenceNumber {
        recorder.record(transportSequence: number, at: packet.at + .seconds(1_000))
      }
      switch packet.header.payloadType.rawValue {
      case 96: try take(packet.bytes, header: packet.header, isRepair: false, at: packet.at)
      case 97 where !packet.payload.isEmpty:
        guard let media else { continue }
        var clear = packet.bytes
        let count = clear.count
        var buffer = clear.mutableSpan
        guard
          let length = try RTX.unwrap(&buffer, count: count, payloadType: PayloadType(96), ssrc: media)
        else { continue }
        clear.removeSubrange(length...)
        try take(clear, header: RTPHeader.parse(clear.span), isRepair: true, at: packet.at)
      default: continue
      }
    }
    client.packets.removeAll(keepingCapacity: true)
    showFrames(at: now)
    return try answers(at: now)
  }

  private func take(_ bytes: [UInt8], header: RTPHeader, isRepair: Bool, at: Instant) throws {
    if !isRepair { media = header.ssrc }
    let sequence = unwrapper.unwrap(header.sequenceNumber)
    if nacks.received(sequence, at: at) == .duplicate { repeated += 1 }
    let payload = Array(bytes[header.payloadRange(in: bytes.span)])
    _ = assembler.insert(payload.span, header: header, sequence: sequence, at: at)
  }

  private func showFrames(at now: Instant) {
    while let frame = assembler.nextFrame() {
      pictures.frame(at: frame.completedAt)
      timestamps.append((frame.completedAt, frame.timestamp))
      if let layer = frame.bytes.last { layers.note(layer, at: frame.completedAt) }
      if keepsFrames { frames.append(frame) }
      stuckSince = nil
    }
  }

  private func answers(at now: Instant) throws -> [[UInt8]] {
    guard let media else { return [] }
    var datagrams: [[UInt8]] = []
    switch feedback {
    case .transportWide:
      while let compound = recorder.poll(at: now + .seconds(1_000), sender: SSRC(1), media: media) {
        var reader = RTCPReader(compound.span)
        if let packet = try reader.next() { datagrams.append(try client.controlPacket([packet])) }
      }
    case .receiverEstimate(let rate) where now >= nextEstimate:
      nextEstimate = now + .seconds(1)
      let estimate = ReceiverEstimate(sender: SSRC(1), rate: rate, sources: [media])
      datagrams.append(try client.controlPacket([.receiverEstimate(estimate)]))
    default: break
    }
    let missing = nacks.poll(at: now, roundTrip: .milliseconds(80))
    if !missing.isEmpty {
      let nack = GenericNACK(sender: SSRC(1), media: media, sequenceNumbers: missing)
      datagrams.append(try client.controlPacket([.nack(nack)]))
    }
    let isStuck = assembler.missing != nil || assembler.needsKeyFrame
    stuckSince = isStuck ? stuckSince ?? now : nil
    if let stuckSince, now - stuckSince > .milliseconds(300), now >= nextRequest {
      nextRequest = now + .milliseconds(300)
      if assembler.skipToKeyFrame() {
        showFrames(at: now)
      } else {
        requests += 1
        datagrams.append(
          try client.controlPacket([.pictureLossIndication(sender: SSRC(1), media: media)]))
      }
    }
    return datagrams
  }
}

/// Alice publishes layers to Bob through a worker and a link that a scenario describes.
final class LayeredCall {
  let world: World
  let alice: ScriptedClient
  let bob: ScriptedClient
  var source: LayeredSource
  var viewer: Viewer
  let start: Instant
  private var nextFrame: Instant
  private(set) var estimates: [(at: TimeDelta, kilobits: Int)] = []
  private(set) var waits: [TimeDelta] = []
  /// Prints what estimator and allocation see, with each sample.
  var traces = false

  init(
    _ rates: [DataRate], seed: UInt64, feedback: Viewer.Feedback = .transportWide, temporalLayers: Int = 1,
    allowsPause: Bool = false, link: Link = Link(delay: .milliseconds(25)),
    prepare: (ScriptedClient) -> Void = { _ in }
  ) throws {
    let world = try World(seed: seed)
    world.isRecording = false
    let alice = try world.client("alice")
    alice.tracks = [world.track("cam", .video)]
    let rids = rates.count == 1 ? ["f"] : ["q", "h", "f"]
    world.join(
      alice,
      request: { request in
        guard let offer = try? alice.simulcastOffer(rids) else { return }
        request.publisherOffer = .with {
          $0.type = "offer"
          $0.sdp = offer
        }
      })
    try #require(world.connect(alice))
    let bob = try world.client("bob")
    prepare(bob)
    world.network.setLink(Link(delay: .milliseconds(25)), from: bob.address, to: World.server)
    world.network.setLink(link, from: World.server, to: bob.address)
    world.join(bob, request: { $0.connectionSettings?.subscriberAllowPause = allowsPause })
    try #require(world.connect(bob))
    (self.world, self.alice, self.bob) = (world, alice, bob)
    source = LayeredSource(rates, seed: seed &* 31)
    source.temporalLayers = temporalLayers
    viewer = Viewer(bob, feedback: feedback)
    start = world.now
    nextFrame = world.now
  }

  /// Lets the call go on until a time since its start; the scenario says what the link to Bob is.
  func run(until end: TimeDelta, over scenario: SimulatedLink? = nil) throws {
    var nextSample = world.now
    while world.now < start + end {
      scenario?.update(&world.network, from: World.server, to: bob.address, after: world.now - start)
      if world.now >= nextFrame {
        nextFrame += LayeredSource.interval
        world.send(try source.nextFrame(of: alice, at: world.now), from: alice)
      }
      world.send(try viewer.run(at: world.now), from: bob)
      if world.now >= nextSample, let estimate = link?.estimator.estimate {
        nextSample += .milliseconds(100)
        estimates.append((world.now - start, Int(estimate.bitsPerSecond / 1_000)))
        if traces { trace() }
      }
      world.run(for: .milliseconds(10))
    }
  }

  private func trace() {
    guard let link else { return }
    let estimator = link.estimator
    let layer = link.allocator.entries.first?.layer.map { "\($0.spatial)" } ?? "-"
    let parts = [
      "t \(Int((world.now - start).inMilliseconds))", "estimate \(estimator.estimate.bitsPerSecond / 1_000)",
      "delivered \((estimator.deliveredRate?.bitsPerSecond ?? 0) / 1_000)", "\(estimator.usage)",
      "trend \(Int(estimator.trend.value)) of \(Int(estimator.trend.threshold))",
      "queue \(Int(estimator.queue.delay)) jitter \(Int(estimator.queue.jitter))",
      estimator.isApplicationLimited ? "limited" : "",
      "loss \(Int(100 * estimator.lossRatio)) own \(Int(100 * estimator.inherentLossRatio))",
      estimator.probe.map { "probe \($0.rate.bitsPerSecond / 1_000)" } ?? "",
      "layer \(layer) allocated \(link.allocator.allocated.bitsPerSecond / 1_000)",
    ]
    print(parts.filter { !$0.isEmpty }.joined(separator: ", "))
  }

  var link: LinkControl? { world.worker.participants.first { $0.identity == "bob" }?.link }

  /// The part of the samples of a span of seconds whose estimate lies within 20 % of a rate in kbit/s.
  func near(_ rate: Int, from: Int, to: Int) -> Double {
    let span = estimates.filter { $0.at >= .seconds(from) && $0.at < .seconds(to) }
    return Double(span.count { abs($0.kilobits - rate) <= rate / 5 }) / Double(max(span.count, 1))
  }

  func median(from: Int, to: Int) -> Int {
    let span = estimates.filter { $0.at >= .seconds(from) && $0.at < .seconds(to) }.map(\.kilobits).sorted()
    return span.isEmpty ? 0 : span[span.count / 2]
  }
}
