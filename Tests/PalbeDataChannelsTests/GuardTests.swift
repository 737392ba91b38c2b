import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeDataChannels

extension DataChannelSuites {
  @Suite("What is kept out before usrsctp sees it")
  struct GuardTests {
    private func refusal(_ gate: inout SCTPGuard, _ chunks: [UInt8]) -> SCTPGuard.Refusal? {
      let bytes = packet(tag: 1, chunks)
      do throws(SCTPGuard.Refusal) {
        try gate.check(bytes.span)
        return nil
      } catch { return error }
    }

    private func gate(_ role: SCTPRole, connected: Bool = true) -> SCTPGuard {
      var gate = SCTPGuard(role: role, configuration: SCTPConfiguration())
      if connected { gate.connected() }
      return gate
    }

    private static let initiation: [UInt8] = [0, 0, 0, 1, 0, 2, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1]

    @Test("RFC 9260 §5.2: who may begin, and when")
    func beginnings() {
      let initiation = chunk(1, Self.initiation)
      let answer = chunk(2, Self.initiation + [0, 7, 0, 8, 1, 2, 3, 4])
      for role in [SCTPRole.active, .passive] {
        var fresh = gate(role, connected: false)
        var old = gate(role)
        #expect(refusal(&fresh, initiation) == (role == .passive ? nil : .chunkNotWanted(1)))
        #expect(refusal(&old, initiation) == .chunkNotWanted(1))
        #expect(refusal(&fresh, answer) == (role == .active ? nil : .chunkNotWanted(2)))
        #expect(refusal(&old, answer) == .chunkNotWanted(2))
      }
      var passive = gate(.passive, connected: false)
      #expect(refusal(&passive, chunk(0, [UInt8](repeating: 0, count: 13))) == .chunkNotWanted(0))
      #expect(refusal(&passive, chunk(10, [1, 2]) + chunk(0, [UInt8](repeating: 0, count: 13))) == nil)
      #expect(refusal(&passive, chunk(10, [1, 3])) == nil)
      passive.connected()
      #expect(refusal(&passive, chunk(10, [1, 2])) == .chunkNotWanted(10))
      #expect(refusal(&passive, chunk(10, [1, 3])) == nil)
      #expect(refusal(&passive, chunk(7, [0, 0, 0, 1])) == nil)
      #expect(refusal(&passive, chunk(10, [1, 3])) == .chunkNotWanted(10))
    }

    @Test("An INIT with zeros, with company, with addresses or NAT support")
    func initiations() {
      for index in [3, 5, 9, 11] {
        var gate = gate(.passive, connected: false)
        var value = Self.initiation
        value[index] = 0
        #expect(refusal(&gate, chunk(1, value)) == .malformed)
      }
      var fresh = gate(.passive, connected: false)
      #expect(refusal(&fresh, chunk(1, Self.initiation) + chunk(1, Self.initiation)) == .malformed)
      #expect(refusal(&fresh, chunk(11, []) + chunk(1, Self.initiation)) == .chunkNotWanted(11))
      for type: UInt8 in [5, 6, 11] {
        let value = Self.initiation + [0, type, 0, 8, 10, 0, 0, 1]
        #expect(refusal(&fresh, chunk(1, value)) == .parameterNotWanted(UInt16(type)))
      }
      #expect(refusal(&fresh, chunk(1, Self.initiation + [0xc0, 8, 0, 4])) == .parameterNotWanted(0xc008))
      #expect(refusal(&fresh, chunk(1, Self.initiation + [0x80, 8, 0, 5, 0x82, 0, 0, 0])) == nil)
      #expect(refusal(&fresh, chunk(1, Self.initiation + [0x80, 8, 0, 3])) == .malformed)
      #expect(refusal(&fresh, chunk(1, Self.initiation + [0x80, 8, 0, 9, 0, 0, 0, 0])) == .malformed)
    }

    @Test(
      "Extensions that were not negotiated: ECN, AUTH, NR-SACK, I-DATA, ASCONF, packet drop",
      arguments: [12, 13, 15, 16, 0x40, 0x80, 0x81, 0xc1, 0xc2, 0x3f, 0xff] as [UInt8])
    func extensions(type: UInt8) {
      var gate = gate(.passive)
      #expect(refusal(&gate, chunk(type, [UInt8](repeating: 0, count: 16))) == .chunkNotWanted(type))
    }

