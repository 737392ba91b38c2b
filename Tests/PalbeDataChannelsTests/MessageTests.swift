import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("RFC 8831 §6: messages")
  struct MessageTests {
    /// A message whose first four bytes are its number.
    private func message(_ number: Int, count: Int) -> [UInt8] {
      (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
        + (4..<max(count, 4)).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) }
    }

    private func number(_ bytes: [UInt8]) -> Int { bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) } }

    /// Sends messages as fast as the buffer takes them.
    private func sendAll(
      _ world: DataChannelWorld, on id: UInt16, count: Int, size: (Int) -> Int, within limit: TimeDelta
    ) throws -> Bool {
      var sent = 0
      let end = world.clock.now + limit
      var received = 0
      while world.clock.now < end {
        while sent < count {
          let bytes = message(sent, count: size(sent))
          if thrown({ try world.active?.send(bytes.span, kind: .binary, channel: id, at: world.clock.now) })
            != nil
          {
            break
          }
          sent += 1
        }
        world.run(for: .milliseconds(20))
        received = world.passiveEvents.count { if case .message = $0 { true } else { false } }
        if sent == count, received == count { return true }
      }
      return false
    }

    @Test(
      "Reliable and ordered: 1,000 messages through 10 % loss, duplication and reordering", arguments: 1...3)
    func reliable(seed: UInt64) throws {
      let link = Link(
        delay: .milliseconds(20), jitter: .milliseconds(5), loss: 0.1, duplication: 0.05, reordering: 0.1)
      let world = try DataChannelWorld(seed: seed, link: link)
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "_reliable"))
      #expect(try sendAll(world, on: id, count: 1_000, size: { 4 + $0 * 37 % 3_000 }, within: .seconds(600)))
      let messages = world.takePassiveMessages()
      #expect(messages.map { number($0.bytes) } == Array(0..<1_000))
      #expect(
        messages.enumerated().allSatisfy {
          $0.element.bytes == message($0.offset, count: 4 + $0.offset * 37 % 3_000)
        })
      #expect(world.largestDatagram <= 1_136)
    }

    @Test(
      "livekit-protocol.md 1.3 _lossy: unordered with no retransmission loses some, repeats none, damages none",
      arguments: 1...4)
    func lossy(seed: UInt64) throws {
      let link = Link(
        delay: .milliseconds(20), jitter: .milliseconds(10), loss: 0.1, duplication: 0.2, reordering: 0.2)
      let world = try DataChannelWorld(seed: seed, link: link)
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "_lossy", isOrdered: false, reliability: .retransmits(0)))
      // From one chunk to four: a fragment that is lost takes its message with it.
      for index in 0..<400 {
        try? world.send(message(index, count: 200 + index % 4 * 1_000), on: id)
        world.run(for: .milliseconds(20))
      }
      world.run(for: .seconds(120)) { $0.active?.bufferedAmount == 0 }
      world.run(for: .seconds(1))
      let messages = world.takePassiveMessages()
      let numbers = messages.map { number($0.bytes) }
      #expect(Set(numbers).count == numbers.count)
      #expect(numbers.count < 400)
      #expect(numbers.count > 150)
      #expect(
        messages.allSatisfy {
          $0.bytes == message(number($0.bytes), count: 200 + number($0.bytes) % 4 * 1_000)
        })
      // And the association is well.
      #expect(world.areConnected)
      let reliable = try world.open(DataChannel(label: "_reliable"))
      try world.send([1], on: reliable)
      world.run(for: .seconds(10))
      #expect(world.takePassiveMessages() == [SCTPMessage(channel: reliable, kind: .binary, bytes: [1])])
    }

    @Test("livekit-protocol.md 1.4: 64,000 bytes pass, also with loss; one more is refused here")
    func large() throws {
      let world = try DataChannelWorld(link: Link(loss: 0.05))
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      #expect(try sendAll(world, on: id, count: 15, size: { _ in 64_000 }, within: .seconds(600)))
      let messages = world.takePassiveMessages()
      #expect(messages.map(\.bytes) == (0..<15).map { message($0, count: 64_000) })
      let tooLong = [UInt8](repeating: 0, count: 64_001)
      #expect(
        thrown { try world.active?.send(tooLong.span, kind: .binary, channel: id, at: world.clock.now) }
          == .messageTooLong(count: 64_001, limit: 64_000))
    }

    @Test("RFC 8831 §6.6: empty messages, text and binary")
    func empty() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      try world.send([], on: id, kind: .text)
      try world.send([], on: id, kind: .binary)
      try world.send([0], on: id, kind: .text)
      world.run(for: .seconds(1))
      #expect(
        world.takePassiveMessages() == [
          SCTPMessage(channel: id, kind: .text, bytes: []),
          SCTPMessage(channel: id, kind: .binary, bytes: []),
          SCTPMessage(channel: id, kind: .text, bytes: [0]),
        ])
    }

    @Test("A message above the receiver's limit is dropped and told; the next one arrives")
    func aboveLimit() throws {
      let world = try DataChannelWorld(passiveConfiguration: SCTPConfiguration(maximumMessageSize: 10_000))
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      world.passiveEvents.removeAll()
      try world.send([UInt8](repeating: 1, count: 10_001), on: id)
      try world.send([UInt8](repeating: 2, count: 64_000), on: id)
      try world.send([UInt8](repeating: 3, count: 10_000), on: id)
      world.run(for: .seconds(5))
      #expect(
        world.passiveEvents == [
          .dropped(channel: id, .messageTooLong(count: 10_001)),
          .dropped(channel: id, .messageTooLong(count: 64_000)),
          .message(SCTPMessage(channel: id, kind: .binary, bytes: [UInt8](repeating: 3, count: 10_000))),
        ])
    }

    @Test(
      "A message above half the window ends the association before it is all there", arguments: [true, false])
    func aboveWindow(isOrdered: Bool) throws {
      let world = try DataChannelWorld(
        configuration: SCTPConfiguration(maximumMessageSize: 400_000),
        passiveConfiguration: SCTPConfiguration())
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x", isOrdered: isOrdered))
      try world.send([UInt8](repeating: 1, count: 400_000), on: id)
      world.run(for: .seconds(10))
      #expect(world.passive?.state == .aborted(.messageTooLarge(stream: id)))
      #expect(world.active?.state == .aborted(.peer(cause: 12)))
      #expect(world.takePassiveMessages().isEmpty)
    }

    @Test("Back-pressure: a full buffer refuses, nothing of the message is taken, and room is told")
    func backPressure() throws {
      let world = try DataChannelWorld(
        configuration: SCTPConfiguration(sendBufferSize: 200_000, lowThreshold: 50_000))
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      world.network.setLink(
        .cut, between: DataChannelWorld.activeAddress, and: DataChannelWorld.passiveAddress)
      var sent = 0
      var refusal: SCTPError?
      while refusal == nil {
        let bytes = message(sent, count: 30_000)
        refusal = thrown {
          try world.active?.send(bytes.span, kind: .binary, channel: id, at: world.clock.now)
        }
        if refusal == nil { sent += 1 }
        try #require(sent < 100)
      }
      guard case .bufferFull(let buffered) = refusal else {
        Issue.record("\(String(describing: refusal))")
        return
      }
      #expect(sent == 6)
      #expect((180_000...210_000).contains(buffered))
      #expect(world.active?.bufferedAmount == buffered)
      #expect(!world.activeEvents.contains { if case .bufferedAmountLow = $0 { true } else { false } })
      world.network.setLink(
        Link(), between: DataChannelWorld.activeAddress, and: DataChannelWorld.passiveAddress)
      world.run(for: .seconds(20)) { $0.active?.bufferedAmount == 0 }
      #expect(
        world.activeEvents.count { if case .bufferedAmountLow(0...50_000) = $0 { true } else { false } } == 1)
      #expect(world.takePassiveMessages().map { number($0.bytes) } == Array(0..<sent))
    }

    @Test("A reader that sleeps: what waits is bounded, the sender is slowed down, nothing is lost")
    func sleepingReader() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      world.passiveSleeps = true
      var sent = 0
      for _ in 0..<200 {
        while sent < 45 {
          let bytes = message(sent, count: 60_000)
          if thrown({ try world.active?.send(bytes.span, kind: .binary, channel: id, at: world.clock.now) })
            != nil
          {
            break
          }
          sent += 1
        }
        world.run(for: .milliseconds(10))
      }
      #expect(sent < 40)
      let refused = try #require(world.passive).refusedDatagramCount
      #expect(refused > 0)
      world.passiveSleeps = false
      while sent < 45 {
        let bytes = message(sent, count: 60_000)
        if thrown({ try world.active?.send(bytes.span, kind: .binary, channel: id, at: world.clock.now) })
          == nil
        {
          sent += 1
        }
        world.run(for: .milliseconds(20))
      }
      world.run(for: .seconds(60)) { $0.active?.bufferedAmount == 0 }
      #expect(world.takePassiveMessages().map { number($0.bytes) } == Array(0..<45))
    }

    @Test("A cut of 10 s: everything arrives afterwards")
    func cut() throws {
      let world = try DataChannelWorld()
      #expect(world.connect())
      let id = try world.open(DataChannel(label: "x"))
      world.network.setLink(
        .cut, between: DataChannelWorld.activeAddress, and: DataChannelWorld.passiveAddress)
      for index in 0..<20 { try world.send(message(index, count: 2_000), on: id) }
      world.run(for: .seconds(10))
      world.network.setLink(
        Link(), between: DataChannelWorld.activeAddress, and: DataChannelWorld.passiveAddress)
      world.run(for: .seconds(7))
      #expect(world.takePassiveMessages().map { number($0.bytes) } == Array(0..<20))
    }
  }
}
