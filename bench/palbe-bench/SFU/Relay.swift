import CPalbeLinux
import PalbeCrypto
import PalbeEventLoop
import PalbeRTP
import PalbeSRTP
import PalbeUnits
import PalbeWire

/// Keys of one hop, made up.
func hopKeys(_ number: Int) -> (key: [UInt8], salt: [UInt8]) {
  let byte = UInt8(truncatingIfNeeded: number)
  return ([UInt8](repeating: byte, count: 16), [UInt8](repeating: ~byte, count: 12))
}

func hop(sending: Int, receiving: Int) throws -> SRTPSession {
  let local = hopKeys(sending)
  let remote = hopKeys(receiving)
  return try SRTPSession(
    profile: .aeadAES128GCM, localMasterKey: local.key.span, localMasterSalt: local.salt.span,
    remoteMasterKey: remote.key.span, remoteMasterSalt: remote.salt.span)
}

/// What any SFU must do at least: receive, open once, protect once for each receiver, send. No rooms, no rewriting, no
/// timers, no repairs.
struct Relay: ~Copyable, @unchecked Sendable {
  private let socket: UDPSocket
  private var incoming = ReceiveBatch(capacity: 64)
  private var outgoing: SendBatch
  private let sourceIndex: [SocketAddress: Int]
  /// By source: what opens its packets, and the receivers' indices.
  private let inbound: UnsafeMutablePointer<SRTPSession>
  private let receivers: [[Int]]
  private let outbound: UnsafeMutablePointer<SRTPSession>
  private let destinations: [SocketAddress]
  /// False where all is counted but the system's calls.
  var sends = true
  private(set) var packetCount = 0
  private var received = 0
  private var lengths = [Int](repeating: 0, count: 64)
  private var sources = [Int](repeating: -1, count: 64)

  init(
    socket: consuming UDPSocket, sources: [SocketAddress], receivers: [[Int]], destinations: [SocketAddress],
    segmentation: Bool
  ) throws {
    let opening = try Self.sessions(sources.indices.map { (200, $0) })
    let sealing = try Self.sessions(destinations.indices.map { ($0, 200) })
    self.init(
      socket: socket, sources: sources, receivers: receivers, destinations: destinations,
      segmentation: segmentation, inbound: opening, outbound: sealing)
  }

  private static func sessions(
    _ hops: [(sending: Int, receiving: Int)]
  ) throws -> UnsafeMutablePointer<SRTPSession> {
    let sessions = UnsafeMutablePointer<SRTPSession>.allocate(capacity: hops.count)
    for (index, keys) in hops.enumerated() {
      (sessions + index).initialize(to: try hop(sending: keys.sending, receiving: keys.receiving))
    }
    return sessions
  }

  private init(
    socket: consuming UDPSocket, sources: [SocketAddress], receivers: [[Int]], destinations: [SocketAddress],
    segmentation: Bool, inbound: UnsafeMutablePointer<SRTPSession>,
    outbound: UnsafeMutablePointer<SRTPSession>
  ) {
    self.socket = socket
    self.inbound = inbound
    self.outbound = outbound
    outgoing = SendBatch(capacity: 64, segmentation: segmentation)
    sourceIndex = Dictionary(uniqueKeysWithValues: sources.enumerated().map { ($1, $0) })
    self.receivers = receivers
    self.destinations = destinations
  }

  deinit {
    inbound.deinitialize(count: receivers.count)
    inbound.deallocate()
    outbound.deinitialize(count: destinations.count)
    outbound.deallocate()
  }

  /// Receives and forwards what waits.
  mutating func turn() {
    receive()
    if received > 0 { pass() }
  }

  mutating func receive() { received = (try? socket.receive(into: &incoming)) ?? 0 }

  private mutating func flush() {
    packetCount += outgoing.count
    if sends { socket.send(&outgoing) } else { outgoing.removeAll() }
  }

