import PalbeDTLS
import PalbeEventLoop
public import PalbeSFUCore
public import PalbeUnits
import PalbeWebServer
import Synchronization

/// The SFU as a running server: a signaling port, and workers that forward media.
///
///     var configuration = SFUServer.Configuration(keys: ["devkey": "secret"])
///     configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
///     let server = try SFUServer(configuration)
///     print(server.signalingAddress, server.mediaAddresses)
///     server.stop()
///
/// ## Overview
///
/// One thread serves HTTP and WebSockets and decides who may join. Each worker thread owns a UDP socket and
/// the rooms whose names fall to it; a room never changes its worker, and the workers share nothing on a
/// packet's path.
public final class SFUServer: Sendable {
  /// How the server runs.
  public struct Configuration: Sendable {
    /// The address both ports listen on; "0.0.0.0" is every IPv4 address, "::" every address. Its port is not
    /// read.
    public var host = SocketAddress(ipv4: 0, 0, 0, 0, port: 0)
    /// The TCP port of signaling; 0 takes any free one.
    public var port: UInt16 = 7_880
    /// The UDP port of the first worker, whose successors take the ones after it; 0 gives each any free one.
    public var udpPort: UInt16 = 7_882
    /// API key name to secret; a token signed with one of them lets its holder in.
    public var keys: [String: String]
    /// A PEM file with the certificate of the signaling port and its chain, which then speaks TLS only.
    public var certificatePath: String?
    /// The certificate's private key, in PEM.
    public var certificateKeyPath: String?
    /// How many workers; at least one.
    public var workerCount = Host.processorCount
    /// The address that clients are told to send media to, instead of the host's own. Its port is not read.
    public var nodeAddress: SocketAddress?
    /// A file for every RTP packet received, as it was after SRTP: a debugging aid that shows what the SFU
    /// can see.
    public var auditLogPath: String?
    /// How rooms and participants are treated; each worker's candidates are its own.
    public var worker = SFUConfiguration(candidates: [])
    /// Where events are told.
    public var log = ServerLog(level: .info)

    /// The default ports on every IPv4 address.
    public init(keys: [String: String]) { self.keys = keys }
  }

  /// Where signaling listens.
  public let signalingAddress: SocketAddress
  /// Where the workers listen, in their order.
  public let mediaAddresses: [SocketAddress]
  private let inboxes: [WorkerInbox]
  private let threads: [WorkerThread]
  private let service: SignalingService
  private let web: WebServer
  private let log: ServerLog
  private let isStopped = Atomic<Bool>(false)

  /// Opens all ports and starts.
  public init(_ configuration: Configuration) throws(SFUServerError) {
    let log = configuration.log
    let rooms = LiveRooms()
    let workers = try Workers(configuration) { rooms.take($0) }
    let service = SignalingService(
      keys: configuration.keys, inboxes: workers.inboxes, rooms: rooms,
      createsRooms: configuration.worker.createsRooms, log: log)
    do throws(WebServerError) {
      web = try WebServer(
        host: configuration.host.host, port: configuration.port, certificate: configuration.certificate,
        limits: SignalingService.limits, handler: service)
    } catch {
      workers.stop()
      throw SFUServerError(error, host: configuration.host.host)
    }
    var address = configuration.host
    address.port = web.port
    signalingAddress = address
    mediaAddresses = workers.addresses
    inboxes = workers.inboxes
    threads = workers.threads
    self.service = service
    self.log = log
    for fields in workers.started { log.write(.info, "worker started", fields) }
    log.write(
      .info, "server started",
      [("signaling", address.description), ("workers", "\(workers.threads.count)")])
  }

  deinit { stop() }

  /// From now on no room begins, and `/ready` says so; calls go on, and who belongs to them may join.
  public func drain() { service.drain() }

  /// Reads the certificate and its key again. Connections stay as they are; when the files cannot be used,
  /// so does the certificate.
  public func reloadCertificates() throws(SFUServerError) {
    do throws(CertificateError) {
      guard let expiry = try web.reloadCertificate() else { return }
      log.write(.info, "certificate loaded", [("expires_unix", "\(expiry)")])
    } catch {
      throw .certificate(error.description)
    }
  }

