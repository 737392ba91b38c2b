import PalbeCongestion
import PalbeLiveKit
import PalbeNetSim
import PalbeRTP
import PalbeSDP
import PalbeUnits
import Testing

@testable import PalbeSFUCore

@Suite("What a subscriber's link carries")
struct LinkControlTests {
  static let rates = NetworkAcceptanceTests.rates

  static func states(of client: ScriptedClient) -> [LiveKit.StreamState] {
    client.messages.flatMap { message -> [LiveKit.StreamState] in
      if case .streamStateUpdate(let update) = message { update.streamStates.map(\.state) } else { [] }
    }
  }

  @Test("transport-cc: sound, video and repairs are numbered in one row, and where not negotiated not at all")
  func numbers() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    carol.offersTransportFeedback = false
    world.join(carol)
    try #require(world.connect(carol))
    for number in 0..<20 {
      world.send(try alice.videoFrame(1, isKeyFrame: number == 0), from: alice)
      world.send([try alice.media(0, payload: [1, 2, 3])], from: alice)
      world.run(for: .milliseconds(33))
    }
    let media = try #require(bob.packets(payloadType: 96).first?.header)
    let nack = GenericNACK(sender: SSRC(1), media: media.ssrc, sequenceNumbers: [media.sequenceNumber])
    world.send([try bob.controlPacket([.nack(nack)])], from: bob)
    world.run(for: .milliseconds(100))
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = 3
    ids.absoluteSendTime = 2
    let numbers = bob.packets.map { ids.read($0.header, in: $0.bytes.span).transportSequenceNumber }
    #expect(numbers == (0..<bob.packets.count).map { UInt16($0) })
    #expect(!bob.packets(payloadType: 97).isEmpty)
    let answer = try #require(bob.answer?.media[1].codecs.first)
    #expect(answer.feedback.contains("transport-cc") && !answer.feedback.contains("goog-remb"))