  /// Forwards what was received, one receiver's packets behind one another as the SFU does.
  mutating func pass() {
    let count = received
    for index in 0..<count {
      sources[index] = sourceIndex[incoming.source(index)] ?? -1
      lengths[index] = sources[index] < 0 ? -1 : Self.open(index, &incoming, inbound + sources[index])
    }
    for first in 0..<count where sources[first] >= 0 {
      let source = sources[first]
      for receiver in receivers[source] {
        for index in first..<count where sources[index] == source && lengths[index] > 0 {
          if outgoing.isFull { flush() }
          Self.forward(
            index, of: incoming, byteCount: lengths[index], into: &outgoing, outbound + receiver,
            to: destinations[receiver])
        }
      }
      for index in first..<count where sources[index] == source { sources[index] = -1 }
    }
    flush()
  }

  private static func open(
    _ index: Int, _ batch: inout ReceiveBatch, _ session: UnsafeMutablePointer<SRTPSession>
  ) -> Int {
    let count = batch.byteCount(index)
    var slot = batch.slot(index)
    return (try? session.pointee.unprotectRTP(&slot, count: count)) ?? -1
  }

  private static func forward(
    _ index: Int, of incoming: borrowing ReceiveBatch, byteCount: Int, into batch: inout SendBatch,
    _ session: UnsafeMutablePointer<SRTPSession>, to destination: SocketAddress
  ) {
    let length = seal(incoming.datagram(index).extracting(0..<byteCount), into: &batch, session)
    batch.commit(byteCount: length, to: destination)
  }

  private static func seal(
    _ packet: Span<UInt8>, into batch: inout SendBatch, _ session: UnsafeMutablePointer<SRTPSession>
  ) -> Int {
    var slot = batch.nextSlot()
    slot.copyBytes(from: packet, at: 0)
    return (try? session.pointee.protectRTP(&slot, count: packet.count)) ?? 0
  }

  /// Turns until `stop` is woken.
  mutating func run(stop: WakeUp) {
    guard var poller = try? Poller(), (try? poller.add(socket.fileDescriptor, token: 1)) != nil,
      (try? poller.add(stop.fileDescriptor, token: 2)) != nil
    else { return }
    while true {
      guard let ready = try? poller.wait(for: .seconds(1)) else { return }
      for event in 0..<ready where poller[event].token == 2 { return }
      if ready > 0 { turn() }
    }
  }
}

/// A source of packets for a relay, of the lengths that the SFU gets.
struct RelaySource: ~Copyable {
  private var session: SRTPSession
  private let ssrc: SSRC
  private var sequence: UInt16 = 0
  private var outgoing = SendBatch(capacity: 64)

  init(_ index: Int) throws {
    session = try hop(sending: index, receiving: 200)
    ssrc = SSRC(UInt32(1_000 + index))
  }

  mutating func send(
    _ lengths: [Int], timestamp: UInt32, through socket: borrowing UDPSocket, to relay: SocketAddress
  ) {
    for length in lengths {
      let header = RTPHeader(
        payloadType: PayloadType(96), sequenceNumber: SequenceNumber(sequence),
        timestamp: RTPTimestamp(timestamp), ssrc: ssrc)
      sequence &+= 1
      let clear = [UInt8](capacity: 1_500) { output in
        RTPPacketWriter.writeHeader(header, into: &output)
        while output.count < length - 16 { output.append(7) }
      }
      let count = Self.seal(clear, &outgoing, &session)
      outgoing.commit(byteCount: count, to: relay)
    }
    socket.send(&outgoing)
  }

  private static func seal(_ clear: [UInt8], _ batch: inout SendBatch, _ session: inout SRTPSession) -> Int {
    var slot = batch.nextSlot()
    slot.copyBytes(from: clear.span, at: 0)
    return (try? session.protectRTP(&slot, count: clear.count)) ?? 0
  }
}
