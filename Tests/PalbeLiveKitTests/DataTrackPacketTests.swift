import PalbeLiveKit
import PalbeUnits
import PalbeWire
import Testing

/// A packet by hand: the header of handle 0x0102, extensions in order, zeros up to a word, a payload.
private func packet(_ extensions: [(id: UInt8, bytes: [UInt8])] = [], first: UInt8 = 0x18) -> [UInt8] {
  var bytes: [UInt8] = [first, 0, 1, 2, 0, 7, 0, 9, 0, 0, 1, 0]
  if !extensions.isEmpty {
    bytes[0] |= 0x04
    var block = extensions.flatMap { [$0.id, UInt8($0.bytes.count)] + $0.bytes }
    while (2 + block.count) % 4 != 0 { block.append(0) }
    bytes += [0, UInt8((2 + block.count) / 4 - 1)] + block
  }
  return bytes + [0xaa, 0xbb, 0xcc]
}

private let e2ee: (id: UInt8, bytes: [UInt8]) = (1, [3] + [UInt8](repeating: 0x5a, count: 12))
private let timestamp: (id: UInt8, bytes: [UInt8]) = (2, [0, 0, 0, 0, 0, 0, 0x12, 0x34])
private let sender: (id: UInt8, bytes: [UInt8]) = (255, Array("PA_forged000000".utf8))

struct DataTrackPacketTests {
  @Test("1.5: handle and extensions are read; forwarded it is the same but for the handle")
  func forward() throws {
    for bytes in [packet(), packet([timestamp]), packet([e2ee, timestamp])] {
      let read = try LiveKit.DataTrackPacket(bytes.span)
      #expect(read.handle == 0x0102 && !read.namesSender)
      #expect(read.isEncrypted == (bytes.count > 30))
      var expected = bytes
      expected[2] = 0xab
      expected[3] = 0xcd
      #expect(read.forwarded(bytes, as: 0xabcd) == expected)
    }
  }

  @Test("1.5: the golden packet of LiveKit's description: 44 bytes with E2EE and a timestamp")
  func golden() throws {
    let bytes = packet([e2ee, timestamp]) + [0xdd]
    #expect(bytes.count == 44)
    #expect(Array(bytes[12..<14]) == [0, 6])
    #expect(try LiveKit.DataTrackPacket(bytes.span).isEncrypted)
  }

  @Test("1.5: PARTICIPANT_SID of a client's own is left out; what stands beside it stays")
  func forgedSender() throws {
    let alone = packet([sender])
    #expect(try LiveKit.DataTrackPacket(alone.span).namesSender)
    #expect(try LiveKit.DataTrackPacket(alone.span).forwarded(alone, as: 0x0102) == packet())
    for block in [[sender, e2ee, timestamp], [e2ee, sender, timestamp], [e2ee, timestamp, sender]] {
      let bytes = packet(block)
      let read = try LiveKit.DataTrackPacket(bytes.span)
      #expect(read.namesSender && read.isEncrypted)
      #expect(read.forwarded(bytes, as: 0x0102) == packet([e2ee, timestamp]))
    }
    let twice = packet([sender, timestamp, sender])
    #expect(try LiveKit.DataTrackPacket(twice.span).forwarded(twice, as: 0x0102) == packet([timestamp]))
  }

  @Test("padding before, between and behind extensions; unknown and empty ones pass")
  func padding() throws {
    var bytes = packet()
    bytes[0] |= 0x04
    bytes.insert(contentsOf: [0, 2, 0, 0, 77, 0, 0, 2, 1, 9, 0, 0], at: 12)
    #expect(try LiveKit.DataTrackPacket(bytes.span).forwarded(bytes, as: 0x0102) == bytes)
  }

  @Test("every prefix of a packet, the handle 0 and another version are refused, or read within bounds")
  func truncation() throws {
    let bytes = packet([e2ee, sender, timestamp])
    let header = bytes.count - 3
    for count in 0..<header {
      let prefix = Array(bytes[..<count])
      #expect(throws: WireError.self) { try LiveKit.DataTrackPacket(prefix.span) }
    }
    _ = try LiveKit.DataTrackPacket(Array(bytes[..<header]).span)
    for (at, value) in [(0, UInt8(0x20)), (0, 0xe4)] {
      var other = bytes
      other[at] = value
      #expect(throws: WireError.self) { try LiveKit.DataTrackPacket(other.span) }
    }
    var zero = bytes
    zero[2] = 0
    zero[3] = 0
    #expect(throws: WireError.invalid(field: "handle", value: 0)) { try LiveKit.DataTrackPacket(zero.span) }
    // An extension that runs out of its block.
    var long = packet([timestamp])
    long[15] = 200
    #expect(throws: WireError.self) { try LiveKit.DataTrackPacket(long.span) }
  }

  @Test("garbage is refused or forwards to something that reads", arguments: 1...5)
  func garbage(seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    for _ in 0..<2_000 {
      var bytes = packet([e2ee, sender, timestamp])
      for _ in 0..<4 {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      guard let read = try? LiveKit.DataTrackPacket(bytes.span) else { continue }
      let forwarded = read.forwarded(bytes, as: 9)
      let again = try LiveKit.DataTrackPacket(forwarded.span)
      #expect(again.handle == 9 && !again.namesSender && again.isEncrypted == read.isEncrypted)
    }
  }
}
