import CPalbeLinux
import Glibc
import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeSFUCore
import PalbeSFUServer
import PalbeServerObservation
import PalbeUnits

/// What one scenario gave.
struct SFURow {
  var scenario: String
  var subscribers: Int
  var send: String
  var packetsPerCore: Double
  var limitPerCore: Double
  var ratios: [Double]
  var delays: (p50: Double, p99: Double)
  var limitDelays: (p50: Double, p99: Double)
  var mallocsPerPacket: Double
  var bytesPerSubscriber: Int

  var ratio: Double { median(ratios) }
}

func median(_ values: [Double]) -> Double { quantile(values, 0.5) }

func quantile(_ values: [Double], _ part: Double) -> Double {
  guard !values.isEmpty else { return 0 }
  return values.sorted()[min(values.count - 1, Int(part * Double(values.count)))]
}

/// Rooms on a server beside a bare relay to the same receivers.
///
/// The server's worker and the relay's thread share one processor and take turns; the load runs on the other. Packets are
/// counted where they arrive, and set against the processor time of the thread that sent them.
struct SFUScenario {
  var name: String
  var rooms: Int
  /// Each publishes a camera or a microphone.
  var publishers: Int
  /// Receive only.
  var listeners: Int
  var track: LocalTrack

  static let all =
    [10, 50, 100, 200].map {
      SFUScenario(name: "video 1:\($0)", rooms: 1, publishers: 1, listeners: $0, track: .camera)
    } + [
      SFUScenario(name: "audio 1:200", rooms: 1, publishers: 1, listeners: 200, track: .microphone),
      SFUScenario(name: "10 rooms 5x5", rooms: 10, publishers: 5, listeners: 0, track: .camera),
    ]

  /// How many get each packet.
  var fanout: Int { publishers + listeners - 1 }
  /// Streams that leave the server.
  var subscribers: Int { rooms * publishers * fanout }
}

/// One scenario while it runs.
final class SFURun {
  private static let slice = 500_000_000 as UInt64
  /// Packets on their way into the server at most.
  private static let window = 48

  let scenario: SFUScenario
  private let server: SFUServer
  private let worker: ThreadProbe
  private let web: ThreadProbe
  private var clients: [BenchClient] = []
  /// Indices of those who publish.
  private var sources: [Int] = []
  private var relaySources: [UnsafeMutablePointer<RelaySource>] = []
  private let relayThread: WorkerThread
  private let relayProbe: ThreadProbe
  private let relayAddress: SocketAddress
  private let stop: WakeUp
  private(set) var bytesPerSubscriber = 0
  private var frame: [UInt8]
  private var lengths: [Int] = []
  private var sampled: [Int] = []
  private var received = 0
  private var nextTimestamp: UInt32 = 90_000
  private var nextSource = 0
  private var nextTurn = 0
  private var sentAt: [UInt32: Int64] = [:]
  private var delays: [Int64] = []

  init(_ scenario: SFUScenario, segmentation: Bool) throws {
    self.scenario = scenario
    frame = [UInt8](repeating: 0x55, count: scenario.track == .camera ? 9_000 : 100)
    var configuration = SFUServer.Configuration.bench
    configuration.usesSegmentation = segmentation
    server = try SFUServer(configuration)
    worker = try ThreadProbe(name: "sfu-worker-0")
    web = try ThreadProbe(name: "web-server")
    worker.pin(to: 1)
    worker.settle()
    web.settle()
    let before = worker.liveByteCount + web.liveByteCount
    clients = try Self.join(scenario, server)
    let perRoom = scenario.publishers + scenario.listeners
    sources = (0..<scenario.rooms).flatMap { room in
      (0..<scenario.publishers).map { room * perRoom + $0 }
    }
    var receivers: [[Int]] = []
    for source in sources {
      let room = source / perRoom
      receivers.append((room * perRoom..<(room + 1) * perRoom).filter { $0 != source })
    }
    let socket = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    relayAddress = socket.localAddress
    let relay = try Relay(
      socket: socket, sources: sources.map { [clients] in clients[$0].socket.localAddress },
      receivers: receivers, destinations: clients.map { $0.socket.localAddress }, segmentation: segmentation)
    stop = try WakeUp()
    relayThread = try WorkerThread(name: "bench-relay", moving: relay) { [stop] relay in
      var relay = relay
      relay.run(stop: stop)
    }
    relayProbe = try ThreadProbe(name: "bench-relay")
    relayProbe.pin(to: 1)
    for index in sources.indices {
      let pointer = UnsafeMutablePointer<RelaySource>.allocate(capacity: 1)
      pointer.initialize(to: try RelaySource(index))
      relaySources.append(pointer)
    }
    try start()
    let after = worker.liveByteCount + web.liveByteCount
    bytesPerSubscriber = (after - before) / scenario.subscribers
  }