  /// Tells every participant to leave, closes all sockets and ends all threads; returns when that is done,
  /// within a second. Only the first call does anything.
  public func stop() {
    guard !isStopped.exchange(true, ordering: .relaxed) else { return }
    service.stop()
    for inbox in inboxes { inbox.post(.stop) }
    for thread in threads { thread.join() }
    web.stop()
    log.write(.info, "server stopped")
  }
}

extension SFUServer.Configuration {
  fileprivate var certificate: CertificateFiles? {
    guard let certificatePath else { return nil }
    // A file may hold both.
    return CertificateFiles(certificate: certificatePath, key: certificateKeyPath ?? certificatePath)
  }
}

/// The workers and their threads.
private struct Workers {
  private(set) var inboxes: [WorkerInbox] = []
  private(set) var threads: [WorkerThread] = []
  private(set) var addresses: [SocketAddress] = []
  /// What the log says of each, once nothing can fail any more: a port in use is told by one line alone.
  private(set) var started: [[(String, String)]] = []

  /// - Parameter notify: gets each worker's notices, on its thread.
  init(
    _ configuration: SFUServer.Configuration, notify: @escaping @Sendable (RoomNotice) -> Void
  ) throws(SFUServerError) {
    let count = max(1, configuration.workerCount)
    guard configuration.udpPort == 0 || Int(configuration.udpPort) + count - 1 <= 65_535 else {
      throw .tooManyWorkers(count: count, firstPort: configuration.udpPort)
    }
    let audit: AuditFile?
    if let path = configuration.auditLogPath { audit = try AuditFile(path: path) } else { audit = nil }
    let identity = try Self.identity()
    do throws(SFUServerError) {
      for index in 0..<count { try start(index, configuration, identity, audit, notify) }
    } catch {
      stop()
      throw error
    }
  }

  func stop() {
    for inbox in inboxes { inbox.post(.stop) }
    for thread in threads { thread.join() }
  }

  private static func identity() throws(SFUServerError) -> DTLSIdentity {
    var random = SystemRandom.source()
    do throws(DTLSError) {
      return try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &random)
    } catch {
      throw .system("no certificate could be made")
    }
  }

  private mutating func start(
    _ index: Int, _ configuration: SFUServer.Configuration, _ identity: DTLSIdentity, _ audit: AuditFile?,
    _ notify: @escaping @Sendable (RoomNotice) -> Void
  ) throws(SFUServerError) {
    let socket = try Self.open(index, configuration)
    let address = socket.localAddress
    let inbox: WorkerInbox
    let log = configuration.log
    do throws(SystemError) {
      inbox = try WorkerInbox()
      let candidates = HostCandidates.candidates(
        of: address, node: configuration.nodeAddress, hostAddresses: try Host.localAddresses())
      var settings = configuration.worker
      settings.candidates = candidates
      settings.serverVersion = Release.version
      let seed = WorkerSeed(
        index: index, socket: socket, poller: try Poller(), inbox: inbox, configuration: settings,
        identity: identity, auditFile: audit, log: log, minter: TokenMinter(keys: configuration.keys),
        notify: notify)
      let thread = try WorkerThread(name: "sfu-worker-\(index)", moving: seed) { seed in
        do throws(SystemError) {
          var worker = try MediaWorker(seed)
          worker.run()
        } catch {
          log.write(.warning, "worker failed", [("worker", "\(index)"), ("reason", error.description)])
        }
      }
      threads.append(thread)
      started.append([
        ("worker", "\(index)"), ("media", address.description),
        ("candidates", candidates.map(\.description).joined(separator: ",")),
      ])
    } catch {
      throw .system(error.description)
    }
    inboxes.append(inbox)
    addresses.append(address)
  }

  private static func open(
    _ index: Int, _ configuration: SFUServer.Configuration
  ) throws(SFUServerError) -> UDPSocket {
    var address = configuration.host
    address.port = configuration.udpPort == 0 ? 0 : configuration.udpPort + UInt16(index)
    var options = UDPSocket.Options()
    options.isDualStack = address.family == .ipv6 && address.high == 0 && address.low == 0
    do throws(SocketError) {
      return try UDPSocket(binding: address, options: options)
    } catch {
      throw SFUServerError(error, host: address.host)
    }
  }
}
