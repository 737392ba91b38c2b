import CPalbeLinux
import CPalbeWebSockets
import Glibc
import PalbeUnits
import Synchronization

/// The service thread's state: connections and their requests. Used by that thread alone once it runs.
final class ServerService {
  let link: ServerLink
  let limits: WebServerLimits
  let handler: any WebServerHandler
  private let protocols: ProtocolTable
  private let policy: UnsafeMutablePointer<lws_retry_bo_t>
  private let silencer = HeaderSilencer(byteCount: serviceByteCount)
  var connections: [OpaquePointer: ServerConnection] = [:]
  /// WebSockets that are open, by the id of their handle.
  var open: [UInt64: OpaquePointer] = [:]
  /// Connections whose answer comes later, by the id of their request.
  var waiting: [UInt64: OpaquePointer] = [:]
  /// Connections whose answer comes from a source, by its id.
  var downloads: [UInt64: OpaquePointer] = [:]
  var requestCount: UInt64 = 0
  /// Sockets in hand whose queue has changed, kept to spare an allocation.
  private var changed: [UInt64] = []
  /// Bytes of all bodies that are being read.
  var bodiesByteCount = 0
  var gate: AddressGate
  /// Connections without a first request, and those between two.
  var fresh = IdleConnections()
  var kept = IdleConnections()
  var endingCount = 0
  let whenPaused: @Sendable (String) -> Void
  /// Stands for the listening socket in the library.
  private(set) var listener: OpaquePointer?
  private let certificate: CertificatePair?
  /// The TLS context of the library, which owns it.
  private var tls: UnsafeMutableRawPointer?

  /// What is read from a connection at once, and what the library writes answers of its own into.
  static let serviceByteCount = 16_384

  /// The library closes without a word when its table is full: a head that is somewhat too long still fits.
  var headTableByteCount: Int { min(4 * limits.requestHeadByteCount, Int(UInt16.max)) }

  /// How long a peer may take to read the rest and a close frame.
  private static let closeSeconds: Int32 = 10

  init(
    link: ServerLink, limits: WebServerLimits, certificate: CertificatePair?, handler: any WebServerHandler,
    whenPaused: @escaping @Sendable (String) -> Void
  ) {
    self.whenPaused = whenPaused
    self.link = link
    self.limits = limits
    self.certificate = certificate
    self.handler = handler
    gate = AddressGate(limits.perAddress)
    // Each WebSocket has a buffer of that size; a longer message comes in parts.
    protocols = ProtocolTable(
      name: "palbe", readByteCount: max(128, limits.socketReadByteCount), callback: serverCallback)
    policy = .allocate(capacity: 1)
    policy.initialize(to: lws_retry_bo_t())
    policy.pointee.secs_since_valid_ping = UInt16(clamping: limits.pingInterval.wholeSeconds)
    policy.pointee.secs_since_valid_hangup = UInt16(clamping: limits.silenceTimeout.wholeSeconds)
  }

  deinit { policy.deallocate() }

  /// Nil, and the socket closed, where something is lacking.
  func makeContext(listening socket: ListeningSocket) -> OpaquePointer? {
    var info = lws_context_creation_info()
    info.port = palbe_lws_no_listener()
    info.protocols = UnsafePointer(protocols.list)
    info.user = Unmanaged.passUnretained(self).toOpaque()
    info.options = palbe_lws_option_fallback() | (certificate == nil ? 0 : palbe_lws_option_tls_server())
    info.gid = -1
    info.uid = -1
    info.max_http_header_data = UInt16(clamping: headTableByteCount)
    // Taken only while a head is read, and each holds one.
    info.max_http_header_pool = UInt16(min(limits.connectionCount, 4_096))
    info.pt_serv_buf_size = UInt32(Self.serviceByteCount)
    info.headers = UnsafePointer(silencer.header)
    info.fd_limit_per_thread = UInt32(clamping: limits.connectionCount + 16)
    info.count_threads = 1
    info.timeout_secs = UInt32(clamping: limits.requestTimeout.wholeSeconds)
    info.timeout_secs_ah_idle = UInt32(clamping: limits.requestTimeout.wholeSeconds)
    info.keepalive_timeout = Int32(clamping: limits.idleTimeout.wholeSeconds)
    info.retry_and_idle_policy = UnsafePointer(policy)
    // The library would speak HTTP/2 with whoever offers it.
    let context = "http/1.1".withCString { alpn in
      info.alpn = alpn
      return lws_create_context(&info)
    }
    if let context {
      listener = palbe_lws_watch(lws_get_vhost_by_name(context, "default"), socket.descriptor)
    }
    guard listener != nil else {
      close(socket.descriptor)
      if let context { lws_context_destroy(context) }
      return nil
    }
    return context
  }

