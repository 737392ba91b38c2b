import CPalbeProcess
import PalbeDataChannels
import PalbeNetSim
import PalbeTestKit
import PalbeUnits
import Testing

/// All suites of this target: usrsctp is one for the process, so they run one after another.
@Suite("Data channels", .serialized)
enum DataChannelSuites {}

/// Two associations over a simulated network in virtual time.
final class DataChannelWorld {
  static let activeAddress = SocketAddress(ipv4: 10, 0, 0, 2, port: 40_000)
  static let passiveAddress = SocketAddress(ipv4: 192, 0, 2, 10, port: 7_882)

  var clock = VirtualClock()
  var network: NetworkSimulator
  let library: SCTPLibrary
  var active: SCTPAssociation?
  var passive: SCTPAssociation?
  var activeEvents: [SCTPEvent] = []
  var passiveEvents: [SCTPEvent] = []
  /// Every datagram, and who sent it.
  var datagrams: [(fromActive: Bool, bytes: [UInt8])] = []
  /// Keeps datagrams for tests that need them.
  var isRecording = false
  var largestDatagram = 0
  /// While true, events are left where they are.
  var passiveSleeps = false
  private var buffer = [UInt8](repeating: 0, count: 1_500)
  /// Microseconds since 1970 at the clock's zero. Later in each world: usrsctp is the same.
  private let epoch: Int64
  private nonisolated(unsafe) static var lastEpoch: Int64 = 1_700_000_000_000_000

  deinit { palbe_wall_clock_release() }

  private func advance(to now: Instant) {
    clock.advance(to: now)
    palbe_wall_clock_set(epoch + now.nanoseconds / 1_000)
  }

  init(
    seed: UInt64 = 1, link: Link = Link(), configuration: SCTPConfiguration = SCTPConfiguration(),
    passiveConfiguration: SCTPConfiguration? = nil
  ) throws {
    network = NetworkSimulator(seed: seed, link: link)
    Self.lastEpoch += 1_000_000_000_000
    epoch = Self.lastEpoch
    palbe_wall_clock_set(epoch + clock.now.nanoseconds / 1_000)
    library = try SCTPLibrary()
    active = try library.makeAssociation(role: .active, configuration: configuration, at: clock.now)
    passive = try library.makeAssociation(
      role: .passive, configuration: passiveConfiguration ?? configuration, at: clock.now)
  }

  var areConnected: Bool { active?.state == .connected && passive?.state == .connected }

  @discardableResult
  func connect(within limit: TimeDelta = .seconds(30)) -> Bool {
    run(for: limit) { $0.areConnected }
    return areConnected
  }

  /// Takes all events and sends all datagrams.
  func drain() {
    while let event = active?.pollEvent() { activeEvents.append(event) }
    if !passiveSleeps { while let event = passive?.pollEvent() { passiveEvents.append(event) } }
    for fromActive in [true, false] {
      while let bytes = nextDatagram(of: fromActive ? active : passive) {
        largestDatagram = max(largestDatagram, bytes.count)
        if isRecording { datagrams.append((fromActive, bytes)) }
        network.send(
          bytes, from: fromActive ? Self.activeAddress : Self.passiveAddress,
          to: fromActive ? Self.passiveAddress : Self.activeAddress, at: clock.now)
      }
    }
  }

  func nextDatagram(of association: SCTPAssociation?) -> [UInt8]? {
    var span = buffer.mutableSpan
    guard let count = association?.pollTransmit(into: &span) else { return nil }
    return Array(buffer[..<count])
  }

  func run(for limit: TimeDelta, until condition: (DataChannelWorld) -> Bool = { _ in false }) {
    let end = clock.now + limit
    while true {
      drain()
      if condition(self) { return }
      var next = end
      if let arrival = network.nextArrival { next = min(next, arrival) }
      if let deadline = library.nextDeadline { next = min(next, max(deadline, clock.now)) }
      advance(to: next)
      while let datagram = network.poll(at: clock.now) {
        let receiver = datagram.destination == Self.activeAddress ? active : passive
        receiver?.handle(datagram.bytes.span, at: clock.now)
        drain()
        if condition(self) { return }
      }
      if let deadline = library.nextDeadline, deadline <= clock.now { library.handleTimeout(at: clock.now) }
      if next >= end {
        drain()
        return
      }
    }
  }

  /// Opens a channel on the active side and waits until both have it.
  func open(_ channel: DataChannel) throws -> UInt16 {
    let id = try #require(active).openChannel(channel, at: clock.now)
    run(for: .seconds(30)) { world in
      world.passive?.channels.contains { $0.id == id } == true
        && world.activeEvents.contains {
          if case .channelOpened(let opened, _) = $0 { opened.id == id } else { false }
        }
    }
    return id
  }

  func send(_ bytes: [UInt8], on channel: UInt16, kind: MessageKind = .binary) throws {
    try #require(active).send(bytes.span, kind: kind, channel: channel, at: clock.now)
  }

  /// What the passive side got, and takes it away.
  func takePassiveMessages() -> [SCTPMessage] {
    drain()
    let messages = passiveEvents.compactMap { if case .message(let message) = $0 { message } else { nil } }
    passiveEvents.removeAll()
    return messages
  }
}

/// What a throwing call with a typed error throws.
func thrown(_ body: () throws -> Void) -> SCTPError? {
  do {
    try body()
    return nil
  } catch { return error as? SCTPError }
}

/// CRC32c as SCTP has it, for datagrams made by hand (RFC 9260 appendix A).
func seal(_ packet: [UInt8]) -> [UInt8] {
  var packet = packet
  for index in 8..<12 { packet[index] = 0 }
  var crc: UInt32 = 0xffff_ffff
  for byte in packet {
    crc ^= UInt32(byte)
    for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82f6_3b78 : crc >> 1 }
  }
  crc = ~crc
  for index in 0..<4 { packet[8 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
  return packet
}

/// A datagram of one association: ports, tag, checksum, chunks.
func packet(tag: UInt32, _ chunks: [UInt8]) -> [UInt8] {
  let bytes: [UInt8] =
    [0x13, 0x88, 0x13, 0x88] + (0..<4).map { UInt8(truncatingIfNeeded: tag >> (24 - 8 * $0)) }
  return seal(bytes + [0, 0, 0, 0] + chunks)
}

/// A chunk with its length and padding.
func chunk(_ type: UInt8, flags: UInt8 = 0, _ value: [UInt8]) -> [UInt8] {
  let length = value.count + 4
  let padding = [UInt8](repeating: 0, count: (4 - length & 3) & 3)
  return [type, flags, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)] + value
    + padding
}
