import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeRTP
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Synchronization

/// A client's WebSocket, between its thread and the crowd's.
private final class Line: WebSocketHandler {
  private struct State {
    var client: WebSocketClient?
    var messages: [[UInt8]] = []
    var isClosed = false
    var isLeaving = false
  }
  private let state = Mutex(State())

  func opened() {}
  func received(binary: [UInt8]) { state.withLock { $0.messages.append(binary) } }
  func received(text: String) {}
  func closed(_ closure: WebSocketClosure) { state.withLock { $0.isClosed = true } }

  func open(_ url: String) {
    Task {
      let client = try? await WebSocketClient.connect(to: url, handler: self)
      // It may have been told to leave meanwhile.
      let isLeaving = state.withLock { state in
        if !state.isLeaving { state.client = client }
        if client == nil { state.isClosed = true }
        return state.isLeaving
      }
      if isLeaving { client?.disconnect() }
    }
  }

  func take() -> (messages: [[UInt8]], isClosed: Bool) {
    state.withLock { state in
      defer { state.messages = [] }
      return (state.messages, state.isClosed)
    }
  }

  func send(_ message: [UInt8]) {
    let client = state.withLock { $0.client }
    client?.send(binary: message)
  }

  func end(_ close: (WebSocketClient) -> Void) {
    let client = state.withLock { state in
      state.isLeaving = true
      defer { state.client = nil }
      return state.client
    }
    if let client { close(client) }
  }
}

/// One participant's life: the client core over a real WebSocket and a real UDP socket.
final class ChurnClient {
  let socket: UDPSocket
  let joinedAt = MonotonicClock.now()
  private(set) var connectedAt: Instant?
  private(set) var hasEnded = false
  /// Media packets' frames that came from others.
  private(set) var frameCount = 0
  private var session: CallSession
  private let line = Line()
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
    let item = Base64.encode(session.joinRequest, alphabet: .url)
    let target = url + "/rtc/v1?access_token=\(token)&join_request=\(item)"
    line.open(target)
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
      Self.deliver(index, of: &incoming, to: &session, at: now)
    }
    if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
    drain(at: now)
  }

  private static func deliver(
    _ index: Int, of batch: inout ReceiveBatch, to session: inout CallSession, at now: Instant
  ) {
    let count = batch.byteCount(index)
    let source = batch.source(index)
    var slot = batch.slot(index)
    session.receive(&slot, count: count, from: source, at: now)
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
      case .disconnected: hasEnded = true
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
    end { $0.close() }
  }

  /// Its process is gone: no word, and its WebSocket breaks.
  func crash() { end { $0.disconnect() } }

  /// Its network is gone, and its WebSocket stays open.
  func fallSilent() { isSilent = true }

  private func end(_ close: (WebSocketClient) -> Void) {
    isSilent = true
    line.end(close)
  }
}