  /// The thread's body.
  func run() {
    guard let context = link.context.raw else { return }
    while !link.isStopping.load(ordering: .acquiring) {
      if lws_service(context, 0) < 0 { break }
    }
    closeAll(context)
    link.context.set(nil)
    lws_context_destroy(context)
    for connection in connections.values {
      forgetStreams(connection)
      connection.end(.abnormal)
    }
    connections = [:]
    open = [:]
    waiting = [:]
  }

  /// Gives each WebSocket half a second to take a close frame.
  private func closeAll(_ context: OpaquePointer) {
    for identity in open.values { connections[identity]?.socket?.close(code: 1_001, reason: "server stops") }
    for _ in 0..<50 where !open.isEmpty {
      flushChanged()
      if lws_service(context, -1) < 0 { break }
      usleep(10_000)
    }
  }

  /// What other threads have left for this one.
  func woken() {
    if let pair = link.takeCertificate(), let tls { _ = pair.install(into: tls) }
    if let limits = link.takeAddressLimits() { gate.setLimits(limits) }
    flushChanged()
    streamsChanged()
    for (id, response) in link.takeAnswers() {
      guard let identity = waiting.removeValue(forKey: id), let connection = connections[identity] else {
        continue
      }
      connection.answer = response
      // Written in a callback of its own, which may close it.
      palbe_lws_call_after(identity, 1)
    }
  }

  /// Asks to write wherever another thread has queued something.
  func flushChanged() {
    link.takeChanged(into: &changed)
    for id in changed {
      guard let identity = open[id], let connection = connections[identity] else { continue }
      let (hasOverflowed, isClosing) =
        connection.socket?.withQueue { ($0.hasOverflowed, $0.close != nil) } ?? (false, false)
      if hasOverflowed {
        palbe_lws_kill(identity)
      } else {
        // Who does not take the close frame holds nothing up.
        if isClosing { palbe_lws_kill_after(identity, Self.closeSeconds) }
        lws_callback_on_writable(identity)
      }
    }
  }
}

extension TimeDelta {
  /// Whole seconds, rounded up.
  var wholeSeconds: Int64 { (nanoseconds + 999_999_999) / 1_000_000_000 }
}

/// The library's one entry point. Returning non-zero closes the connection.
private func serverCallback(
  _ identity: OpaquePointer?, _ reason: lws_callback_reasons, _ data: UnsafeMutableRawPointer?,
  _ input: UnsafeMutableRawPointer?, _ length: Int
) -> Int32 {
  guard let identity, let context = lws_get_context(identity), let user = lws_context_user(context) else {
    return 0
  }
  let service = Unmanaged<ServerService>.fromOpaque(user).takeUnretainedValue()
  return service.handle(reason, identity, user: data, input, length)
}

