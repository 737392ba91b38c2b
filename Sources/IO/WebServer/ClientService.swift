import CPalbeLinux
import CPalbeWebSockets
import PalbeUnits
import Synchronization

/// The thread that all client connections with the same trust share. It lives as long as the process.
///
/// Of a ws connection the library makes the TCP part only; HTTP and frames above it are ours, because the
/// library does not hand out the body of a refused upgrade. Its raw connections know no TLS, so a wss
/// connection
/// is wholly its own.
final class ClientService: Sendable {
  enum Command: Sendable {
    case connect(ClientConnection)
    /// The queue has changed, or the connection is abandoned.
    case flush(ClientConnection)
  }

  /// Which certificate authorities a service trusts; TLS costs a start-up that plain connections do not
  /// pay.
  private enum Trust: Hashable {
    case none, system
    case file(String)
  }
  private static let services = Mutex<[Trust: ClientService]>([:])
  private static let serviceLimit = 16

  private let context = ServiceContext()
  private let commands = Mutex<[Command]>([])

  static func service(for url: WebSocketURL, options: WebSocketClient.Options) -> ClientService? {
    let trust: Trust = url.isSecure ? options.trustedCertificateFile.map { .file($0) } ?? .system : .none
    return services.withLock { services in
      if let service = services[trust] { return service }
      guard services.count < serviceLimit, let service = ClientService(trust) else { return nil }
      services[trust] = service
      return service
    }
  }

  private struct Moved: @unchecked Sendable { let loop: ClientLoop }

  private init?(_ trust: Trust) {
    WebLibrary.initialize()
    let loop = ClientLoop()
    var info = lws_context_creation_info()
    info.port = Int32(CONTEXT_PORT_NO_LISTEN)
    info.protocols = UnsafePointer(loop.protocols.list)
    info.user = Unmanaged.passUnretained(loop).toOpaque()
    info.gid = -1
    info.uid = -1
    info.fd_limit_per_thread = 4_096
    info.count_threads = 1
    // The library reads the headers of a wss answer into its table, and writes the request into its buffer.
    info.max_http_header_data = 40_960
    info.pt_serv_buf_size = trust == .none ? 16_384 : 98_304
    let created: OpaquePointer?
    switch trust {
    case .none: created = lws_create_context(&info)
    case .system:
      info.options = palbe_lws_option_tls()
      created = lws_create_context(&info)
    case .file(let path):
      info.options = palbe_lws_option_tls() | palbe_lws_option_no_system_roots()
      created = path.withCString { path in
        info.client_ssl_ca_filepath = path
        return lws_create_context(&info)
      }
    }
    guard let created else { return nil }
    context.set(created)
    loop.service = self
    let moved = Moved(loop: loop)
    let thread = ServiceThread(name: "web-client") { [context] in
      guard let raw = context.raw else { return }
      while lws_service(raw, 0) >= 0 {}
      withExtendedLifetime(moved) {}
    }
    guard thread != nil else {
      context.set(nil)
      lws_context_destroy(created)
      return nil
    }
  }

  func post(_ command: Command) {
    let isFirst = commands.withLock { commands in
      commands.append(command)
      return commands.count == 1
    }
    if isFirst { context.wake() }
  }

  func takeCommands() -> [Command] {
    commands.withLock { commands in
      defer { commands = [] }
      return commands
    }
  }

  var raw: OpaquePointer? { context.raw }
}

/// The service thread's state.
final class ClientLoop {
  var service: ClientService?
  let protocols = ProtocolTable(name: "palbe-client", readByteCount: 16_384, callback: clientCallback)
  var links: [UInt: ClientLink] = [:]
}

/// A connection as its thread sees it.
final class ClientLink {
  enum Phase {
    /// Nothing to be read yet, or the answer to the upgrade.
    case upgrading(UpgradeResponseReader)
    case open(WebSocketFrameReader)
    /// Our close frame is sent: only the peer's is waited for.
    case closing(WebSocketFrameReader)
    /// A WebSocket of the library's own, over TLS; the message whose fragments are on their way.
    case native([UInt8])
    /// What comes is not read any more.
    case ended
  }

  let connection: ClientConnection
  var identity: OpaquePointer?
  var phase = Phase.upgrading(UpgradeResponseReader())
  var expectedAccept = ""
  /// Frames that go before queued messages: the request, pongs, a close frame.
  var urgent: [[UInt8]] = []
  var closesAfterUrgent = false
  /// A ping of a `native` connection is due.
  var owesPing = false
  /// The connection stands and the request is on its way.
  var hasBegun = false
  var closure: WebSocketClosure?
  /// When something came last, in microseconds of the library's clock.
  var lastHeard: lws_usec_t = 0

  init(_ connection: ClientConnection) { self.connection = connection }
}
