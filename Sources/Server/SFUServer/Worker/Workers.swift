import PalbeDTLS
import PalbeEventLoop
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits

/// The workers and their threads.
struct Workers {
  private(set) var inboxes: [WorkerInbox] = []
  private(set) var dataPorts: [SCTPPort] = []
  private(set) var threads: [WorkerThread] = []
  private(set) var addresses: [SocketAddress] = []
  private(set) var streamAddresses: [SocketAddress] = []
  /// What the log says of each, once nothing can fail any more: a port in use is told by one line alone.
  private(set) var started: [[(String, String)]] = []

  /// - Parameter pauses: told of by each worker, and so is `notify` of its notices, on its thread.
  init(
    _ configuration: SFUServer.Configuration, _ pauses: AcceptPauses,
    notify: @escaping @Sendable (RoomNotice) -> Void
  ) throws(SFUServerError) {
    let count = max(1, configuration.workerCount)
    for port in [configuration.udpPort, configuration.tcpPort ?? 0] where port != 0 {
      guard Int(port) + count - 1 <= 65_535 else { throw .tooManyWorkers(count: count, firstPort: port) }
    }
    let audit: AuditFile?
    if let path = configuration.auditLogPath { audit = try AuditFile(path: path) } else { audit = nil }
    let identity = try Self.identity()
    do throws(SFUServerError) {
      var sockets: [Sockets] = []
      for index in 0..<count { sockets.append(try Sockets(index, configuration)) }
      let candidates = try Self.candidates(configuration, through: sockets[0])
      for index in sockets.indices {
        try start(index, sockets[index], configuration, candidates, identity, audit, pauses, notify)
      }
    } catch {
      stop()
      throw error
    }
  }

  func stop() {
    for inbox in inboxes { inbox.post(.stop) }
    for thread in threads { thread.join() }
    for port in dataPorts { SCTPThread.detach(port) }
  }

  private static func identity() throws(SFUServerError) -> DTLSIdentity {
    var random = SystemRandom.source()
    do throws(DTLSError) {
      return try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &random)
    } catch {
      throw .system("no certificate could be made")
    }
  }

  private static func candidates(
    _ configuration: SFUServer.Configuration, through sockets: Sockets
  ) throws(SFUServerError) -> HostCandidates {
    let hostAddresses: [SocketAddress]
    do throws(SystemError) { hostAddresses = try Host.localAddresses() } catch {
      throw .system(error.description)
    }
    var candidates = HostCandidates(
      bound: configuration.listenAddresses, hostAddresses: hostAddresses,
      external: configuration.nodeAddress, keepsInternal: configuration.announcesInternalAddresses)
    guard configuration.nodeAddress == nil, configuration.usesExternalAddress else { return candidates }
    let found = ExternalAddress.discover(through: sockets.udp, servers: configuration.stunServers)
    candidates.external = found
    if let found {
      configuration.log.write(.info, "external address found", [("address", found.host)])
    } else {
      configuration.log.write(.warning, "no external address found: no STUN server answered")
    }
    return candidates
  }

  private mutating func start(
    _ index: Int, _ sockets: Sockets, _ configuration: SFUServer.Configuration, _ candidates: HostCandidates,
    _ identity: DTLSIdentity, _ audit: AuditFile?, _ pauses: AcceptPauses,
    _ notify: @escaping @Sendable (RoomNotice) -> Void
  ) throws(SFUServerError) {
    let address = sockets.udp.localAddress
    let streamAddress = sockets.tcp?.localAddress
    let inbox: WorkerInbox
    let log = configuration.log
    do throws(SystemError) {
      inbox = try WorkerInbox()
      var settings = configuration.worker
      settings.candidates = configuration.announcesOnlyTCP ? [] : candidates.at(address.port)
      if let streamAddress { settings.candidates += candidates.at(streamAddress.port, .tcp) }
      let data = try SCTPThread.attach()
      dataPorts.append(data)
      settings.number = data.number
      settings.serverVersion = Release.version
      let seed = WorkerSeed(
        index: index, sockets: sockets, poller: try Poller(), inbox: inbox, data: data,
        configuration: settings, identity: identity, auditFile: audit, log: log,
        minter: TokenMinter(keys: configuration.keys),
        notify: notify, usesSegmentation: configuration.usesSegmentation,
        connectionsPerAddress: configuration.limits.connectionsPerAddress, whenPaused: pauses.note)
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
        ("candidates", settings.candidates.map(\.description).joined(separator: ",")),
      ])
    } catch {
      throw .system(error.description)
    }
    inboxes.append(inbox)
    addresses.append(address)
    if let streamAddress { streamAddresses.append(streamAddress) }
  }
}

/// What a worker listens on.
final class Sockets: Sendable {
  let udp: UDPSocket
  /// Nil when ICE-TCP is off.
  let tcp: TCPListener?

  init(udp: consuming UDPSocket, tcp: TCPListener? = nil) {
    self.udp = udp
    self.tcp = tcp
  }

  init(_ index: Int, _ configuration: SFUServer.Configuration) throws(SFUServerError) {
    udp = try Self.orIPv4(configuration.mediaHost, configuration.udpPort, .udp, index) {
      address throws(SocketError) in
      var options = UDPSocket.Options()
      options.isDualStack = address.isUnspecified
      return try UDPSocket(binding: address, options: options)
    }
    guard let port = configuration.tcpPort else {
      tcp = nil
      return
    }
    tcp = try Self.orIPv4(configuration.mediaHost, port, .tcp, index) { address throws(SocketError) in
      try TCPListener(binding: address, isDualStack: address.isUnspecified)
    }
  }

  /// Opens at the worker's port; on a host without IPv6 "::" is all IPv4 addresses.
  private static func orIPv4<Socket: ~Copyable>(
    _ host: SocketAddress, _ firstPort: UInt16, _ transport: SocketAddress.Transport, _ index: Int,
    open: (SocketAddress) throws(SocketError) -> Socket
  ) throws(SFUServerError) -> Socket {
    var address = host
    address.transport = transport
    address.port = firstPort == 0 ? 0 : firstPort + UInt16(index)
    do throws(SocketError) {
      do throws(SocketError) { return try open(address) } catch {
        guard address.family == .ipv6, address.isUnspecified, error.isFamilyMissing else { throw error }
        return try open(SocketAddress(ipv4: 0, 0, 0, 0, port: address.port))
      }
    } catch {
      throw SFUServerError(error, at: address)
    }
  }
}