  func end() {
    stop.wake()
    relayThread.join()
    for client in clients { client.end() }
    server.stop()
    for pointer in relaySources {
      pointer.deinitialize(count: 1)
      pointer.deallocate()
    }
  }

  enum BenchError: Error { case notConnected, noMedia }

  private static func join(_ scenario: SFUScenario, _ server: SFUServer) throws -> [BenchClient] {
    var random = SystemRandom.source()
    let identity = try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &random)
    var clients: [BenchClient] = []
    for room in 0..<scenario.rooms {
      for number in 0..<scenario.publishers + scenario.listeners {
        let isSource = number < scenario.publishers
        let client = try BenchClient(
          port: server.signalingAddress.port, identity, room: "room \(room)".replacingSpace,
          name: "p\(number)", publishes: isSource ? [scenario.track] : [], expecting: scenario.publishers)
        client.isSource = isSource
        clients.append(client)
        // All of them: who is not looked after while the others join is taken for gone.
        try wait(seconds: 10, for: clients) { client.isConnected }
      }
    }
    return clients
  }

  private static func wait(seconds: Int, for clients: [BenchClient], until condition: () -> Bool) throws {
    let end = MonotonicClock.now() + .seconds(seconds)
    while !condition() {
      guard MonotonicClock.now() < end else { throw BenchError.notConnected }
      for client in clients {
        client.turn()
        client.drain()
      }
    }
  }

  /// Sends key frames until everybody receives.
  private func start() throws {
    let end = MonotonicClock.now() + .seconds(20)
    while true {
      for source in sources { send(clients[source], isKeyFrame: true) }
      for _ in 0..<20 {
        for client in clients {
          client.turn()
          client.drain()
        }
        usleep(1_000)
      }
      let needed = scenario.listeners > 0 ? 1 : scenario.fanout
      if clients.allSatisfy({ $0.isSource && scenario.listeners > 0 || $0.received >= needed }) { break }
      guard MonotonicClock.now() < end else { throw BenchError.noMedia }
    }
    let source = clients[sources[0]]
    frame[0] = 0x11
    lengths = source.datagrams(frame, on: scenario.track, timestamp: 1).filter { $0.count > 60 }.map(\.count)
    guard !lengths.isEmpty else { throw BenchError.noMedia }
    // The rings of history reach their length.
    for _ in 0..<200 {
      for source in sources { send(clients[source], isKeyFrame: false) }
      drain()
      usleep(500)
    }
    let receiving = clients.indices.filter { !clients[$0].isSource || scenario.listeners == 0 }
    sampled = (0..<8).map { receiving[$0 * (receiving.count - 1) / 7] }
    for index in sampled { clients[index].isSampled = true }
  }

  @discardableResult
  private func send(_ client: BenchClient, isKeyFrame: Bool) -> Int {
    frame[0] = isKeyFrame || client.wantsKeyFrame ? 0x10 : 0x11
    client.wantsKeyFrame = false
    nextTimestamp &+= 90
    sentAt[nextTimestamp] = WallClock.unixNanoseconds()
    return client.send(frame, on: scenario.track, timestamp: nextTimestamp)
  }

  private func sendToRelay(_ source: Int) -> Int {
    nextTimestamp &+= 90
    sentAt[nextTimestamp] = WallClock.unixNanoseconds()
    relaySources[source].pointee.send(
      lengths, timestamp: nextTimestamp, through: clients[sources[source]].socket, to: relayAddress)
    return lengths.count
  }

  private func drain() {
    for client in clients {
      received += client.isSampled ? client.drainSampled(sentAt: sentAt, into: &delays) : client.drain()
    }
    // Timers of one of them: each is looked at some times a second.
    nextTurn = (nextTurn + 1) % clients.count
    clients[nextTurn].turn()
  }

  /// What a thread did in a slice.
  struct Slice {
    var packets: Int
    var nanoseconds: UInt64
    var mallocs: UInt64
    var delays: [Int64]
    var perCore: Double { Double(packets) / Double(max(1, nanoseconds)) * 1e9 }
  }

  /// One slice of the SFU or of the relay.
  ///
  /// - Parameter rate: packets a second that leave; nil sends as many as are taken.
  func slice(relay: Bool, rate: Double?) -> Slice {
    let probe = relay ? relayProbe : worker
    settle()
    received = 0
    delays = []
    sentAt = [:]
    let began = nanoseconds()
    let time = probe.processorNanoseconds
    let mallocs = probe.mallocs
    var sent = 0
    var progress = began
    var lastReceived = 0
    while nanoseconds() - began < Self.slice {
      let now = nanoseconds()
      let mayGo: Bool
      if let rate {
        mayGo = Double(sent) < rate * Double(now - began) / 1e9
      } else {
        mayGo = sent - received < Self.window * scenario.fanout
      }
      if mayGo {
        nextSource = (nextSource + 1) % sources.count
        let count = relay ? sendToRelay(nextSource) : send(clients[sources[nextSource]], isKeyFrame: false)
        sent += count * scenario.fanout
      }
      drain()
      if received != lastReceived {
        lastReceived = received
        progress = now
      } else if now - progress > 20_000_000 {
        // Lost in a full buffer.
        sent = received
      }
    }
    settle()
    return Slice(
      packets: received, nanoseconds: probe.processorNanoseconds - time, mallocs: probe.mallocs - mallocs,
      delays: delays)
  }

  /// Until nothing comes any more.
  private func settle() {
    var quiet = nanoseconds()
    while nanoseconds() - quiet < 5_000_000 {
      let before = received
      drain()
      if received != before { quiet = nanoseconds() }
    }
  }

  func measure(slices: Int, send: String) -> SFURow {
    var own: [Slice] = []
    var limits: [Slice] = []
    for number in 0..<slices {
      // Neither side always comes first.
      if number % 2 == 0 { limits.append(slice(relay: true, rate: nil)) }
      own.append(slice(relay: false, rate: nil))
      if number % 2 == 1 { limits.append(slice(relay: true, rate: nil)) }
    }
    let perCore = median(own.map(\.perCore))
    let limit = median(limits.map(\.perCore))
    var ownDelays: [Double] = []
    var limitDelays: [Double] = []
    for _ in 0..<max(2, slices / 2) {
      ownDelays += slice(relay: false, rate: perCore / 2).delays.map { Double($0) / 1e6 }
      limitDelays += slice(relay: true, rate: perCore / 2).delays.map { Double($0) / 1e6 }
    }
    let packets = own.reduce(0) { $0 + $1.packets }
    return SFURow(
      scenario: scenario.name, subscribers: scenario.subscribers, send: send, packetsPerCore: perCore,
      limitPerCore: limit, ratios: zip(own, limits).map { $0.perCore / max(1, $1.perCore) },
      delays: (quantile(ownDelays, 0.5), quantile(ownDelays, 0.99)),
      limitDelays: (quantile(limitDelays, 0.5), quantile(limitDelays, 0.99)),
      mallocsPerPacket: Double(own.reduce(0) { $0 + $1.mallocs }) / Double(max(1, packets)),
      bytesPerSubscriber: bytesPerSubscriber)
  }
}

