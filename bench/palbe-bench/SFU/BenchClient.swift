import CPalbeLinux
import PalbeCallCore
import PalbeCrypto
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeRTP
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Synchronization

/// A participant with real signaling, ICE, DTLS and SRTP, driven by the load's thread. What it receives is counted and
/// thrown away; only checks, handshakes and what is asked of a publisher reach its session.
final class BenchClient {
  /// How its signaling reaches the server.
  struct Signaling {
    var send: ([UInt8]) -> Void
    var receive: () -> [[UInt8]]
    var end: () -> Void
  }

  private var session: CallSession
  let socket: UDPSocket
  private var incoming = ReceiveBatch(capacity: 64, slotByteCount: 512)
  private var outgoing = SendBatch(capacity: 64, slotByteCount: 1_500)
  private let signaling: Signaling
  private(set) var isConnected = false
  /// A key frame is wanted.
  var wantsKeyFrame = false
  private(set) var received = 0
  private(set) var firstPacketAt: Instant?
  /// When each of its frames was sent, by RTP timestamp, on CLOCK_REALTIME.
  var sentAt: [UInt32: Int64] = [:]
  /// Sampled: the delay of every packet is noted.
  var isSampled = false { didSet { if isSampled { _ = palbe_stamp_arrivals(socket.fileDescriptor) } } }
  private(set) var mediaPackets = 0
  private(set) var mediaByteCount = 0

  init(
    _ identity: DTLSIdentity, room: String, name: String, publishes: Set<LocalTrack>, expecting others: Int,
    connect: ([UInt8]) throws -> Signaling
  ) throws {
    socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    var configuration = CallConfiguration(
      room: room, identity: name, publishes: publishes, encryption: .none)
    configuration.expectedRemoteParticipants = others
    session = try CallSession(
      configuration: configuration, identity: identity, localAddresses: [socket.localAddress],
      keys: CallKeyLedger(), random: SystemRandom.source(), now: MonotonicClock.now(),
      unixNanoseconds: WallClock.unixNanoseconds())
    signaling = try connect(session.joinRequest)
  }

  private final class Received: WebSocketHandler {
    private let messages = Mutex<[[UInt8]]>([])
    func opened() {}
    func received(binary: [UInt8]) { messages.withLock { $0.append(binary) } }
    func received(text: String) {}
    func closed(_ closure: WebSocketClosure) {}
    func take() -> [[UInt8]] {
      messages.withLock { messages in
        guard !messages.isEmpty else { return [] }
        defer { messages = [] }
        return messages
      }
    }
  }

  /// Over a real WebSocket.
  static func join(
    port: UInt16, _ identity: DTLSIdentity, room: String, name: String, publishes: Set<LocalTrack> = [],
    expecting others: Int = 1
  ) throws -> BenchClient {
    try BenchClient(identity, room: room, name: name, publishes: publishes, expecting: others) { request in
      let handler = Received()
      let item = Base64.encode(request, alphabet: .url)
      let url =
        "ws://127.0.0.1:\(port)/rtc/v1?access_token=\(token(room: room, name: name))&join_request=\(item)"
      let web = try waiting { try await WebSocketClient.connect(to: url, handler: handler) }
      return Signaling(
        send: { web.send(binary: $0) }, receive: { handler.take() }, end: { web.disconnect() })
    }
  }

  static let key = "bench"
  static let secret = "a secret of thirty-two characters"

