import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeRTP
import PalbeSocketCalls
import PalbeUnits
import PalbeWebServer

/// One participant's life: the client core over a real WebSocket and a real UDP socket.
final class ChurnClient {
  let socket: UDPSocket
  let joinedAt = MonotonicClock.now()
  private(set) var connectedAt: Instant?
  /// Why its session ended by itself; nil while it has not.
  private(set) var end: CallEndReason?
  var hasEnded: Bool { end != nil }
  /// Media packets' frames that came from others.
  private(set) var frameCount = 0
  private var session: CallSession
  private let line = SignalingLine()
  private var packet = [UInt8](repeating: 0, count: 1_500)
  private var timestamp: UInt32 = 0
  private var tracks: [RemoteTrackID] = []
  private var isSilent = false

  init(url: String, token: String, room: String, identity: String, certificate: DTLSIdentity) throws {
    socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0), options: Self.options)
    let configuration = CallConfiguration(
      room: room, identity: identity, publishes: [.microphone], encryption: .none)
    session = try CallSession(
      configuration: configuration, identity: certificate, localAddresses: [socket.localAddress],
      keys: CallKeyLedger(), random: SystemRandom.source(), now: joinedAt,
      unixNanoseconds: WallClock.unixNanoseconds())
    line.open(to: url, token: token, joinRequest: session.joinRequest)
  }

  private static var options: UDPSocket.Options {
    var options = UDPSocket.Options()
    options.receiveBufferByteCount = 262_144
    options.sendBufferByteCount = 262_144
    return options
  }

  /// Handles what has come and sends what is due.
  func turn(_ incoming: inout ReceiveBatch, at now: Instant) throws {
    guard !isSilent else { return }
    let (messages, isClosed) = line.take()
    for message in messages { session.handleSignal(message.span, at: now) }
    if isClosed { session.signalingClosed(at: now) }
    for index in 0..<(try socket.receive(into: &incoming)) {
      session.receive(index, of: &incoming, at: now)
    }
    if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
    drain(at: now)
  }

  private func drain(at now: Instant) {
    while let message = session.pollSignal() { line.send(message) }
    while true {
      var buffer = packet.mutableSpan
      guard let transmit = session.pollTransmit(into: &buffer, at: now) else { break }
      socket.send(packet.span.extracting(0..<transmit.count), to: transmit.destination)
    }
    while let event = session.pollEvent() {
      switch event {
      case .connected: connectedAt = connectedAt ?? now
      case .disconnected(let reason): end = reason
      case .trackSubscribed(let id, _, .audio, _): tracks.append(id)
      case .trackUnsubscribed(let id): tracks.removeAll { $0 == id }
      default: break
      }
    }
  }

  /// 20 ms of sound to the others, and from them.
  func speak(at now: Instant) {
    guard !isSilent, connectedAt != nil, !hasEnded else { return }
    timestamp &+= 960
    let frame: [UInt8] = [0x78] + [UInt8](repeating: UInt8(truncatingIfNeeded: timestamp), count: 60)
    try? session.send(frame.span, on: .microphone, timestamp: RTPTimestamp(timestamp), at: now)
    for track in tracks { if case .packet = session.pullAudio(track, at: now) { frameCount += 1 } }
    drain(at: now)
  }

  /// Says goodbye and goes.
  func leave(at now: Instant) {
    session.leave(at: now)
    drain(at: now)
    closeLine { $0.close() }
  }

  /// Its process is gone: no word, and its WebSocket breaks.
  func crash() { closeLine() }

  /// Its network is gone, and its WebSocket stays open.
  func fallSilent() { isSilent = true }

  private func closeLine(_ close: (WebSocketClient) -> Void = { $0.disconnect() }) {
    isSilent = true
    line.end(close)
  }
}
