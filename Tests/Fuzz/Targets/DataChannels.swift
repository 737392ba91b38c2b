import PalbeDataChannels
import PalbeUnits

extension FuzzTarget {
  /// What parses must encode and parse again to the same message.
  static let dataChannelControl = FuzzTarget(name: "data-channel-control") { bytes in
    guard let message = try? DataChannelControl(bytes.span, id: 3) else { return }
    // Repairing a name that is not UTF-8 can make it longer than any that is read.
    if case .open(let channel) = message,
      max(channel.label.utf8.count, channel.subprotocol.utf8.count) > DataChannelControl.nameLimit
    {
      return
    }
    let encoded = message.encoded
    precondition((try? DataChannelControl(encoded.span, id: 3)) == message, "does not round-trip")
  }

  /// Bytes 0: who gets what follows. 0 a passive association, 1 an active one, 2 and 3 the same once
  /// connected. Then datagrams behind a byte of length in words: chunks alone; ports, the tag and the
  /// checksum are made right. A length of 0 lets half a second pass. Once connected, a DATA chunk's number
  /// counts from the one that is expected.
  static let sctpDatagram = FuzzTarget(name: "sctp-datagram") { bytes in
    guard let mode = bytes.first, let library = try? SCTPLibrary() else { return }
    let pair = SCTPFuzzPair(library)
    if mode & 2 == 2 { pair.connect() }
    pair.attack(isActive: mode & 1 == 1, isConnected: mode & 2 == 2, with: bytes.dropFirst())
    pair.pass(.seconds(2))
    pair.active = nil
    pair.passive = nil
    precondition(library.associationCount == 0, "an association is left")
  }
}

/// Two associations that hear each other.
private final class SCTPFuzzPair {
  let library: SCTPLibrary
  var active: SCTPAssociation?
  var passive: SCTPAssociation?
  var now = Instant.zero
  /// What datagrams to each side carry.
  var activeTag: UInt32 = 0
  var passiveTag: UInt32 = 0
  /// The number of the last DATA chunk of each side.
  var activeNumber: UInt32 = 0
  var passiveNumber: UInt32 = 0
  private var buffer = [UInt8](repeating: 0, count: 1_500)

  init(_ library: SCTPLibrary) {
    self.library = library
    active = try? library.makeAssociation(role: .active, at: now)
    passive = try? library.makeAssociation(role: .passive, at: now)
  }

  func connect() {
    guard let active, let passive else { return }
    _ = try? active.openChannel(DataChannel(label: "x"), at: now)
    _ = try? passive.openChannel(DataChannel(label: "y", isOrdered: false), at: now)
    for _ in 0..<40 {
      while active.pollEvent() != nil {}
      while passive.pollEvent() != nil {}
      while let bytes = next(active) {
        note(bytes, tag: &passiveTag, number: &activeNumber)
        passive.handle(bytes.span, at: now)
      }
      while let bytes = next(passive) {
        note(bytes, tag: &activeTag, number: &passiveNumber)
        active.handle(bytes.span, at: now)
      }
      now += .milliseconds(10)
      library.handleTimeout(at: now)
    }
    precondition(active.state == .connected && passive.state == .connected, "not connected")
  }

  /// Feeds datagrams to one side.
  func attack(isActive: Bool, isConnected: Bool, with bytes: ArraySlice<UInt8>) {
    guard let victim = isActive ? active : passive else { return }
    let tag = isActive ? activeTag : passiveTag
    let base = isActive ? passiveNumber : activeNumber
    var rest = bytes
    while let words = rest.popFirst() {
      guard words > 0 else {
        pass(.milliseconds(500))
        continue
      }
      let chunks = Array(rest.prefix(4 * Int(words)))
      rest = rest.dropFirst(chunks.count)
      victim.handle(Self.packet(chunks, tag: tag, base: isConnected ? base : 0).span, at: now)
      while victim.pollEvent() != nil {}
      dropDatagrams(of: victim)
    }
  }

  /// Time passes, and nobody hears anybody.
  func pass(_ time: TimeDelta) {
    let end = now + time
    while now < end {
      now += .milliseconds(100)
      library.handleTimeout(at: now)
      for association in [active, passive] {
        guard let association else { continue }
        while association.pollEvent() != nil {}
        dropDatagrams(of: association)
      }
    }
  }

  func dropDatagrams(of association: SCTPAssociation) { while next(association) != nil {} }

  private func next(_ association: SCTPAssociation) -> [UInt8]? {
    var span = buffer.mutableSpan
    guard let count = association.pollTransmit(into: &span) else { return nil }
    return Array(buffer[..<count])
  }

  private func note(_ bytes: [UInt8], tag: inout UInt32, number: inout UInt32) {
    tag = bytes[4..<8].reduce(0) { $0 << 8 | UInt32($1) }
    var offset = 12
    while offset + 16 <= bytes.count {
      if bytes[offset] == 0 { number = bytes[offset + 4..<offset + 8].reduce(0) { $0 << 8 | UInt32($1) } }
      offset += max(4, (Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])) + 3 & ~3)
    }
  }

  /// Ports, tag, checksum. The numbers of DATA and FORWARD TSN chunks, and what a SACK acknowledges, count
  /// from `base`.
  static func packet(_ chunks: [UInt8], tag: UInt32, base: UInt32) -> [UInt8] {
    var packet: [UInt8] = [0x13, 0x88, 0x13, 0x88]
    for shift in [24, 16, 8, 0] as [UInt32] { packet.append(UInt8(truncatingIfNeeded: tag >> shift)) }
    packet += [0, 0, 0, 0] + chunks
    var offset = 12
    while base != 0, offset + 8 <= packet.count {
      if [0, 0xc0].contains(packet[offset]) {
        let number = base &+ packet[offset + 4..<offset + 8].reduce(0) { $0 << 8 | UInt32($1) }
        for index in 0..<4 {
          packet[offset + 4 + index] = UInt8(truncatingIfNeeded: number >> (24 - 8 * UInt32(index)))
        }
      }
      offset += max(4, (Int(packet[offset + 2]) << 8 | Int(packet[offset + 3])) + 3 & ~3)
    }
    var crc: UInt32 = 0xffff_ffff
    for byte in packet { crc = crc >> 8 ^ table[Int(UInt8(truncatingIfNeeded: crc) ^ byte)] }
    crc = ~crc
    for index in 0..<4 { packet[8 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
    return packet
  }

  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0x82f6_3b78 : value >> 1 }
  }
}
