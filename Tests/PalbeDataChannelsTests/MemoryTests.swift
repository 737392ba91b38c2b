import CPalbeProcess
import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

extension DataChannelSuites {
  @Suite("Memory")
  struct MemoryTests {
    /// Bytes that are allocated now; 0 under a sanitizer.
    private func liveBytes() -> Int { Int(palbe_live_bytes()) }

    private func oneCall(_ index: Int) throws {
      let world = try DataChannelWorld(seed: UInt64(index), link: Link(loss: 0.02))
      world.connect()
      let id = try world.open(DataChannel(label: "x", isOrdered: index.isMultiple(of: 2)))
      try world.send([UInt8](repeating: 7, count: 20_000), on: id)
      world.run(for: .seconds(1))
      switch index % 3 {
      case 0:
        world.active?.close(at: world.clock.now)
        world.run(for: .seconds(2))
      case 1: world.active?.abort()
      default: world.active = nil
      }
      world.run(for: .milliseconds(50))
    }

    @Test("S4 churn: 600 associations that come, talk and go in every way leave no bytes behind")
    func churn() throws {
      for index in 0..<100 { try oneCall(index) }
      let before = liveBytes()
      for index in 0..<300 { try oneCall(index) }
      #expect(liveBytes() - before < 40_000)
    }

    @Test("S4: an idle association with three channels costs less than 60 kB")
    func idle() throws {
      let library = try SCTPLibrary()
      var now = Instant.zero
      let channels = (UInt16(100)...102).map { DataChannel(id: $0, label: "\($0)") }
      var pairs: [(SCTPAssociation, SCTPAssociation)] = []
      var buffer = [UInt8](repeating: 0, count: 1_500)
      func pump(_ from: SCTPAssociation, _ to: SCTPAssociation) {
        while from.pollEvent() != nil {}
        while true {
          var span = buffer.mutableSpan
          guard let count = from.pollTransmit(into: &span) else { return }
          to.handle(buffer.span.extracting(0..<count), at: now)
        }
      }
      let before = liveBytes()
      for _ in 0..<200 {
        let pair = (
          try library.makeAssociation(role: .active, at: now),
          try library.makeAssociation(role: .passive, at: now)
        )
        for channel in channels {
          try pair.0.addNegotiatedChannel(channel)
          try pair.1.addNegotiatedChannel(channel)
        }
        pairs.append(pair)
      }
      for _ in 0..<60 {
        for (active, passive) in pairs {
          pump(active, passive)
          pump(passive, active)
        }
        now += .milliseconds(10)
        library.handleTimeout(at: now)
      }
      #expect(pairs.allSatisfy { $0.0.state == .connected && $0.1.state == .connected })
      let each = (liveBytes() - before) / 400
      #expect(each < 60_000, "\(each) bytes")
    }
  }
}