    @Test("Lengths that do not fit, control behind data, foreign ports")
    func shapes() {
      var gate = gate(.passive)
      let data = chunk(0, [UInt8](repeating: 0, count: 13))
      #expect(refusal(&gate, data + data) == nil)
      #expect(refusal(&gate, data + chunk(4, [0, 1, 0, 4])) == .malformed)
      #expect(refusal(&gate, chunk(0, [UInt8](repeating: 0, count: 12))) == .malformed)
      #expect(refusal(&gate, [3, 0, 0, 3]) == .malformed)
      #expect(refusal(&gate, [4, 0, 0, 12, 0, 0, 0, 0]) == .malformed)
      #expect(refusal(&gate, chunk(3, [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0])) == .malformed)
      #expect(refusal(&gate, chunk(3, [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3])) == nil)
      #expect(refusal(&gate, chunk(0xc0, [0, 0, 0, 1, 0, 1])) == .malformed)
      #expect(refusal(&gate, chunk(0x82, [0, 13, 0, 12, 0, 0, 0, 1, 0, 0, 0, 1])) == .malformed)
      #expect(refusal(&gate, chunk(0x82, [0, 15, 0, 8, 0, 0, 0, 1])) == .parameterNotWanted(15))
      #expect(refusal(&gate, chunk(0x82, [])) == .malformed)
      #expect(refusal(&gate, chunk(6, [0, 12, 0, 3])) == .malformed)
      #expect(refusal(&gate, chunk(6, [0, 12, 0, 6, 65, 66])) == nil)
      #expect(refusal(&gate, [UInt8](repeating: 0, count: 3)) == .malformed)
      for index in [1, 3] {
        var bytes = packet(tag: 1, data)
        bytes[index] ^= 1
        var caught: SCTPGuard.Refusal?
        do throws(SCTPGuard.Refusal) { try gate.check(bytes.span) } catch { caught = error }
        #expect(caught == .wrongPort)
      }
      #expect(refusal(&gate, (0..<129).flatMap { _ in chunk(0x84, []) }) == .malformed)
    }

    @Test("Every prefix of a good datagram is refused or good, and nothing traps")
    func prefixes() {
      let whole = packet(
        tag: 1,
        chunk(3, [0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 3])
          + chunk(0, [UInt8](repeating: 0, count: 33)))
      var gate = gate(.active)
      for count in 0..<whole.count { try? gate.check(whole.span.extracting(0..<count)) }
    }
  }

  @Suite("RFC 8832 §5: DATA_CHANNEL_OPEN and DATA_CHANNEL_ACK")
  struct ControlTests {
    private static let golden: [UInt8] = [
      3, 0x81, 1, 0, 0, 0, 0, 0, 0, 6, 0, 1, 0x5f, 0x6c, 0x6f, 0x73, 0x73, 0x79, 0x70,
    ]
    private static let channel = DataChannel(
      id: 3, label: "_lossy", subprotocol: "p", isOrdered: false, reliability: .retransmits(0), priority: 256)

    private func decode(_ bytes: [UInt8]) -> DataChannelControl? {
      try? DataChannelControl(bytes.span, id: 3)
    }

    @Test("Golden bytes of an unordered channel without retransmission, and of the acknowledgement")
    func goldenBytes() {
      #expect(DataChannelControl.open(Self.channel).encoded == Self.golden)
      #expect(decode(Self.golden) == .open(Self.channel))
      #expect(DataChannelControl.acknowledgement.encoded == [2])
      #expect(decode([2]) == .acknowledgement)
    }

    @Test("Every type goes there and back", arguments: [true, false])
    func roundTrip(isOrdered: Bool) {
      for reliability in [ChannelReliability.reliable, .retransmits(7), .lifetime(milliseconds: 3_000)] {
        let channel = DataChannel(
          id: 3, label: "é", subprotocol: "", isOrdered: isOrdered, reliability: reliability, priority: 1_024)
        #expect(decode(DataChannelControl.open(channel).encoded) == .open(channel))
      }
    }

    @Test("Every prefix, a further byte, unknown types and long names are refused")
    func refused() {
      for count in 0..<Self.golden.count { #expect(decode(Array(Self.golden[..<count])) == nil) }
      #expect(decode(Self.golden + [0]) == nil)
      for type: UInt8 in [0, 1, 4, 255] { #expect(decode([type] + Self.golden.dropFirst()) == nil) }
      for type: UInt8 in [3, 0x83, 0x7f, 0xff] {
        var bytes = Self.golden
        bytes[1] = type
        #expect(decode(bytes) == nil)
      }
      #expect(decode([3, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0] + [UInt8](repeating: 65, count: 1_025)) == nil)
    }
  }
}
