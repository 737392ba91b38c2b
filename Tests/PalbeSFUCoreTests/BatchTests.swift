import PalbeRTP
import PalbeSFUCore
import PalbeUnits
import Testing

struct BatchTests {
  /// Hands the worker all datagrams before the first poll; what it sends, in order.
  private func forward(
    _ datagrams: [[UInt8]], from client: ScriptedClient, in world: World
  ) -> [(destination: SocketAddress, bytes: [UInt8])] {
    for datagram in datagrams {
      var buffer = datagram + [UInt8](repeating: 0, count: 64)
      var span = buffer.mutableSpan
      world.worker.receive(&span, count: datagram.count, from: client.address, at: world.now)
    }
    var sent: [(destination: SocketAddress, bytes: [UInt8])] = []
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = world.worker.pollTransmit(into: &span, at: world.now) else { return sent }
      sent.append((transmit.destination, Array(buffer[..<transmit.count])))
    }
  }

  private func threeSubscribers(_ world: World) throws -> (alice: ScriptedClient, others: [ScriptedClient]) {
    let (alice, bob) = try call(world)
    let carol = try world.client("carol")
    world.join(carol)
    let dave = try world.client("dave")
    dave.offersRTX = false
    world.join(dave)
    try #require(world.connect(carol) && world.connect(dave))
    return (alice, [bob, carol, dave])
  }

  @Test("Part 7: what comes in one batch is written subscriber by subscriber, each track in its order")
  func order() throws {
    let world = try World()
    let (alice, others) = try threeSubscribers(world)
    var datagrams = try alice.videoFrame(1, isKeyFrame: true, packets: 3)
    datagrams.insert(try alice.media(0, payload: [1, 2, 3]), at: 1)
    datagrams += try alice.videoFrame(1, isKeyFrame: false, packets: 2)
    let sent = forward(datagrams, from: alice, in: world)
    let addresses = others.map(\.address)
    #expect(sent.map(\.destination) == addresses.flatMap { Array(repeating: $0, count: 5) } + addresses)
    for client in others {
      for datagram in sent where datagram.destination == client.address {
        client.receive(datagram.bytes, from: World.server, at: world.now)
      }
      #expect(client.refused == 0)
      #expect(client.packets(payloadType: 96).count == 5 && client.packets(payloadType: 111).count == 1)
      let numbers = client.packets(payloadType: 96).map(\.header.sequenceNumber)
      #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $1.distance(from: $0) == 1 })
    }
  }

  @Test("RFC 3550 §5.1: packets of a frame that differ by a few bytes are padded to one length, payload kept")
  func padding() throws {
    let world = try World()
    let (alice, others) = try threeSubscribers(world)
    try ForwardingTests.send(1, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(50))
    for client in others { client.packets = [] }
    // The last is shorter, the second by too much.
    let sizes = [600, 500, 601, 600, 593, 598]
    var payloads: [[UInt8]] = []
    var datagrams: [[UInt8]] = []
    alice.tracks[1].timestamp &+= 3_000
    for (number, size) in sizes.enumerated() {
      let descriptor = VP8PayloadDescriptor(startsPartition: number == 0, pictureID: 77)
      let payload = [UInt8](capacity: size + 8) { output in
        descriptor.write(into: &output)
        for index in 0..<size { output.append(UInt8(truncatingIfNeeded: index | 1)) }
      }
      payloads.append(payload)
      datagrams.append(try alice.media(1, payload: payload, marker: number == sizes.count - 1))
    }
    let sent = forward(datagrams, from: alice, in: world)
    for client in others {
      let own = sent.filter { $0.destination == client.address }
      #expect(own.map { $0.bytes.count - own[0].bytes.count } == [0, -101, 0, 0, 0, -3])
      for datagram in own { client.receive(datagram.bytes, from: World.server, at: world.now) }
      #expect(client.refused == 0)
      let received = client.packets.map { Array($0.payload.dropFirst(4)) }
      #expect(received == payloads.map { Array($0.dropFirst(4)) })
      #expect(client.packets.map(\.header.paddingByteCount) == [1, 0, 0, 1, 8, 0])
      #expect(client.packets.map(\.header.hasPadding) == [true, false, false, true, true, false])
    }
    // A padded packet is repaired with the same payload.
    let bob = others[0]
    let nack = GenericNACK(
      sender: SSRC(1), media: bob.packets[4].header.ssrc,
      sequenceNumbers: [bob.packets[4].header.sequenceNumber])
    world.send([try bob.controlPacket([.nack(nack)])], from: bob)
    world.run(for: .milliseconds(100))
    let repair = try #require(bob.packets(payloadType: 97).first)
    #expect(Array(repair.payload.dropFirst(2)) == bob.packets[4].payload)
  }

  @Test("A batch holds 64 packets: a shell that receives more without a poll loses them, and nothing else")
  func overflow() throws {
    let world = try World()
    let (alice, _) = try call(world)
    try ForwardingTests.send(1, from: alice, track: 1, in: world)
    let datagrams = try (0..<70).map { _ in try alice.media(0, payload: [1, 2, 3]) }
    var count = 0
    for datagram in datagrams {
      if !world.worker.hasRoom { count += 1 }
      var buffer = datagram + [UInt8](repeating: 0, count: 64)
      var span = buffer.mutableSpan
      world.worker.receive(&span, count: datagram.count, from: alice.address, at: world.now)
    }
    #expect(count == 1)
    #expect(forward([], from: alice, in: world).count == 6)
    #expect(forward(try [alice.media(0, payload: [4])], from: alice, in: world).count == 1)
  }

  @Test("RFC 4588: a repair is what was sent, long after, for each subscriber under its own numbers")
  func sharedHistory() throws {
    let world = try World()
    let (alice, others) = try threeSubscribers(world)
    // Carol joined later and has other numbers; everyone asks for a packet of 200 frames ago.
    try ForwardingTests.send(100, from: alice, track: 1, in: world)
    world.run(for: .milliseconds(50))
    for client in others.prefix(2) {
      let original = try #require(client.packets(payloadType: 96).dropFirst(11).first)
      let nack = GenericNACK(
        sender: SSRC(1), media: original.header.ssrc, sequenceNumbers: [original.header.sequenceNumber])
      world.send([try client.controlPacket([.nack(nack)])], from: client)
      world.run(for: .milliseconds(50))
      let repair = try #require(client.packets(payloadType: 97).last)
      #expect(repair.header.timestamp == original.header.timestamp)
      #expect(Array(repair.payload.dropFirst(2)) == original.payload)
      #expect(
        repair.payload[0] == UInt8(original.header.sequenceNumber.rawValue >> 8)
          && repair.payload[1] == UInt8(truncatingIfNeeded: original.header.sequenceNumber.rawValue))
    }
    #expect(world.reuses == 0)
  }
}
