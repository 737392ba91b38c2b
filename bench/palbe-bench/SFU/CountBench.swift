import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeUnits

/// Forwarding in one thread, without a network in between: the SFU's core and the bare relay with packets of the same lengths
/// to as many receivers. For a tool that counts instructions (scripts/sfu-instructions): `countSFU` and `countRelay` are all that
/// is to be counted. Both end where a batch would go to the kernel.
enum CountBench {
  /// Frames of eight packets that come at once.
  private static let framesAtOnce = 6

  /// Packets that left the SFU and the relay in `rounds` rounds.
  static func run(subscribers: Int, rounds: Int) throws -> (sfu: Int, relay: Int) {
    let room = try CountedRoom(subscribers: subscribers)
    // The rings of history reach their length, and the tables theirs.
    let sfu = packets(24, rounds, room.load) { isCounted in isCounted ? countSFU(room) : room.forward() }
    let relay = try CountedRelay(subscribers: subscribers, lengths: room.lengths)
    return (sfu, packets(4, rounds, relay.load) { $0 ? countRelay(relay) : relay.forward() })
  }

  private static func packets(
    _ warmUp: Int, _ rounds: Int, _ load: (Int) -> Void, _ forward: (_ isCounted: Bool) -> Int
  ) -> Int {
    var sum = 0
    for round in 0..<warmUp + rounds {
      load(framesAtOnce)
      let count = forward(round >= warmUp)
      if round >= warmUp { sum += count }
    }
    return sum
  }
}

@inline(never)
private func countSFU(_ room: CountedRoom) -> Int { room.forward() }

@inline(never)
private func countRelay(_ relay: CountedRelay) -> Int { relay.forward() }

/// One who publishes and many who receive, with a worker's core.
private final class CountedRoom {
  private final class Member {
    var session: CallSession
    let address: SocketAddress
    let connection: ConnectionID
    var isConnected = false
    var received = 0

    init(_ session: consuming CallSession, _ address: SocketAddress, _ connection: ConnectionID) {
      self.session = session
      self.address = address
      self.connection = connection
    }
  }

  private var core: SFUWorker
  private var members: [Member] = []
  /// The publisher's packets come to the worker through the system, so that they lie where they would in life.
  private let source: UDPSocket
  private let socket: UDPSocket
  private var incoming = ReceiveBatch(capacity: 64)
  private var outgoing = SendBatch(capacity: 64)
  private var buffer = [UInt8](repeating: 0, count: 2_048)
  private var now = MonotonicClock.now()
  private var frame = [UInt8](repeating: 0x55, count: 9_000)
  private var timestamp: UInt32 = 0
  /// Of the packets of one frame, as they come.
  private(set) var lengths: [Int] = []