extension ServerService {
  func handle(
    _ reason: lws_callback_reasons, _ identity: OpaquePointer, user: UnsafeMutableRawPointer?,
    _ input: UnsafeMutableRawPointer?, _ length: Int
  ) -> Int32 {
    switch reason {
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
      woken()
      return 0
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS:
      guard let certificate, let user, certificate.install(into: user) == 0 else { return -1 }
      tls = user
      return 0
    case LWS_CALLBACK_RAW_RX_FILE:
      acceptConnections()
      return 0
    case LWS_CALLBACK_SERVER_NEW_CLIENT_INSTANTIATED:
      guard connections[identity] == nil else { return 0 }
      let peer = peerAddress(of: lws_get_socket_fd(identity))
      let connection = ServerConnection(peer: peer)
      connections[identity] = connection
      enterFresh(identity, connection)
      gate.opened(peer)
      // Without an object of its own a connection is closed without LWS_CALLBACK_HTTP_DROP_PROTOCOL.
      lws_set_wsi_user(identity, Unmanaged.passUnretained(self).toOpaque())
      return 0
    case LWS_CALLBACK_WSI_DESTROY:
      forget(identity, .abnormal)
      return 0
    case LWS_CALLBACK_HTTP:
      return request(identity, path: UnsafeRawBufferPointer(start: input, count: length))
    case LWS_CALLBACK_HTTP_BODY:
      return body(identity, UnsafeRawBufferPointer(start: input, count: length))
    case LWS_CALLBACK_HTTP_BODY_COMPLETION:
      return bodyCompleted(identity)
    case LWS_CALLBACK_HTTP_WRITEABLE:
      return continueDownload(identity)
    case LWS_CALLBACK_TIMER:
      guard identity != listener else {
        resumeAccepting()
        return 0
      }
      return timer(identity)
    case LWS_CALLBACK_HTTP_DROP_PROTOCOL:
      if palbe_lws_is_closing(input) != 0 { sayLastWords(identity) }
      return 0
    case LWS_CALLBACK_CLOSED_HTTP:
      sayLastWords(identity)
      return 0
    case LWS_CALLBACK_HTTP_CONFIRM_UPGRADE:
      return confirmUpgrade(identity, to: input)
    case LWS_CALLBACK_ESTABLISHED:
      return established(identity)
    case LWS_CALLBACK_RECEIVE:
      return receive(identity, UnsafeRawBufferPointer(start: input, count: length))
    case LWS_CALLBACK_SERVER_WRITEABLE:
      return write(identity)
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
      connections[identity]?.closure = WebSocketClosure(
        payload: UnsafeRawBufferPointer(start: input, count: length))
      return 0
    case LWS_CALLBACK_CLOSED:
      forget(identity, connections[identity]?.closure ?? .abnormal)
      return 0
    case LWS_CALLBACK_RAW_RX:
      // CONNECT turns a connection raw, and so does what begins with no method.
      sayLastWords(identity)
      return -1
    default:
      return 0
    }
  }

  func forget(_ identity: OpaquePointer, _ closure: WebSocketClosure) {
    guard let connection = connections[identity] else { return }
    leaveIdle(connection)
    if connection.isEnding { endingCount -= 1 }
    if let socket = connection.socket { open[socket.id] = nil }
    if let id = connection.requestID { waiting[id] = nil }
    forgetStreams(connection)
    bodiesByteCount -= connection.request?.body.count ?? 0
    gate.closed(connection.peer)
    connection.end(closure)
    // The library may still call for a closed WebSocket: an empty entry answers until it is destroyed.
    connections[identity] = nil
  }

  // MARK: WebSockets

  private func confirmUpgrade(_ identity: OpaquePointer, to name: UnsafeMutableRawPointer?) -> Int32 {
    guard let connection = connections[identity], connection.download == nil else { return -1 }
    leaveIdle(connection)
    connection.mayStayOpen = false
    let request = RequestReader(identity, limits, peer: connection.peer).read(path: nil)
    guard gate.admitsRequest(from: connection.peer) else {
      return refuse(identity, .tooManyRequests, request)
    }
    let name = name.map { String(cString: $0.assumingMemoryBound(to: CChar.self)) } ?? ""
    guard name.lowercased() == "websocket" else { return refuse(identity, .unknownUpgrade, request) }
    guard request.method == "GET", request.header("host") != nil,
      let key = request.header("sec-websocket-key"), (16...64).contains(key.utf8.count),
      request.header("connection")?.lowercased().contains("upgrade") == true
    else { return refuse(identity, .malformedUpgrade, request) }
    guard request.header("sec-websocket-version") == "13" else {
      return refuse(identity, .webSocketVersion, request)
    }
    let socket = WebSocket(queueByteLimit: limits.sendQueueByteCount) { [link] in link.socketChanged($0) }
    switch handler.upgrade(request, socket: socket) {
    case .accept(let events):
      connection.socket = socket
      connection.events = events
      return 0
    case .reject(let response):
      socket.withQueue { $0.end() }
      return write(identity, response)
    }
  }

