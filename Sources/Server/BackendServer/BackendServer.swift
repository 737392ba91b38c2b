import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeEventLoop
import PalbeSQLStore
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer

/// The delivery server of one process: one folder, one port.
///
///     let server = try BackendServer(configuration)
///     print(server.port)
///     server.stop()
package final class BackendServer: Sendable {
  /// How to run it.
  package struct Configuration: Sendable {
    /// An address of this host; "::" is all.
    package var host = "127.0.0.1"
    /// 0 takes any free one.
    package var port: UInt16 = 0
    /// The folder with everything that is kept.
    package var data: String
    /// For TLS.
    package var certificate: CertificateFiles?
    /// What the loop takes.
    package var loop = BackendLoop.Settings()
    /// What sockets may do.
    package var realtime = RealtimeHub.Settings()
    /// Who may sign in, and how.
    package var accounts = AccountSettings()
    /// What the web server takes.
    package var web = BackendServer.webLimits
    /// Defaults over a folder.
    package init(data: String) { self.data = data }
  }

  /// Why it did not start, in words for a person.
  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  /// Where it listens.
  package let port: UInt16
  /// Its parts, for metrics and tests.
  package let loop: BackendLoop
  package let hub: RealtimeHub
  package let tokens: DeviceTokens
  /// Nil when somebody else knows the sessions.
  package var accounts: AccountService? { link?.service }
  private let link: AccountLink?
  private let service: BackendService
  private let web: WebServer
  private let folder: DataFolder

  /// Opens the folder and starts to listen.
  /// - Parameter verifier: knows the sessions; nil makes accounts in the same folder.
  package init(_ configuration: Configuration, verifier: (any SessionVerifier)? = nil) throws {
    folder = try DataFolder(configuration.data)
    tokens = DeviceTokens(key: SymmetricKey(copying: try folder.key("device-tokens")))
    let store: SQLiteBackendStore
    let file = folder.path("messages.sqlite")
    do throws(SQLError) { store = try SQLiteBackendStore(path: file) } catch {
      throw Failure(description: "cannot open \(file): \(error)")
    }
    let link =
      try verifier == nil
      ? AccountLink(folder: folder, settings: configuration.accounts, log: ServerLog(level: .info)) : nil
    self.link = link
    let verifier: any SessionVerifier =
      verifier ?? link.map { $0.service as any SessionVerifier } ?? NoSessions()
    let hub = RealtimeHub(verifier: verifier, settings: configuration.realtime)
    self.hub = hub
    loop = try BackendLoop(
      store: store, settings: configuration.loop, tick: { hub.sweep(at: $0) },
      deliver: { hub.deliver($0, to: $1) })
    hub.attach(loop)
    link?.connect(loop, hub)
    let others = RouteTable.accountRoutes(link?.service)
    let table = RouteTable(devices: tokens, others: RouteTable.documentRoutes(tokens, others: others))
    service = BackendService(
      table: table, loop: loop, verifier: verifier, tokens: tokens, hub: hub, parts: [])
    web = try WebServer(
      host: configuration.host, port: configuration.port, certificate: configuration.certificate,
      limits: configuration.web, handler: service)
    port = web.port
  }

  /// Refuses new requests, and asks sockets to come again later; what waits is still answered.
  package func drain() { service.drain() }

  /// Ends everything: what waits is done and answered, the store is closed.
  package func stop() {
    drain()
    link?.stop()
    loop.stop()
    web.stop()
  }

  /// Many sockets that mostly wait, and bodies of up to six parts of a mebibyte.
  package static let webLimits: WebServerLimits = {
    var limits = WebServerLimits()
    limits.connectionCount = 65_000
    limits.requestHeadByteCount = 16_384
    limits.requestBodyByteCount = 6 << 20
    limits.messageByteCount = RealtimeFrame.byteLimit
    limits.socketReadByteCount = 1_024
    limits.sendQueueByteCount = 8 << 20
    limits.responseTimeout = .seconds(40)
    limits.pingInterval = .seconds(25)
    limits.silenceTimeout = .seconds(60)
    limits.additionalHeaderNames = ["palbe-device", "idempotency-key", "request-id"]
    limits.commonHeaders = [.init("cache-control", "no-store")]
    return limits
  }()
}
