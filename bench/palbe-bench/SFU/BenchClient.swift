import CPalbeLinux
import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeFrameEncryption
import PalbeRTP
import PalbeSFUServer
import PalbeSocketCalls
import PalbeUnits
import PalbeWebTokens
import PalbeWire
import Synchronization

/// A participant with real signaling, ICE, DTLS and SRTP, driven by the load's thread. What it receives is counted and
/// thrown away; only checks, handshakes and what is asked of a publisher reach its session.
final class BenchClient {
  private var session: CallSession
  let socket: UDPSocket
  private var incoming = ReceiveBatch(capacity: 64, slotByteCount: 512)
  private var outgoing = SendBatch(capacity: 64, slotByteCount: 1_500)
  private let line = SignalingLine()
  private(set) var isConnected = false
  /// A key frame is wanted.
  var wantsKeyFrame = false
  private(set) var received = 0
  /// When its WebSocket began to connect.
  private(set) var askedAt: UInt64 = 0
  /// Sampled: the delay of every packet is noted.
  var isSampled = false { didSet { if isSampled { _ = palbe_stamp_arrivals(socket.fileDescriptor) } } }

  /// Over a real WebSocket.
  init(
    port: UInt16, _ identity: DTLSIdentity, room: String, name: String, publishes: Set<LocalTrack> = [],
    expecting others: Int = 1
  ) throws {
    socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    var configuration = CallConfiguration(
      room: room, identity: name, publishes: publishes, encryption: .none)
    configuration.expectedRemoteParticipants = others
    session = try CallSession(
      configuration: configuration, identity: identity, localAddresses: [socket.localAddress],
      keys: CallKeyLedger(), random: SystemRandom.source(), now: MonotonicClock.now(),
      unixNanoseconds: WallClock.unixNanoseconds())
    let request = session.joinRequest
    askedAt = nanoseconds()
    try waiting { [line] in
      try await line.connect(
        to: "ws://127.0.0.1:\(port)", token: Self.token(room: room, name: name), joinRequest: request)
    }
  }

  static let key = "bench"
  static let secret = "a secret of thirty-two characters"

  private static func token(room: String, name: String) -> String {
    let expiry = WallClock.unixSeconds + 3_600
    let claims = """
      {"iss":"\(key)","sub":"\(name)","exp":\(expiry),"video":{"roomJoin":true,"room":"\(room)"}}
      """
    return SignedToken.text([UInt8](claims.utf8), secret: secret)
  }

  /// Handles signaling and timers, and sends what is due.
  func turn() {
    let now = MonotonicClock.now()
    for message in line.take().messages { session.handleSignal(message.span, at: now) }
    if let deadline = session.nextDeadline, deadline <= now { session.handleTimeout(at: now) }
    flush(at: now)
  }

  func flush(at now: Instant) {
    while let message = session.pollSignal() { line.send(message) }
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
        default: session.receive(index, of: &incoming, at: MonotonicClock.now())
        }
      }
      guard count == incoming.capacity else { break }
    }
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

  func end() { line.end() }
}

/// Runs `body` and waits for it, for at most as long as it has limits itself.
func waiting(_ body: @escaping @Sendable () async throws -> Void) throws {
  let outcome = Outcome()
  Task.detached {
    do {
      try await body()
      outcome.set(.success(()))
    } catch { outcome.set(.failure(error)) }
  }
  try outcome.wait().get()
}

private final class Outcome: Sendable {
  private let result = Mutex<Result<Void, any Error>?>(nil)

  func set(_ value: Result<Void, any Error>) { result.withLock { $0 = value } }

  func wait() -> Result<Void, any Error> {
    while true {
      if let value = result.withLock({ $0 }) { return value }
      usleep(100)
    }
  }
}