  private func established(_ identity: OpaquePointer) -> Int32 {
    guard let connection = connections[identity], let socket = connection.socket else { return -1 }
    open[socket.id] = identity
    if var bound = limits.socketSendByteCount.map(Int32.init(clamping:)) {
      setsockopt(lws_get_socket_fd(identity), SOL_SOCKET, SO_SNDBUF, &bound, 4)
    }
    connection.events?.opened()
    lws_callback_on_writable(identity)
    return socket.withQueue { $0.hasOverflowed } ? -1 : 0
  }

  private func receive(_ identity: OpaquePointer, _ bytes: UnsafeRawBufferPointer) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    // Whoever speaks is there, as who answers a ping is.
    lws_validity_confirmed(identity)
    if lws_is_first_fragment(identity) != 0 { connection.message = [] }
    guard connection.message.count + bytes.count <= limits.messageByteCount else {
      return fail(identity, connection, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE)
    }
    connection.message.append(contentsOf: bytes)
    guard lws_is_final_fragment(identity) != 0 else { return 0 }
    let message = connection.message
    connection.message = []
    if lws_frame_is_binary(identity) != 0 {
      connection.events?.received(binary: message)
    } else {
      guard let text = String(validating: message, as: UTF8.self) else {
        return fail(identity, connection, LWS_CLOSE_STATUS_INVALID_PAYLOAD)
      }
      connection.events?.received(text: text)
    }
    return 0
  }

  private func fail(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ status: lws_close_status
  ) -> Int32 {
    connection.message = []
    connection.closure = WebSocketClosure(code: UInt16(truncatingIfNeeded: status.rawValue))
    lws_close_reason(identity, status, nil, 0)
    return -1
  }

  private func write(_ identity: OpaquePointer) -> Int32 {
    guard let connection = connections[identity], let socket = connection.socket else { return 0 }
    let (message, close, isEmpty) = socket.withQueue { queue in
      let message = queue.next()
      return (message, message == nil ? queue.close : nil, queue.isEmpty && queue.close == nil)
    }
    switch message {
    case .binary(let bytes):
      guard writeBytes(identity, bytes, LWS_WRITE_BINARY) else { return -1 }
    case .text(let text):
      guard writeBytes(identity, Array(text.utf8), LWS_WRITE_TEXT) else { return -1 }
    case nil:
      guard let close else { return 0 }
      var reason = Array(close.reason.utf8.prefix(123))
      lws_close_reason(identity, lws_close_status(UInt32(close.code)), &reason, reason.count)
      connection.closure = connection.closure ?? WebSocketClosure(code: close.code, reason: close.reason)
      return -1
    }
    if !isEmpty { lws_callback_on_writable(identity) }
    return 0
  }
}

/// What the server knows of one connection.
final class ServerConnection {
  /// Who is at the other end.
  let peer: SocketAddress
  /// Where it is listed while it has no request.
  var idleTicket: IdleTicket?
  /// It was told to end.
  var isEnding = false
  /// What is to come of the body, and how fast it comes, unless it came in one piece.
  var bodyRemaining: Int64 = 0
  var pace: BodyPace?
  /// A plain request whose body is on its way.
  var request: HTTPRequest?
  /// The answer to the last request leaves out its body.
  var omitsBody = false
  /// Another request may follow the last one.
  var mayStayOpen = false
  /// Bytes read from the socket when the last request was answered; nil before the first.
  var readCount: Int64?
  /// The request that waits for an answer, who gives it, and the answer once it has come.
  var requestID: UInt64?
  /// Kept for its answer when the time is over, not to keep it alive.
  weak var responder: HTTPResponder?
  var answer: HTTPResponse?
  /// A body that comes, and one that goes, piece by piece.
  var upload: BodyUpload?
  var download: BodyDownload?
  /// Requests that came during a download, and whether others may follow them.
  var pipelined: [(request: HTTPRequest, stays: Bool)] = []
  var socket: WebSocket?
  var events: (any WebSocketHandler)?
  /// The message whose fragments are on their way.
  var message: [UInt8] = []
  /// How it ends, once that is known.
  var closure: WebSocketClosure?

  enum IdleTicket { case fresh(UInt64), kept(UInt64) }

  init(peer: SocketAddress) { self.peer = peer }

  /// The connection is gone; only the first call counts.
  func end(_ closure: WebSocketClosure) {
    socket?.withQueue { $0.end() }
    events?.closed(self.closure ?? closure)
    events = nil
    message = []
    requestID = nil
    request = nil
    answer = nil
  }
}
