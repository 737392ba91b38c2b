import PalbeUnits
import PalbeWire

/// Asks STUN servers from which address a socket's datagrams come (RFC 8489 §6.2.1): the public address of a host whose
/// own one is private.
///
///     asking ──an answer to one of our requests, from where it went──▶ found
///        └───────────── 5 s without ─────────────────────────────────▶ failed
///
/// The servers are asked one after the other, 250 ms apart, each up to four times; the first answer counts. The caller owns
/// the socket: it sends what `pollTransmit` returns, hands in what arrives and calls `handleTimeout` at `nextDeadline`.
public struct ReflexiveAddressQuery: Sendable {
  /// Where the query stands.
  public enum State: Equatable, Sendable {
    case asking
    /// The address as the server saw it.
    case found(SocketAddress)
    /// No server answered.
    case failed
  }

  /// A request on its way to a server.
  public struct Transmit: Sendable {
    public let server: SocketAddress
    public let bytes: [UInt8]
  }

  /// Servers that are asked at most.
  public static let serverLimit = 8
  private static let timeLimit = TimeDelta.seconds(5)
  private static let stagger = TimeDelta.milliseconds(250)
  private static let firstInterval = TimeDelta.milliseconds(500)
  private static let transmissionLimit = 4

  private struct Request: Sendable {
    let server: SocketAddress
    let id: STUNTransactionID
    var due: Instant
    var interval = firstInterval
    var transmissions = 0
  }

  /// Where the query stands.
  public private(set) var state = State.asking
  private var requests: [Request]
  private var waiting: [Transmit] = []
  private let end: Instant

  /// Begins to ask. Without servers the query has failed.
  ///
  /// - Parameter random: unpredictable, so that nobody off the path can answer in a server's name.
  public init(servers: [SocketAddress], random: consuming RandomSource, at now: Instant) {
    end = now + Self.timeLimit
    var random = random
    requests = servers.prefix(Self.serverLimit).enumerated().map { index, server in
      Request(server: server, id: STUNTransactionID(using: &random), due: now + Self.stagger * index)
    }
    if requests.isEmpty { state = .failed }
    handleTimeout(at: now)
  }

  /// The next request to send.
  public mutating func pollTransmit() -> Transmit? {
    waiting.isEmpty ? nil : waiting.removeFirst()
  }

  /// Takes a datagram that came to the socket; whatever is no answer is passed over.
  public mutating func handle(_ datagram: Span<UInt8>, from remote: SocketAddress) {
    guard state == .asking, let message = try? STUNMessage.parse(datagram), message.messageClass == .success,
      message.method == STUNMessage.binding, let mapped = message.mappedAddress,
      mapped.high != 0 || mapped.low != 0,
      requests.contains(where: { request in
        request.transmissions > 0 && request.id == message.transactionID && request.server == remote
      })
    else { return }
    state = .found(mapped)
    waiting = []
  }

  /// When `handleTimeout` must be called; nil once the query has ended.
  public var nextDeadline: Instant? {
    guard state == .asking else { return nil }
    return requests.reduce(end) { earliest, request in
      request.transmissions < Self.transmissionLimit ? min(earliest, request.due) : earliest
    }
  }

  /// Asks anew what is due, and gives up in the end.
  public mutating func handleTimeout(at now: Instant) {
    guard state == .asking else { return }
    if now >= end {
      state = .failed
      waiting = []
      return
    }
    for index in requests.indices where requests[index].due <= now {
      guard requests[index].transmissions < Self.transmissionLimit else { continue }
      requests[index].transmissions += 1
      requests[index].due = now + requests[index].interval
      requests[index].interval = requests[index].interval * 2
      let message = STUNMessage(.request, transactionID: requests[index].id)
      waiting.append(Transmit(server: requests[index].server, bytes: message.encoded()))
    }
  }
}
