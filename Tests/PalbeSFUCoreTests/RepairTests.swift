import PalbeNetSim
import PalbeRTP
import PalbeSDP
import PalbeSFUCore
import PalbeUnits
import Testing

struct RepairTests {
  @Test("RFC 4588: a NACK is answered by RTX where it was negotiated")
  func rtx() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    try ForwardingTests.send(5, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let original = try #require(bob.packets(payloadType: 96).dropFirst(3).first)
    let nack = GenericNACK(
      sender: SSRC(1), media: original.header.ssrc, sequenceNumbers: [original.header.sequenceNumber])
    world.send([try bob.controlPacket([.nack(nack)])], from: bob)
    world.run(for: .milliseconds(100))
    let repair = try #require(bob.packets(payloadType: 97).first)
    #expect(repair.header.ssrc == bob.answer?.media[1].sources.last?.ssrc)
    var bytes = repair.bytes
    let byteCount = bytes.count
    var buffer = bytes.mutableSpan
    let count = try RTX.unwrap(
      &buffer, count: byteCount, payloadType: PayloadType(96), ssrc: original.header.ssrc)
    let unwrapped = Array(bytes[..<(count ?? 0)])
    let header = try RTPHeader.parse(unwrapped.span)
    // The same packet but for its own transport-wide number.
    #expect(header == original.header)
    #expect(unwrapped[header.payloadRange(in: unwrapped.span)] == original.payload[...])
    var ids = RTPExtensionIDs()
    ids.transportSequenceNumber = 3
    let numbers = [
      ids.read(header, in: unwrapped.span), ids.read(original.header, in: original.bytes.span),
    ].map(\.transportSequenceNumber)
    #expect(numbers[0] != nil && numbers[0] != numbers[1])
    let totals = world.worker.statistics().totals
    #expect(totals.nacksReceived == 1 && totals.repairsSent.packets == 1)
    #expect(totals.repairsSent.bytes > UInt64(repair.bytes.count))
  }

  @Test(
    "RFC 3711: without RTX a repair is the same protected bytes, and one that asks at once again gets no second one"
  )
  func sameBytes() throws {
    let world = try World()
    let (alice, bob) = try call(world, rtx: false)
    try ForwardingTests.send(3, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(100))
    let original = try #require(bob.packets(payloadType: 96).first)
    let nack = GenericNACK(
      sender: SSRC(1), media: original.header.ssrc, sequenceNumbers: [original.header.sequenceNumber])
    let before = world.protectedCount
    world.send([try bob.controlPacket([.nack(nack), .nack(nack)])], from: bob)
    world.run(for: .milliseconds(100))
    #expect(world.protectedCount == before + 1)
    let totals = world.worker.statistics().totals
    #expect(totals.nacksReceived == 2 && totals.repairsSent.packets == 1)
    // Bob has it already: its replay window refuses it.
    #expect(bob.refused == 1)
    #expect(world.reuses == 0)
  }

  @Test("RFC 4585: the publisher is asked for what is missing, and a late packet fits into its gap")
  func upstream() throws {
    let world = try World()
    let (alice, bob) = try call(world)
    var frames: [[UInt8]] = []
    for number in 0..<6 { frames += try alice.videoFrame(1, isKeyFrame: number == 0) }
    var missing = frames
    let lost = missing.remove(at: 5)
    for packet in missing {
      world.send([packet], from: alice)
      world.run(for: .milliseconds(5))
    }
    world.run(for: .milliseconds(100))
    let nacks = alice.control.compactMap { packet -> GenericNACK? in
      if case .nack(let nack) = packet { nack } else { nil }
    }
    #expect(nacks.first?.sequenceNumbers == [SequenceNumber(105)])
    #expect(nacks.first?.media == alice.tracks[1].ssrc)
    world.send([lost], from: alice)
    world.run(for: .milliseconds(100))
    let numbers = bob.packets(payloadType: 96).map(\.header.sequenceNumber.rawValue)
    let sorted = numbers.sorted { Int16(bitPattern: $0 &- $1) < 0 }
    #expect(numbers.count == 12)
    #expect(zip(sorted, sorted.dropFirst()).allSatisfy { $1 &- $0 == 1 })
    #expect(world.worker.statistics().totals.nacksSent == UInt64(nacks.flatMap(\.sequenceNumbers).count))
    let asked = alice.control.count
    world.run(for: .milliseconds(300))
    #expect(
      !alice.control[asked...].contains { if case .nack = $0 { true } else { false } }, "asked for what came")
  }

  @Test(
    "under loss, reordering and duplication nothing different is protected under one number",
    arguments: [UInt64(1), 2, 3], [true, false])
  func loss(seed: UInt64, rtx: Bool) throws {
    let world = try World(seed: seed)
    let (alice, bob) = try call(world, rtx: rtx)
    let link = Link(
      delay: .milliseconds(10), jitter: .milliseconds(5), loss: 0.1, duplication: 0.05, reordering: 0.1)
    world.network.setLink(link, between: alice.address, and: World.server)
    world.network.setLink(link, between: bob.address, and: World.server)
    for number in 0..<150 {
      world.send(try alice.videoFrame(1, isKeyFrame: number % 30 == 0), from: alice)
      world.run(for: .milliseconds(33))
      guard number % 3 == 0, let last = bob.packets(payloadType: 96).last else { continue }
      let wanted = (1...8).map { last.header.sequenceNumber + -$0 }.reversed()
      let nack = GenericNACK(sender: SSRC(1), media: last.header.ssrc, sequenceNumbers: Array(wanted))
      world.send([try bob.controlPacket([.nack(nack)])], from: bob)
    }
    world.run(for: .milliseconds(500))
    #expect(world.protectedCount > 300)
    #expect(world.reuses == 0)
    #expect(bob.packets(payloadType: 96).count > 150)
  }
}
