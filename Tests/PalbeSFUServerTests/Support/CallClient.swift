import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeICE
import PalbeRTP
import PalbeSocketCalls
import PalbeUnits
import PalbeWebServer
import PalbeWire

@testable import PalbeSFUServer

/// A participant with media: the real client core over a real UDP socket, driven by the test's thread.
final class CallClient {
  /// How its signaling reaches the server.
  struct Signaling {
    var send: ([UInt8]) -> Void
    /// What came since the last call.
    var receive: () -> [[UInt8]]
    var end: () -> Void
  }

  private var session: CallSession
  private let socket: UDPSocket
  private var incoming = ReceiveBatch()
  private var packet = [UInt8](repeating: 0, count: 1_500)
  private let signaling: Signaling
  /// Where it sends instead of its UDP socket.
  private var stream: StreamLink?
  /// Where the session believes to send to.
  private var destination: SocketAddress?
  private(set) var events: [CallEvent] = []
  private(set) var frames: [ReceivedVideoFrame] = []
  private(set) var audio: [[UInt8]] = []

  /// - Parameter connect: opens the signaling with the session's join request.
  init(
    room: String, identity: String, isolation: isolated (any Actor)? = #isolation,
    connect: ([UInt8]) async throws -> Signaling
  ) async throws {
    var random = SystemRandom.source()
    let now = MonotonicClock.now()
    let unixNanoseconds = WallClock.unixNanoseconds()
    socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    let configuration = CallConfiguration(
      room: room, identity: identity, publishes: [.microphone, .camera], encryption: .none)
    session = try CallSession(
      configuration: configuration,
      identity: try DTLSIdentity(nowUnix: unixNanoseconds / 1_000_000_000, using: &random),
      localAddresses: [socket.localAddress], keys: CallKeyLedger(), random: random, now: now,
      unixNanoseconds: unixNanoseconds)
    signaling = try await connect(session.joinRequest)
  }

  /// Over a real WebSocket.
  static func join(
    _ server: SFUServer, room: String, identity: String, isolation: isolated (any Actor)? = #isolation
  ) async throws -> CallClient {
    try await CallClient(room: room, identity: identity) { request in
      let line = SignalingLine()
      try await line.connect(
        to: server.url, token: Tokens.join(room: room, identity: identity), joinRequest: request)
      return Signaling(
        send: { line.send($0) }, receive: { line.take().messages }, end: { line.end() })
    }
  }

  var isConnected: Bool { events.contains(.connected) }
  var statistics: CallStatistics { session.statistics }

  /// Handles what has come and sends what is due.
  func turn() throws {
    let now = MonotonicClock.now()
    for message in signaling.receive() { session.handleSignal(message.span, at: now) }
    for index in 0..<(try socket.receive(into: &incoming)) {
      session.receive(index, of: &incoming, at: now)
    }
    while let stream, let source = destination, var datagram = stream.receive() {
      let count = datagram.count
      datagram += [UInt8](repeating: 0, count: 64)
      var span = datagram.mutableSpan
      session.receive(&span, count: count, from: source, at: now)
    }
    if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
    drain(at: now)
  }

  private func drain(at now: Instant) {
    while let message = session.pollSignal() { signaling.send(message) }
    while true {
      var buffer = packet.mutableSpan
      guard let transmit = session.pollTransmit(into: &buffer, at: now) else { break }
      destination = transmit.destination
      if let stream {
        stream.send(packet.span.extracting(0..<transmit.count))
      } else {
        socket.send(packet.span.extracting(0..<transmit.count), to: transmit.destination)
      }
    }
    while let frame = session.pollVideoFrame(at: now) { frames.append(frame) }
    while let event = session.pollEvent() { events.append(event) }
  }

  /// Sends one encoded frame, or nothing while that is not possible.
  func send(_ frame: [UInt8], on track: LocalTrack, timestamp: UInt32) {
    let now = MonotonicClock.now()
    try? session.send(frame.span, on: track, timestamp: RTPTimestamp(timestamp), at: now)
    drain(at: now)
  }

  /// Takes 20 ms of every remote audio track.
  func pullAudio() {
    let now = MonotonicClock.now()
    for case .trackSubscribed(let id, _, .audio, _) in events {
      if case .packet(let bytes) = session.pullAudio(id, at: now) { audio.append(bytes) }
    }
    drain(at: now)
  }

  /// From now on everything goes through a TCP connection, as if UDP did not get through.
  func useTCP(to address: SocketAddress) throws { stream = StreamLink(try TCPStream(connectingTo: address)) }

  /// The connection breaks, and UDP works again.
  func dropTCP() { stream = nil }

  /// Ends as a crashed program does, from the network's point of view.
  func vanish() { signaling.end() }
}

/// The client's end of an ICE-TCP connection.
final class StreamLink {
  let stream: TCPStream
  private var reader = StreamFrameReader()
  private var queue = StreamFrameQueue()

  init(_ stream: consuming TCPStream) { self.stream = stream }

  func send(_ datagram: Span<UInt8>) {
    queue.append(datagram)
    while !queue.isEmpty, let count = stream.write(queue.waiting), count > 0 { queue.written(count) }
  }

  /// The next datagram; nil when none is there, or no more will be.
  func receive() -> [UInt8]? {
    while true {
      guard let isWhole = try? reader.advance() else { return nil }
      if isWhole {
        var datagram: [UInt8] = []
        reader.withFrame { datagram = [UInt8]($0.span) }
        return datagram
      }
      var count = 0
      let isOpen = reader.fill { room in
        let read = stream.read(into: &room)
        count = read ?? 0
        return read
      }
      guard isOpen, count > 0 else { return nil }
    }
  }
}
