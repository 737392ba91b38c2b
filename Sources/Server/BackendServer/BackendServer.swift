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
    /// What attachments may use.
    package var blobs = BlobStore.Settings()
    /// What stands before the path in addresses of attachments; empty for relative ones.
    package var publicURL = ""
    /// Where pushes go; nil drops them.
    package var pushes: PushDestination?
    /// The port of metrics, and who may read them.
    package var metrics: (port: UInt16, page: MetricsPage)?
    package var log = ServerLog(level: .warning)
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
  package let blobs: BlobStore
  package let requests: RequestMetrics
  private let faults: FaultLog
  /// Where metrics are told.
  package let metricsPort: UInt16?
  private let pushes: PushSender?
  private let control: ControlSocket
  private let service: BackendService
  private let web: WebServer
  private let metrics: (page: ServerMetrics, web: WebServer)?
  private let folder: DataFolder

  /// Opens the folder and starts to listen.
  /// - Parameters:
  ///   - verifier: knows the sessions; nil makes accounts in the same folder.
  ///   - prepare: gets the store before it is used, for tests.
  package init(
    _ configuration: Configuration, verifier: (any SessionVerifier)? = nil,
    prepare: (SQLiteBackendStore) -> Void = { _ in }
  ) throws {
    // What can be refused without the folder is refused before one is made.
    try configuration.checkOutside(withAccounts: verifier == nil)
    folder = try DataFolder(configuration.data)
    if folder.isOpenToOthers {
      configuration.log.write(
        .warning, "the data folder is open to others: make its mode 0700", [("folder", folder.root)])
    }
    try folder.takeLogs()
    // A file for pushes may be in that folder.
    try configuration.pushes?.check()
    let store: SQLiteBackendStore
    let file = folder.path("messages.sqlite")
    // A file that is gone is not made anew beside one that remembers: all devices would hear that they were never enrolled, or
    // all people that they have no account. Messages come first: a start that was cut short has no accounts yet.
    let mayBeNew = verifier != nil || !folder.holds("accounts.sqlite")
    do throws(SQLError) { store = try SQLiteBackendStore(path: file, mayBeNew: mayBeNew) } catch {
      throw Failure(description: "cannot open \(file): \(error.words)")
    }
    prepare(store)
    // Neither are keys: what was given out with those that are gone would hold no more, without a word.
    let isNew = try !Self.reading(file) { try store.hasUsers() }
    tokens = DeviceTokens(key: SymmetricKey(copying: try folder.key(.deviceTokens, mayBeNew: isNew)))
    let log = configuration.log
    let faults = FaultLog(log)
    self.faults = faults
    let (link, verifier): (AccountLink?, any SessionVerifier) =
      if let verifier { (nil, verifier) } else {
        try Self.accounts(in: folder, configuration.accounts, isNew, log, faults)
      }
    self.link = link
    let known = try Self.knownBlobs(store, file, log)
    let blobs = try Self.openBlobs(folder, configuration.blobs, known, log, faults)
    self.blobs = blobs
    let pushes = try configuration.pushes.map { try PushSender($0, log: log) }
    self.pushes = pushes
    let hub = RealtimeHub(verifier: verifier, settings: configuration.realtime)
    self.hub = hub
    let deliver: BackendLoop.Deliver = { event, subscribers in
      switch event {
      case .wakePush(let wake): pushes?.send(wake)
      case .deleteBlobs(let ids): blobs.delete(ids)
      case .storeFault(let fault): faults.note(fault, of: .messages)
      case .publish, .subscriptionEnded: hub.deliver(event, to: subscribers)
      }
    }
    loop = try Self.reading(file) {
      try BackendLoop(
        store: store, settings: configuration.loop, tick: { hub.sweep(at: $0) }, deliver: deliver)
    }
    hub.attach(loop)
    link?.connect(loop, hub)
    let urls = BlobURLs(key: try folder.key(.blobAddresses, mayBeNew: isNew), origin: configuration.publicURL)
    // As blobs themselves expire: setting the clock ends no upload.
    let clock = { @Sendable [begun = ServerTime.now] in ServerTime.now.expiryTime(since: begun).seconds }
    let bytes = BlobService(store: blobs, urls: urls, now: clock) { refusal, request in
      APIError(refusal).response(requestID: request.header("request-id") ?? "")
    }
    let files = ["messages.sqlite", "accounts.sqlite"].compactMap { [folder] in FilePlace(folder.path($0)) }
    let others = RouteTable.documentRoutes(
      tokens,
      others: RouteTable.accountRoutes(link?.service) + [RouteTable.readyRoute(files)]
        + RouteTable.blobRoutes(urls, blobs, loop, now: clock))
    requests = RequestMetrics(log: log)
    service = BackendService(
      table: RouteTable(devices: tokens, others: others), loop: loop, limits: configuration.loop.limits,
      verifier: verifier, tokens: tokens, hub: hub, parts: [bytes], metrics: requests)
    let pauses = AcceptPauses(log: log)
    web = try WebServer(
      host: configuration.host, port: configuration.port, certificate: configuration.certificate,
      limits: configuration.web, handler: service, whenPaused: pauses.note)
    port = web.port
    metrics = try configuration.metrics.map { [requests, loop, faults] metrics in
      let begun = WallClock.unixSeconds
      let page = ServerMetrics(metrics.page) { text in
        requests.write(into: &text)
        text.add(loop)
        faults.write(into: &text)
        text.add(hub)
        text.add(blobs)
        text.add(pushes)
        if let link { text.add(link.service.statistics) }
        text.add(pauses, of: "palbe_server")
        text.addProcess(startedAt: begun)
        text.family("palbe_server_info", .gauge, "The version, always 1.") {
          $0.sample([("version", Release.version)], value: 1)
        }
      }
      let web = try WebServer(
        host: configuration.host, port: metrics.port, limits: MetricsPage.limits, handler: page,
        whenPaused: pauses.note)
      return (page, web)
    }
    metricsPort = metrics?.web.port
    control = try ControlSocket(path: folder.path(Self.controlName)) {
      [root = folder.root, loop, link] line in
      guard line.hasPrefix("backup /") else { return "unknown request" }
      let others = link.map { link in
        [DataBackup.Source(name: "accounts.sqlite") { try link.service.copy(to: $0) }]
      }
      return Self.backUp(root, to: String(line.dropFirst(7)), loop: loop, blobs: blobs, others: others ?? [])
    }
    try pushes?.start()
    try folder.noteLogs(of: ["messages.sqlite", "accounts.sqlite"])
  }

  private static func accounts(
    in folder: DataFolder, _ settings: AccountSettings, _ isNew: Bool, _ log: ServerLog, _ faults: FaultLog
  ) throws -> (AccountLink?, any SessionVerifier) {
    let link = try AccountLink(folder: folder, settings: settings, mayBeNew: isNew, log: log, faults: faults)
    return (link, link.service)
  }

  /// What the store refuses at the start, with the name of its file.
  private static func reading<Value>(_ file: String, _ body: () throws -> Value) throws -> Value {
    do { return try body() } catch BackendFailure.unavailable(let fault) {
      throw Failure(description: "cannot read \(file): \(fault.words)")
    }
  }

  /// Nil when the database is damaged there: nobody knows then whose bytes a file holds, so all of them stay.
  private static func knownBlobs(
    _ store: SQLiteBackendStore, _ file: String, _ log: ServerLog
  ) throws -> Set<BlobID>? {
    do { return try store.blobIDs() } catch BackendFailure.unavailable(.corrupted) {
      log.write(.warning, "attachments cannot be told from orphans", [("damaged", file)])
      return nil
    } catch { return try reading(file) { throw error } }
  }

  /// Bytes whose blob went while nobody could remove them go now.
  private static func openBlobs(
    _ folder: DataFolder, _ settings: BlobStore.Settings, _ known: Set<BlobID>?, _ log: ServerLog,
    _ faults: FaultLog
  ) throws -> BlobStore {
    let path = folder.path("blobs")
    do {
      let blobs = try BlobStore(folder: path, settings: settings, knowing: known, faults: faults)
      let count = blobs.orphanCount
      if count > 0 { log.write(.info, "orphans removed", [("blobs", "\(count)")]) }
      return blobs
    } catch {
      throw Failure(description: "cannot open \(path): \(error)")
    }
  }

  /// Refuses new requests, and asks sockets to come again later; what waits is still answered.
  package func drain() { service.drain() }

  /// Requests and sockets that a drain waits for.
  package var openCount: Int { requests.openCount + hub.count }

  /// What can change while it runs.
  package struct Adjustments: Sendable {
    /// What the backend takes, and how long it keeps it.
    package var limits = BackendLimits()
    /// What one address may do.
    package var perAddress = AddressLimits()
    /// Bytes of the disk that attachments leave.
    package var reservedByteCount = BlobStore.Settings().reservedByteCount
    /// Who may read metrics.
    package var metricsPage = MetricsPage()
    /// The defaults.
    package init() {}
  }

  /// Takes over what has changed, and reads the certificate again. The log's level is the log's.
  package func reload(_ new: Adjustments) throws(CertificateError) {
    loop.setLimits(new.limits)
    service.setLimits(new.limits)
    web.setAddressLimits(new.perAddress)
    blobs.reservedByteCount = new.reservedByteCount
    metrics?.page.reload(new.metricsPage)
    try web.reloadCertificate()
  }

  /// Ends everything: what waits is done and answered, the store is closed.
  package func stop() {
    drain()
    control.stop()
    folder.forgetLogs()
    link?.stop()
    loop.stop()
    web.stop()
    metrics?.web.stop()
    pushes?.stop()
    blobs.stop()
    folder.unlock()
  }

  /// Many sockets that mostly wait, and bodies of up to six parts of a mebibyte.
  package static let webLimits: WebServerLimits = {
    var limits = WebServerLimits()
    limits.connectionCount = 65_000
    limits.requestHeadByteCount = 16_384
    limits.requestBodyByteCount = 6 << 20
    limits.messageByteCount = RealtimeFrame.byteLimit
    limits.socketReadByteCount = 1_024
    // Ten thousand clients that do not read are 2.5 GB at most.
    limits.socketSendByteCount = 128 << 10
    limits.sendQueueByteCount = 8 << 20
    limits.responseTimeout = .seconds(40)
    limits.pingInterval = .seconds(25)
    // After the hub's 60 s, which end with a code.
    limits.silenceTimeout = .seconds(90)
    limits.additionalHeaderNames = ["palbe-device", "idempotency-key", "request-id"]
    limits.commonHeaders = [.init("cache-control", "no-store")]
    return limits
  }()
}