    let others = carol.packets(payloadType: 96).map { ids.read($0.header, in: $0.bytes.span) }
    #expect(others.allSatisfy { $0.transportSequenceNumber == nil && $0.absoluteSendTime != nil })
    #expect(carol.answer?.media[1].codecs.first?.feedback.contains("goog-remb") == true)
  }

  @Test("REMB: a client without transport-cc gets the layers that fit what it says")
  func receiverEstimate() throws {
    let low = try LayeredCall(
      Self.rates, seed: 1, feedback: .receiverEstimate(.kilobitsPerSecond(250)),
      prepare: { $0.offersTransportFeedback = false })
    try low.run(until: .seconds(10))
    #expect(low.viewer.layers.changes.last?.value == 0)
    let high = try LayeredCall(
      Self.rates, seed: 1, feedback: .receiverEstimate(.megabitsPerSecond(3)),
      prepare: { $0.offersTransportFeedback = false })
    try high.run(until: .seconds(10))
    #expect(high.viewer.layers.changes.last?.value == 2)
  }

  @Test("A client that negotiates feedback and sends none is not held back for longer than three seconds")
  func silent() throws {
    let call = try LayeredCall(Self.rates, seed: 1, feedback: .none)
    try call.run(until: .milliseconds(2_500))
    #expect(call.viewer.layers.changes.last?.value == 0)
    try call.run(until: .seconds(6))
    #expect(call.viewer.layers.changes.last?.value == 2)
  }

  @Test("stream_state_update: a video that does not fit is paused where the client allows it, and comes back")
  func pause() throws {
    let narrow = Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(90))
    let wide = Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(2_000))
    let scenario = SimulatedLink(
      "2 Mbit/s, 90 kbit/s and back",
      [
        .init(after: .zero, wide), .init(after: .seconds(8), narrow), .init(after: .seconds(25), wide),
      ])
    let call = try LayeredCall(Self.rates, seed: 1, allowsPause: true)
    try call.run(until: .seconds(8), over: scenario)
    #expect(Self.states(of: call.bob).last != .paused)
    try call.run(until: .seconds(25), over: scenario)
    #expect(Self.states(of: call.bob).last == .paused)
    let shown = call.viewer.pictures.frameCount
    try call.run(until: .seconds(26), over: scenario)
    #expect(call.viewer.pictures.frameCount - shown < 5)
    try call.run(until: .seconds(45), over: scenario)
    #expect(Self.states(of: call.bob).last == .active)
    #expect(call.viewer.pictures.frameCount - shown > 300)
  }

  @Test("subscriber_allow_pause false: the lowest layer is sent even where it does not fit")
  func neverPaused() throws {
    let call = try LayeredCall(Self.rates, seed: 1)
    let narrow = SimulatedLink(
      "130 kbit/s", Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(130)))
    try call.run(until: .seconds(15), over: narrow)
    #expect(Self.states(of: call.bob).isEmpty)
    #expect(call.viewer.layers.changes.last?.value == 0)
  }

  @Test("livekit-protocol.md §4 item 29: loss on a publisher's way to us lowers nobody's estimate")
  func uplinkLoss() throws {
    let call = try LayeredCall(Self.rates, seed: 1)
    try call.run(until: .seconds(10), over: .constant)
    call.world.network.setLink(
      Link(delay: .milliseconds(10), loss: 0.1), from: call.alice.address, to: World.server)
    try call.run(until: .seconds(20), over: .constant)
    #expect(call.near(2_000, from: 10, to: 20) >= 0.9, "\(call.median(from: 10, to: 20))")
  }

  @Test("A key frame on a slow link leaves in steps: the queue there stays short")
  func pacing() throws {
    let call = try LayeredCall([.kilobitsPerSecond(600)], seed: 1)
    let link = SimulatedLink(
      "900 kbit/s",
      Link(delay: .milliseconds(25), bandwidth: .kilobitsPerSecond(900), queue: .milliseconds(400)))
    try call.run(until: .seconds(8), over: link)
    let overflowed = call.world.network.statistics.overflowed
    for second in 9..<14 {
      call.source.layers[0].wantsKeyFrame = true
      try call.run(until: .seconds(second), over: link)
    }
    #expect(call.world.network.statistics.overflowed == overflowed)
    let freeze = call.viewer.pictures.longestFreeze(from: call.start + .seconds(8), to: call.world.now)
    #expect(freeze < .milliseconds(250), "\(freeze.inMilliseconds) ms")
  }

  @Test("What an attacker reports makes nothing trap and nothing grow")
  func garbage() throws {
    let call = try LayeredCall(Self.rates, seed: 1, feedback: .none)
    try call.run(until: .seconds(1))
    var random = RandomSource(seed: 5)
    for _ in 0..<300 {
      var feedback = TransportFeedback(
        sender: SSRC(1), media: SSRC(2), baseSequence: UInt16(truncatingIfNeeded: random.next()),
        referenceTime: Int32(truncatingIfNeeded: Int64(bitPattern: random.next()) >> 42), feedbackCount: 0)
      for index in 0..<UInt16(random.next() % 50) {
        _ = feedback.append(
          feedback.baseSequence &+ index, ticks: Int32(truncatingIfNeeded: random.next() % 60_000))
      }
      let estimate = ReceiverEstimate(
        sender: SSRC(1), rate: DataRate(bitsPerSecond: Int64(random.next() % 1_000_000_000)), sources: [])
      let packets: [RTCPPacket] = [.transportFeedback(feedback), .receiverEstimate(estimate)]
      call.world.send([try call.bob.controlPacket(packets)], from: call.bob)
      try call.run(until: call.world.now - call.start + .milliseconds(10))
    }
    #expect(call.viewer.pictures.frameCount > 60)
    #expect((call.link?.heldByteCount ?? 0) <= PacedQueue.limit * 1_500)
  }
}
