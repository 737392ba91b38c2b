import CPalbeLinux
import CPalbeWebSockets
import Glibc
import PalbeEventLoop
import PalbeUnits
import Synchronization

/// Why a server could not start.
public enum WebServerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another program listens there.
  case portInUse(UInt16)
  /// The host has no such address, or it is not an IPv4 or IPv6 address.
  case addressNotAvailable
  /// The port needs a privilege that the process lacks.
  case permissionDenied(UInt16)
  /// No memory, thread or descriptor.
  case noResources
  /// The certificate or its key cannot be used.
  case certificate(CertificateError)

  /// One line for a person.
  public var description: String {
    switch self {
    case .portInUse(let port): "port \(port) is in use"
    case .addressNotAvailable: "the host has no such address"
    case .permissionDenied(let port): "no permission to use port \(port)"
    case .noResources: "no memory, thread or descriptor left for the web server"
    case .certificate(let error): error.description
    }
  }
}

extension WebServerError {
  init(_ error: SocketError) {
    self =
      switch error {
      case .portInUse(let port): .portInUse(port)
      case .addressNotAvailable: .addressNotAvailable
      case .permissionDenied(let port): .permissionDenied(port)
      case .system: error.isFamilyMissing ? .addressNotAvailable : .noResources
      }
  }
}

/// What a server allows its clients.
public struct WebServerLimits: Sendable {
  /// Connections at once. For a further one the connection that has been without a request longest makes room, if it has been
  /// for `crowdedIdleTime`; else it is closed right away.
  public var connectionCount = 4_096
  /// Connections at once that had no request yet, so that half a TLS handshake costs nobody much; a further one as above.
  public var freshConnectionCount = 4_096
  /// How long a connection without a request is left alone where places are short.
  public var crowdedIdleTime = TimeDelta.seconds(1)
  /// The request line and the headers together, below 65,536; then 431.
  public var requestHeadByteCount = 40_960
  /// The body of a plain request.
  public var requestBodyByteCount = 1 << 20
  /// All bodies that are being read at once; what comes above that is answered with 503.
  public var bodiesByteCount = 64 << 20
  /// A message from a client, its fragments together.
  public var messageByteCount = 1 << 20
  /// What a WebSocket reads at once, kept for each; longer frames come in pieces.
  public var socketReadByteCount = 4_096
  /// Bytes that the kernel keeps for a WebSocket whose client does not read; nil leaves it to the kernel, which goes up to
  /// megabytes.
  public var socketSendByteCount: Int?
  /// Bytes queued to one client before it counts as too slow.
  public var sendQueueByteCount = 4 << 20
  /// Time for the request head, and between two pieces of a body that is collected; in whole seconds. Then 408.
  public var requestTimeout = TimeDelta.seconds(10)
  /// Time for a body that is collected; then 408.
  public var bodyTimeout = TimeDelta.seconds(120)
  /// The least bytes a second of a body, over each `requestTimeout`, of a streamed one over each `streamTimeout`; below it
  /// 408. 0 asks for none.
  public var bodyRate = 1_024
  /// Time that a handler may take to answer; then the client gets `HTTPResponder.late`.
  public var responseTimeout = TimeDelta.seconds(15)
  /// A client that takes nothing of a streamed body for so long is let go, and one that sends too little of it; in whole
  /// seconds.
  public var streamTimeout = TimeDelta.seconds(30)
  /// A connection without a request is closed after this long, in whole seconds.
  public var idleTimeout = TimeDelta.seconds(30)
  /// A silent WebSocket is sent a ping after this long, in whole seconds.
  public var pingInterval = TimeDelta.seconds(10)
  /// A WebSocket from which no pong comes for this long is closed; in whole seconds, above `pingInterval`.
  public var silenceTimeout = TimeDelta.seconds(30)
  /// Headers to be handed over besides the common ones, in lower case without colon, such as "x-request-id".
  public var additionalHeaderNames: [String] = []
  /// Sent with every answer that does not have them itself, names in lower case.
  public var commonHeaders: [HTTPRequest.Field] = []
  /// What one address may do.
  public var perAddress = AddressLimits()

  /// The limits above.
  public init() {}
}

/// What a server allows one address, where an IPv6 network of 64 bits is one address.
public struct AddressLimits: Sendable {
  /// Connections at once; a further one is closed right away.
  public var connectionCount = 1_024
  /// New connections in a second; one above that is closed before anything is read.
  public var connectionsPerSecond = 100
  /// New connections at once after a quiet time.
  public var connectionBurst = 1_000
  /// Requests in a second, upgrades among them; one above that is answered with 429.
  public var requestsPerSecond = 200
  /// Requests at once after a quiet time.
  public var requestBurst = 2_000
  /// Whether the limits hold for this machine too. A proxy on it brings the clients of the whole world.
  public var includesLoopback = false

  /// The limits above.
  public init() {}
}

/// An HTTP/1.1 and WebSocket server on a service thread of its own, with TLS when it has a certificate.
///
///     let server = try WebServer(host: "127.0.0.1", port: 0, handler: signaling)
///     print(server.port)
///     server.stop()
///
/// Connections are kept for further requests; answers above 64 KiB that do not come from an `HTTPBodySource` end theirs.
public final class WebServer: Sendable {
  /// The port it listens on; the system's choice when it was asked for 0.
  public let port: UInt16
  private let link: ServerLink
  private let files: CertificateFiles?
  private let thread: ServiceThread
  private let isJoined = Atomic<Bool>(false)