  private static func token(room: String, name: String) -> String {
    func part(_ text: String) -> String { Base64.encode([UInt8](text.utf8), alphabet: .url, padded: false) }
    let expiry = WallClock.unixNanoseconds() / 1_000_000_000 + 3_600
    let text =
      part(#"{"alg":"HS256","typ":"JWT"}"#) + "."
      + part(
        #"{"iss":"\#(key)","sub":"\#(name)","exp":\#(expiry),"video":{"roomJoin":true,"room":"\#(room)"}}"#)
    let mac = HMAC<SHA256>.authenticationCode(for: [UInt8](text.utf8), using: [UInt8](secret.utf8))
    return text + "." + Base64.encode(mac, alphabet: .url, padded: false)
  }

  /// Handles signaling and timers, and sends what is due.
  func turn() {
    let now = MonotonicClock.now()
    for message in signaling.receive() { session.handleSignal(message.span, at: now) }
    if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
    flush(at: now)
  }

  func flush(at now: Instant) {
    while let message = session.pollSignal() { signaling.send(message) }
    while let event = session.pollEvent() {
      if event == .connected { isConnected = true }
      if event == .keyFrameRequested(.camera) { wantsKeyFrame = true }
    }
    while Self.fill(&outgoing, from: &session, at: now) { socket.send(&outgoing) }
    if !outgoing.isEmpty { socket.send(&outgoing) }
  }

  private static func fill(_ batch: inout SendBatch, from session: inout CallSession, at now: Instant) -> Bool
  {
    while !batch.isFull {
      var slot = batch.nextSlot()
      guard let transmit = session.pollTransmit(into: &slot, at: now) else { return false }
      batch.commit(byteCount: transmit.count, to: transmit.destination)
    }
    return true
  }

  /// Takes everything that has come; returns how many RTP packets that was.
  @discardableResult
  func drain() -> Int {
    var media = 0
    while true {
      let oversized = incoming.oversizedCount
      guard let count = try? socket.receive(into: &incoming), count > 0 else { break }
      media += Int(incoming.oversizedCount - oversized)
      for index in 0..<count where incoming.byteCount(index) > 0 {
        let kind = PacketKind(incoming.datagram(index))
        switch kind {
        case .rtp: media += 1
        case .rtcp where !isSource: continue
        default: Self.deliver(index, of: &incoming, to: &session)
        }
      }
      guard count == incoming.capacity else { break }
    }
    if media > 0, firstPacketAt == nil { firstPacketAt = MonotonicClock.now() }
    received += media
    return media
  }

  /// It publishes, and is to hear what is asked of it.
  var isSource = false

  /// Takes everything that has come and notes each packet's delay in nanoseconds.
  func drainSampled(sentAt: [UInt32: Int64], into delays: inout [Int64]) -> Int {
    var media = 0
    var buffer = [UInt8](repeating: 0, count: 64)
    while true {
      var arrival: Int64 = 0
      let count = palbe_receive_stamped(socket.fileDescriptor, &buffer, buffer.count, &arrival)
      guard count > 0 else { break }
      guard count >= 12, case .rtp = PacketKind(buffer.span.extracting(0..<count)) else { continue }
      media += 1
      if let sent = sentAt[buffer.span.uint32(at: 4)] { delays.append(arrival - sent) }
    }
    received += media
    return media
  }

  private static func deliver(_ index: Int, of batch: inout ReceiveBatch, to session: inout CallSession) {
    let count = batch.byteCount(index)
    let source = batch.source(index)
    var slot = batch.slot(index)
    session.receive(&slot, count: count, from: source, at: MonotonicClock.now())
  }

  /// Sends one encoded frame; returns how many packets that was.
  func send(_ frame: [UInt8], on track: LocalTrack, timestamp: UInt32) -> Int {
    let now = MonotonicClock.now()
    flush(at: now)
    guard (try? session.send(frame.span, on: track, timestamp: RTPTimestamp(timestamp), at: now)) != nil
    else { return 0 }
    _ = Self.fill(&outgoing, from: &session, at: now)
    let count = outgoing.count
    socket.send(&outgoing)
    return count
  }

  /// Copies what one frame becomes, protected, instead of sending it.
  func datagrams(_ frame: [UInt8], on track: LocalTrack, timestamp: UInt32) -> [[UInt8]] {
    let now = MonotonicClock.now()
    flush(at: now)
    try? session.send(frame.span, on: track, timestamp: RTPTimestamp(timestamp), at: now)
    var all: [[UInt8]] = []
    var buffer = [UInt8](repeating: 0, count: 1_500)
    while true {
      var span = buffer.mutableSpan
      guard let transmit = session.pollTransmit(into: &span, at: now) else { return all }
      all.append(Array(buffer[..<transmit.count]))
    }
  }

  /// Gives the session a datagram of the server's, where there is no network.
  func receive(_ datagram: [UInt8], from source: SocketAddress) {
    var bytes = datagram
    let count = bytes.count
    var span = bytes.mutableSpan
    session.receive(&span, count: count, from: source, at: MonotonicClock.now())
  }

  func end() { signaling.end() }
}

/// Runs `body` and waits for it, for at most as long as it has limits itself.
func waiting<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) throws -> Result {
  let outcome = Mutex<Swift.Result<Result, any Error>?>(nil)
  let holder = Holder(outcome: outcome)
  Task.detached {
    do { holder.set(.success(try await body())) } catch { holder.set(.failure(error)) }
  }
  return try holder.wait().get()
}

private final class Holder<Value: Sendable>: Sendable {
  private let outcome: Mutex<Swift.Result<Value, any Error>?>
  private let wakeUp = try? WakeUp()
  init(outcome: consuming Mutex<Swift.Result<Value, any Error>?>) { self.outcome = outcome }
  func set(_ value: Swift.Result<Value, any Error>) {
    outcome.withLock { $0 = value }
  }
  func wait() -> Swift.Result<Value, any Error> {
    while true {
      if let value = outcome.withLock({ $0 }) { return value }
      usleep(100)
    }
  }
}
