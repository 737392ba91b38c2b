import PalbeDTLS
import PalbeEventLoop
public import PalbeSFUCore
public import PalbeServerObservation
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
    public var host = SocketAddress(ipv6High: 0, low: 0, port: 0)
    /// The TCP port of signaling; 0 takes any free one.
    public var port: UInt16 = 7_880
    /// The UDP port of the first worker, whose successors take the ones after it; 0 gives each any free one.
    public var udpPort: UInt16 = 7_882
    /// The TCP port on which the first worker takes media of clients that cannot send UDP (ICE-TCP); its successors take
    /// the ones after it. 0 gives each any free one, nil turns it off; LiveKit's is 7881.
    public var tcpPort: UInt16?
    /// API key name to secret; a token signed with one of them lets its holder in.
    public var keys: [String: String]
    /// A PEM file with the certificate of the signaling port and its chain, which then speaks TLS only.
    public var certificatePath: String?
    /// The certificate's private key, in PEM.
    public var certificateKeyPath: String?
    /// Who is told what happens in rooms.
    public var webhooks = Webhooks()
    /// How many workers; at least one.
    public var workerCount = Host.processorCount
    /// Several addresses to listen on instead of `host`; their ports are not read. Media is then heard on every address
    /// of the host and only these are announced.
    public var bindAddresses: [SocketAddress] = []
    /// The address that clients are told to send media to, instead of the host's own ones of the same family. Its port is
    /// not read.
    public var nodeAddress: SocketAddress?
    /// Finds the address to announce by asking STUN servers, where `nodeAddress` is nil.
    public var usesExternalAddress = false
    /// The servers to ask, as "name:port"; public ones where this is empty.
    public var stunServers: [String] = []
    /// Clients are told of the TCP ports alone.
    public var announcesOnlyTCP = false
    /// The host's own addresses are announced beside the external one.
    public var announcesInternalAddresses = false
    /// A file for every RTP packet received, as it was after SRTP: a debugging aid that shows what the SFU
    /// can see.
    public var auditLogPath: String?
    /// How rooms and participants are treated; each worker's candidates are its own.
    public var worker = SFUConfiguration(candidates: [])
    /// A subscriber's neighbouring packets go to the kernel as one message (UDP_SEGMENT).
    public var usesSegmentation = true
    /// Where and to whom metrics are told; nil tells nobody.
    public var metrics: MetricsConfiguration?
    /// Where events are told.
    public var log = ServerLog(level: .info)

    /// What is taken at once and from one address.
    public var limits = Limits()

    /// What the server takes before it knows whom from. An IPv6 network of 64 bits is one address; this machine's own are
    /// not limited, since a proxy may run on it.
    public struct Limits: Sendable {
      /// Connections to the signaling port.
      public var connections = 16_384
      /// Connections of one address to the signaling port, and to each worker's port for ICE-TCP.
      public var connectionsPerAddress = 1_024
      /// New connections of one address in a second, to the signaling port; in a burst ten times that.
      public var newConnectionsPerAddress = 100
      /// Requests of one address in a second, joins among them; in a burst ten times that.
      public var requestsPerAddress = 200

      /// The limits above.
      public init() {}
    }

    /// Where events are posted to.
    public struct Webhooks: Sendable {
      /// http or https; each gets every event. Empty turns webhooks off.
      public var urls: [String] = []
      /// The name of the API key that signs; nil takes the first by name.
      public var keyName: String?
      /// A PEM file of certificate authorities to trust instead of the system's.
      public var authoritiesPath: String?

      /// None.
      public init() {}
    }

    /// The default ports on every address of the host.
    public init(keys: [String: String]) { self.keys = keys }
  }

  /// Where signaling listens.
  public let signalingAddress: SocketAddress
  /// Where the workers listen, in their order.
  public let mediaAddresses: [SocketAddress]
  /// Where the workers take ICE-TCP, in their order; empty when that is off.
  public let streamAddresses: [SocketAddress]
  let inboxes: [WorkerInbox]
  private let dataPorts: [SCTPPort]
  private let threads: [WorkerThread]
  /// Where metrics are told; nil when they are not.
  public let metricsAddress: SocketAddress?
  private let access: LiveAccess
  private let service: SignalingService
  private let webs: [WebServer]
  private let metrics: WebServer?
  private let webhooks: WebhookSender
  private let log: ServerLog
  private let isStopped = Atomic<Bool>(false)

  /// Opens all ports and starts.
  public init(_ configuration: Configuration) throws(SFUServerError) {
    let log = configuration.log
    let rooms = LiveRooms(workerCount: max(1, configuration.workerCount))
    let webhooks = try WebhookSender.make(configuration)
    let pauses = AcceptPauses(log: log)
    let workers: Workers
    do throws(SFUServerError) {
      workers = try Workers(configuration, pauses) { notice in
        rooms.take(notice)
        webhooks.post(notice)
      }
    } catch {
      webhooks.stop()
      throw error
    }
    let access = LiveAccess(keys: configuration.keys, rooms: configuration.worker)
    let service = SignalingService(access: access, inboxes: workers.inboxes, rooms: rooms, log: log)
    do throws(SFUServerError) {
      webs = try Self.listen(configuration, service, pauses)
    } catch {
      workers.stop()
      webhooks.stop()
      throw error
    }
    var address = configuration.listenAddresses[0]
    address.port = webs[0].port
    signalingAddress = address
    mediaAddresses = workers.addresses
    streamAddresses = workers.streamAddresses
    inboxes = workers.inboxes
    dataPorts = workers.dataPorts
    threads = workers.threads
    self.service = service
    self.access = access
    self.webhooks = webhooks
    self.log = log
    do throws(SFUServerError) {
      metrics = try Self.metrics(configuration, service, workers, webs, pauses)
    } catch {
      webhooks.stop()
      throw error
    }
    if let metrics { address.port = metrics.port }
    metricsAddress = metrics == nil ? nil : address
    for fields in workers.started { log.write(.info, "worker started", fields) }
    log.write(
      .info, "server started",
      [("signaling", signalingAddress.description), ("workers", "\(workers.threads.count)")])
  }

  deinit { stop() }

  private static func metrics(
    _ configuration: Configuration, _ service: SignalingService, _ workers: Workers, _ webs: [WebServer],
    _ pauses: AcceptPauses
  ) throws(SFUServerError) -> WebServer? {
    guard let metrics = configuration.metrics else { return nil }
    let address = configuration.listenAddresses[0]
    do throws(WebServerError) {
      return try WebServer(
        host: address.host, port: metrics.port, limits: MetricsPage.limits,
        handler: MetricsService(
          metrics, inboxes: workers.inboxes, pauses: pauses, isReady: { service.isRunning }),
        whenPaused: pauses.note)
    } catch {
      for web in webs { web.stop() }
      workers.stop()
      throw error == .portInUse(metrics.port)
        ? .metricsPortInUse(metrics.port) : SFUServerError(error, host: address.host)
    }
  }

  /// From now on no room begins, and `/ready` says so; calls go on, and who belongs to them may join.
  public func drain() {
    service.drain()
    for inbox in inboxes { inbox.post(.drain) }
  }

  /// Participants in all rooms, as of a second ago at most.
  public var participantCount: Int { inboxes.reduce(0) { $0 + $1.participantCount } }

  /// Takes over what can change without dropping calls: keys, webhooks, the log's level, and how rooms and participants
  /// are treated. The rest of the configuration is not read. What throws has changed nothing.
  public func reload(_ configuration: Configuration) throws(SFUServerError) {
    let target = try WebhookTarget(configuration)
    log.setLevel(configuration.log.level)
    access.change(keys: configuration.keys, rooms: configuration.worker)
    webhooks.change(to: target)
    var worker = configuration.worker
    worker.serverVersion = Release.version
    for inbox in inboxes { inbox.post(.reconfigure(worker, TokenMinter(keys: configuration.keys))) }
    log.write(.info, "configuration reloaded")
  }

  /// Reads the certificate and its key again. Connections stay as they are; when the files cannot be used,
  /// so does the certificate.
  public func reloadCertificates() throws(SFUServerError) {
    do throws(CertificateError) {
      for web in webs {
        guard let expiry = try web.reloadCertificate() else { return }
        log.write(.info, "certificate loaded", [("expires_unix", "\(expiry)")])
      }
    } catch {
      throw .certificate(error.description)
    }
  }

  /// A web server for each address, all on the first one's port.
  private static func listen(
    _ configuration: Configuration, _ service: SignalingService, _ pauses: AcceptPauses
  ) throws(SFUServerError) -> [WebServer] {
    var webs: [WebServer] = []
    for address in configuration.listenAddresses {
      do throws(WebServerError) {
        webs.append(
          try WebServer(
            host: address.host, port: webs.first?.port ?? configuration.port,
            certificate: configuration.certificate, limits: SignalingService.limits(configuration.limits),
            handler: service, whenPaused: pauses.note))
      } catch {
        for web in webs { web.stop() }
        throw SFUServerError(error, host: address.host)
      }
    }
    return webs
  }

  /// Tells every participant to leave, closes all sockets and ends all threads; returns when that is done,
  /// within a second, or three when a webhook's receiver does not answer. Only the first call does anything.
  public func stop() {
    guard !isStopped.exchange(true, ordering: .relaxed) else { return }
    service.stop()
    for inbox in inboxes { inbox.post(.stop) }
    for thread in threads { thread.join() }
    for port in dataPorts { SCTPThread.detach(port) }
    for web in webs { web.stop() }
    metrics?.stop()
    webhooks.stop()
    log.write(.info, "server stopped")
  }
}

extension SFUServer.Configuration {
  fileprivate var certificate: CertificateFiles? {
    guard let certificatePath else { return nil }
    // A file may hold both.
    return CertificateFiles(certificate: certificatePath, key: certificateKeyPath ?? certificatePath)
  }

  /// Where signaling listens; never empty.
  var listenAddresses: [SocketAddress] { bindAddresses.isEmpty ? [host] : bindAddresses }

  /// The one address of every socket for media: what is heard there includes all of `listenAddresses`.
  var mediaHost: SocketAddress {
    guard listenAddresses.count > 1 else { return listenAddresses[0] }
    let isIPv4 = listenAddresses.allSatisfy { $0.family == .ipv4 }
    return isIPv4
      ? SocketAddress(ipv4: 0, 0, 0, 0, port: 0) : SocketAddress(ipv6High: 0, low: 0, port: 0)
  }
}