  /// Starts to listen.
  /// - Parameter host: an address of this host; "0.0.0.0" is all IPv4 addresses, "::" all of both families.
  /// - Parameter port: 0 takes any free one.
  /// - Parameter certificate: makes it speak TLS, and nothing else on this port.
  /// - Parameter whenPaused: told why no connection can be taken for a moment, for lack of descriptors or memory; up to ten times a second,
  ///   on the service thread.
  public init(
    host: String, port: UInt16, certificate: CertificateFiles? = nil,
    limits: WebServerLimits = WebServerLimits(), handler: any WebServerHandler,
    whenPaused: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(WebServerError) {
    WebLibrary.initialize()
    let pair: CertificatePair?
    do throws(CertificateError) { pair = try certificate?.read() } catch { throw .certificate(error) }
    guard let address = SocketAddress(host: host, port: port) else { throw .addressNotAvailable }
    let socket = try ListeningSocket(address)
    let link = ServerLink()
    let service = ServerService(
      link: link, limits: limits, certificate: pair, handler: handler, whenPaused: whenPaused)
    guard let context = service.makeContext(listening: socket) else { throw .noResources }
    self.port = socket.port
    self.link = link
    files = certificate
    link.context.set(context)
    let moved = Moved(service: service)
    guard let thread = ServiceThread(name: "web-server", { moved.service.run() }) else {
      link.context.set(nil)
      lws_context_destroy(context)
      throw .noResources
    }
    self.thread = thread
  }

  /// Throws unless a server could listen there now. Somebody else may be faster.
  public static func check(host: String, port: UInt16) throws(WebServerError) {
    guard let address = SocketAddress(host: host, port: port) else { throw .addressNotAvailable }
    let socket = try ListeningSocket(address)
    Glibc.close(socket.descriptor)
  }

  /// Reads the certificate and its key again, for connections that come from now on; those that are open
  /// stay. When the files cannot be used, everything stays as it is. Does nothing without TLS.
  /// - Returns: when the certificate ends, in seconds since 1970.
  @discardableResult
  public func reloadCertificate() throws(CertificateError) -> Int64? {
    guard let pair = try files?.read() else { return nil }
    link.certificateChanged(to: pair)
    return pair.expiry
  }

  /// What one address may do from now on; connections that are open stay.
  public func setAddressLimits(_ limits: AddressLimits) { link.addressLimitsChanged(to: limits) }

  /// The service is made here and used by its thread only.
  private struct Moved: @unchecked Sendable { let service: ServerService }

  deinit { stop() }

  /// Sends WebSockets a close frame (1001), ends all connections and the thread. Returns when that is done,
  /// within a
  /// second; from a handler it only begins.
  public func stop() {
    link.isStopping.store(true, ordering: .releasing)
    link.context.wake()
    guard !thread.isCurrent, isJoined.exchange(true, ordering: .relaxed) == false else { return }
    thread.join()
  }
}

/// What the server's threads share: how to wake the service thread, and what waits for it.
final class ServerLink: Sendable {
  let context = ServiceContext()
  let isStopping = Atomic<Bool>(false)
  /// Sockets whose queue has changed, by id.
  private let changed = Mutex<[UInt64]>([])
  /// Answers that came after their handler had returned, by the id of their request.
  private let answers = Mutex<[(id: UInt64, response: HTTPResponse)]>([])
  /// Bodies that may go on.
  private let streams = Mutex<[UInt64]>([])
  private let certificate = Mutex<CertificatePair?>(nil)
  private let addressLimits = Mutex<AddressLimits?>(nil)

  func socketChanged(_ socket: WebSocket) {
    let isFirst = changed.withLock { ids in
      ids.append(socket.id)
      return ids.count == 1
    }
    if isFirst { context.wake() }
  }

  /// An answer for a request; at most one comes for each connection that is open.
  func answered(_ id: UInt64, _ response: HTTPResponse) {
    let isFirst = answers.withLock { answers in
      answers.append((id, response))
      return answers.count == 1
    }
    if isFirst { context.wake() }
  }

  func takeAnswers() -> [(id: UInt64, response: HTTPResponse)] {
    answers.withLock { answers in
      defer { answers = [] }
      return answers
    }
  }

  /// A body may go on, by the id of its request or answer.
  func streamChanged(_ id: UInt64) {
    let isFirst = streams.withLock { ids in
      ids.append(id)
      return ids.count == 1
    }
    if isFirst { context.wake() }
  }

  func takeChangedStreams() -> [UInt64] {
    streams.withLock { ids in
      defer { ids = [] }
      return ids
    }
  }

  func certificateChanged(to pair: CertificatePair) {
    certificate.withLock { $0 = pair }
    context.wake()
  }

  func takeCertificate() -> CertificatePair? {
    certificate.withLock { certificate in
      defer { certificate = nil }
      return certificate
    }
  }

  func addressLimitsChanged(to limits: AddressLimits) {
    addressLimits.withLock { $0 = limits }
    context.wake()
  }

  func takeAddressLimits() -> AddressLimits? { addressLimits.withLock { $0.take() } }

  /// Moves the list of changed sockets into `taken`, whose memory the next ones get.
  func takeChanged(into taken: inout [UInt64]) {
    taken.removeAll(keepingCapacity: taken.capacity <= 4_096)
    changed.withLock { swap(&$0, &taken) }
  }
}