extension SFUServer.Configuration {
  /// One worker on free ports.
  static var bench: SFUServer.Configuration {
    var configuration = SFUServer.Configuration(keys: [BenchClient.key: BenchClient.secret])
    configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    configuration.port = 0
    configuration.udpPort = 0
    configuration.workerCount = 1
    // One publisher sends far more here than a client may.
    configuration.worker.participantRate = 1_000_000_000
    configuration.log = ServerLog(level: .warning)
    return configuration
  }
}

extension String {
  fileprivate var replacingSpace: String { String(map { $0 == " " ? "-" : $0 }) }
}

enum SFUBench {
  /// Milliseconds to the first packet of each of `count` who join.
  static func join(_ count: Int, progress: (String) -> Void) throws -> [Double] {
    _ = palbe_raise_open_files(4_096)
    _ = palbe_pin_thread(0, 0)
    return try JoinBench().run(count, progress: progress)
  }

  /// All scenarios, both ways to send. A few minutes.
  static func run(slices: Int, only: String?, progress: (String) -> Void) throws -> [SFURow] {
    _ = palbe_raise_open_files(4_096)
    _ = palbe_pin_thread(0, 0)
    var rows: [SFURow] = []
    for (send, segmentation) in [("sendmmsg", false), ("gso", true)] {
      for scenario in SFUScenario.all where only.map({ scenario.name.contains($0) }) ?? true {
        progress("\(scenario.name), \(send)")
        let run = try SFURun(scenario, segmentation: segmentation)
        rows.append(run.measure(slices: slices, send: send))
        run.end()
      }
    }
    return rows
  }
}