  init(subscribers: Int) throws {
    source = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    var random = RandomSource(seed: 1)
    let identity = try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &random)
    var configuration = SFUConfiguration(candidates: [socket.localAddress])
    configuration.participantRate = 1_000_000_000
    core = SFUWorker(
      configuration: configuration, identity: identity, random: RandomSource(seed: 2), now: now,
      unixNanoseconds: WallClock.unixNanoseconds())
    for number in 0...subscribers {
      let address =
        number == 0
        ? source.localAddress
        : SocketAddress(ipv4: 10, 0, 0, 1, port: UInt16(truncatingIfNeeded: 10_000 + number))
      var call = CallConfiguration(
        room: "room", identity: "p\(number)", publishes: number == 0 ? [.camera] : [], encryption: .none)
      call.expectedRemoteParticipants = 1
      let session = try CallSession(
        configuration: call, identity: identity, localAddresses: [address], keys: CallKeyLedger(),
        random: RandomSource(seed: UInt64(100 + number)), now: now,
        unixNanoseconds: WallClock.unixNanoseconds())
      let request = try LiveKit.WrappedJoinRequest(serialized: session.joinRequest).joinRequest
      let member = Member(session, address, ConnectionID(UInt64(number)))
      members.append(member)
      let details = JoinDetails(
        grant: AccessGrant(room: "room", identity: "p\(number)"),
        request: try LiveKit.JoinRequest(serialized: request))
      core.handle(.join(member.connection, details), at: now)
      try exchange { member.isConnected }
    }
    try exchange { [self] in
      sendFrame(isKeyFrame: true)
      return members.dropFirst().allSatisfy { $0.received > 0 }
    }
  }

  struct NotConnected: Error {}

  /// Signals, datagrams and time go on until `isDone`, ten seconds of time at most.
  private func exchange(until isDone: () -> Bool) throws {
    for _ in 0..<2_000 {
      for member in members {
        turn(member)
        deliver(to: member)
      }
      if isDone() { return }
      now = now + .milliseconds(5)
      core.handleTimeout(at: now)
    }
    throw NotConnected()
  }

  private func turn(_ member: Member) {
    member.session.handleTimeout(at: now)
    while let signal = member.session.pollSignal() {
      core.handle(.signal(member.connection, signal), at: now)
    }
    while let event = core.pollEvent() {
      guard case .send(let connection, let bytes) = event else { continue }
      members[Int(connection.rawValue)].session.handleSignal(bytes.span, at: now)
    }
    while let event = member.session.pollEvent() { if event == .connected { member.isConnected = true } }
  }

  /// What the member sends, and all that the worker sends to anybody.
  private func deliver(to member: Member) {
    while let bytes = datagram(of: member) {
      buffer.replaceSubrange(0..<bytes.count, with: bytes)
      Self.deliver(&buffer, bytes.count, from: member.address, to: &core, at: now)
      while let (bytes, destination) = datagramOfWorker() { hand(bytes, to: destination) }
    }
    while let (bytes, destination) = datagramOfWorker() { hand(bytes, to: destination) }
  }

  private func hand(_ bytes: [UInt8], to destination: SocketAddress) {
    guard let member = members.first(where: { $0.address == destination }) else { return }
    // Pictures are counted and thrown away, as those who receive in the other measurements do.
    if bytes.count > 200, bytes[0] >> 6 == 2 { return member.received += 1 }
    var bytes = bytes
    var span = bytes.mutableSpan
    member.session.receive(&span, count: span.count, from: socket.localAddress, at: now)
  }

  private func datagram(of member: Member) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: 1_500)
    var span = bytes.mutableSpan
    guard let transmit = member.session.pollTransmit(into: &span, at: now) else { return nil }
    return Array(bytes[..<transmit.count])
  }

  private func datagramOfWorker() -> ([UInt8], SocketAddress)? {
    var bytes = [UInt8](repeating: 0, count: 1_500)
    var span = bytes.mutableSpan
    guard let transmit = core.pollTransmit(into: &span, at: now) else { return nil }
    return (Array(bytes[..<transmit.count]), transmit.destination)
  }

  private static func deliver(
    _ bytes: inout [UInt8], _ count: Int, from source: SocketAddress, to core: inout SFUWorker,
    at now: Instant
  ) {
    var span = bytes.mutableSpan
    core.receive(&span, count: count, from: source, at: now)
  }

  private func sendFrame(isKeyFrame: Bool) {
    timestamp &+= 3_000
    frame[0] = isKeyFrame ? 0x10 : 0x11
    let bytes = frame
    try? members[0].session.send(bytes.span, on: .camera, timestamp: RTPTimestamp(timestamp), at: now)
  }

  /// Has frames lie in the batch as they came from the system.
  func load(frames: Int) {
    lengths = []
    for _ in 0..<frames {
      now = now + .milliseconds(33)
      sendFrame(isKeyFrame: false)
      lengths = []
      while let bytes = datagram(of: members[0]) {
        lengths.append(bytes.count)
        source.send(bytes.span, to: socket.localAddress)
      }
    }
    _ = try? socket.receive(into: &incoming)
  }

  /// Everything that a worker does with a batch but the system's calls. Returns packets that leave.
  @discardableResult
  func forward() -> Int {
    Self.receiveAll(of: &incoming, by: &core, at: now)
    return Self.takeAll(from: &core, into: &outgoing, at: now)
  }

  private static func receiveAll(of batch: inout ReceiveBatch, by core: inout SFUWorker, at now: Instant) {
    for index in 0..<batch.count {
      let (count, source) = (batch.byteCount(index), batch.source(index))
      var datagram = batch.slot(index)
      core.receive(&datagram, count: count, from: source, at: now)
    }
  }

  private static func takeAll(
    from core: inout SFUWorker, into batch: inout SendBatch, at now: Instant
  ) -> Int {
    var packets = 0
    var isDone = false
    while !isDone {
      if let transmit = next(from: &core, into: &batch, at: now) {
        batch.commit(byteCount: transmit.count, to: transmit.destination)
        packets += 1
      } else {
        isDone = true
      }
      if batch.isFull || isDone { batch.removeAll() }
    }
    return packets
  }

  private static func next(
    from core: inout SFUWorker, into batch: inout SendBatch, at now: Instant
  ) -> Transmit? {
    var slot = batch.nextSlot()
    return core.pollTransmit(into: &slot, at: now)
  }
}

/// The relay with one source.
private final class CountedRelay {
  private var relay: Relay
  private var packets: RelaySource
  private let source: UDPSocket
  private let address: SocketAddress
  private let lengths: [Int]
  private var timestamp: UInt32 = 0

  init(subscribers: Int, lengths: [Int]) throws {
    source = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    let socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    address = socket.localAddress
    self.lengths = lengths
    packets = try RelaySource(0)
    relay = try Relay(
      socket: socket, sources: [source.localAddress], receivers: [Array(0..<subscribers)],
      destinations: (0..<subscribers).map {
        SocketAddress(ipv4: 10, 0, 0, 1, port: UInt16(truncatingIfNeeded: 10_000 + $0))
      }, segmentation: false)
    relay.sends = false
  }

  func load(frames: Int) {
    for _ in 0..<frames {
      timestamp &+= 3_000
      packets.send(lengths, timestamp: timestamp, through: source, to: address)
    }
    relay.receive()
  }

  @discardableResult
  func forward() -> Int {
    let before = relay.packetCount
    relay.pass()
    return relay.packetCount - before
  }
}
