import CPalbeLinux
import CPalbeMallocCounter
import CPalbeProcess
import Glibc
import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeSFUCore
import PalbeSFUServer
import PalbeServerObservation
import PalbeUnits
import PalbeWebTokens

/// A crowd that joins and leaves a real server at random, over real sockets.
///
/// ## Overview
///
///     absent ──▶ joining ──▶ connected ──▶ leaves with a word · crashes · falls silent · is replaced by its namesake
///        ▲                                        │
///        └────────────────────────────────────────┘
///
/// The crowd comes and goes until everything has its size, and leaves; then again, for as long as is asked. What the
/// process holds after either is compared. Server and clients share the process: neither may leave anything behind.
public final class Churn {
  private struct Place {
    var identity: String
    var client: ChurnClient?
    var until: Instant
  }

  private static let key = "churn"
  private static let secret = "a secret of more than 32 characters"
  private static let tick = TimeDelta.milliseconds(20)
  /// Nobody joins while a look at every client takes longer.
  private static let longestTurn = TimeDelta.milliseconds(250)

  private let settings: ChurnSettings
  private let server: SFUServer
  private let certificate: DTLSIdentity
  private var random: RandomSource
  private var places: [Place] = []
  /// Without a word, and not gone yet.
  private var silent: [(client: ChurnClient, until: Instant)] = []
  private var incoming = ReceiveBatch(capacity: 16)
  private var connectTimes: [Double] = []
  private var report = ChurnReport(
    before: Footprint(liveBytes: 0, residentBytes: 0, descriptors: 0),
    after: Footprint(liveBytes: 0, residentBytes: 0, descriptors: 0))

  /// Starts the server. To be called before anything has a thread: all allocations must come from one arena.
  public init(_ settings: ChurnSettings) throws {
    palbe_use_one_arena()
    self.settings = settings
    random = RandomSource(seed: settings.seed)
    var configuration = SFUServer.Configuration(keys: [Self.key: Self.secret])
    configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    configuration.port = 0
    configuration.udpPort = 0
    configuration.tcpPort = 0
    configuration.workerCount = settings.workers
    configuration.log = ServerLog(level: .warning)
    configuration.worker.departureTimeout = .seconds(1)
    server = try SFUServer(configuration)
    var source = SystemRandom.source()
    certificate = try DTLSIdentity(nowUnix: WallClock.unixSeconds, using: &source)
  }

  /// Lives it all. Takes the seconds asked for and some 20 more.
  public func run() async throws -> ChurnReport {
    try await warmUp()
    report.joins = 0
    report.connections = 0
    report.packets = 0
    connectTimes = []
    try await crowd(for: .seconds(settings.seconds))
    connectTimes.sort()
    report.connectMilliseconds = connectTimes.isEmpty ? 0 : connectTimes[connectTimes.count / 2]
    connectTimes = []
    report.after = Self.footprint()
    let left = await server.census()
    report.stuckParticipants = left.participants
    report.stuckRooms = left.rooms
    server.stop()
    return report
  }

  /// Queues, tables and rings grow until they have the size that such a crowd needs. A round that adds next to nothing is the
  /// last one; what grows without end adds in each, and is seen in the run that is measured.
  private func warmUp() async throws {
    report.before = Self.footprint()
    while report.warmUpRounds < ChurnSettings.warmUpLimit {
      try await crowd(for: .seconds(settings.warmUpSeconds))
      let now = Self.footprint()
      let growth = Double(now.liveBytes - report.before.liveBytes) / Double(report.before.liveBytes)
      report.before = now
      report.warmUpRounds += 1
      if growth < 0.01 { break }
    }
  }

  // MARK: The crowd

  private func crowd(for time: TimeDelta) async throws {
    let start = MonotonicClock.now()
    places = (0..<settings.participants).map { index in
      Place(identity: "p\(index)", client: nil, until: start + draw(0...4_000))
    }
    var next = start
    var last = start
    while MonotonicClock.now() - start < time {
      let now = MonotonicClock.now()
      let turnTime = now - last
      report.longestTurnMilliseconds = max(
        report.longestTurnMilliseconds, Double(turnTime.nanoseconds) / 1e6)
      last = now
      for index in places.indices where places[index].until <= now {
        // The crowd is as large as this machine can play: one that is looked at every few seconds loses its sessions to its
        // own time limits (39 of 522 in a debug build on a busy core), and tells nothing of the server.
        let isBusy = turnTime > Self.longestTurn || MonotonicClock.now() - now > Self.longestTurn / 2
        if places[index].client == nil, isBusy { continue }
        try change(index, at: now)
      }
      silent.removeAll { silent in
        if silent.until <= now { silent.client.crash() }
        return silent.until <= now
      }
      try turn(at: now)
      next += Self.tick
      let rest = next - MonotonicClock.now()
      if rest > .zero {
        try await Task.sleep(nanoseconds: UInt64(rest.nanoseconds))
      } else {
        next = MonotonicClock.now()
      }
    }
    try await disperse()
  }

  private func draw(_ milliseconds: ClosedRange<Int>) -> TimeDelta {
    .milliseconds(Int.random(in: milliseconds, using: &random))
  }

  private func turn(at now: Instant) throws {
    var present = 0
    for place in places {
      guard let client = place.client else { continue }
      present += 1
      try client.turn(&incoming, at: now)
      client.speak(at: now)
      if let reason = client.end { report.note(reason, isConnected: client.connectedAt != nil) }
    }
    report.peak = max(report.peak, present)
    for index in places.indices where places[index].client?.hasEnded == true {
      // Its WebSocket may be open still.
      places[index].client?.crash()
      forget(index, at: now)
    }
  }

  /// Somebody's time has come: to join, or to go in one of several ways.
  private func change(_ index: Int, at now: Instant) throws {
    guard let client = places[index].client else { return try join(index, at: now) }
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<5: client.leave(at: now)
    case 5..<7: client.crash()
    case 7:
      client.fallSilent()
      silent.append((client, now + draw(1_000...9_000)))
    default:
      // Another one of the same name: the server ends the first.
      silent.append((client, now + .seconds(2)))
      client.fallSilent()
      note(client)
      places[index].client = nil
      return try join(index, at: now)
    }
    forget(index, at: now)
  }

  private func forget(_ index: Int, at now: Instant) {
    if let client = places[index].client { note(client) }
    places[index].client = nil
    places[index].until = now + draw(100...6_000)
  }

  private func note(_ client: ChurnClient) {
    report.packets += client.frameCount
    guard let connectedAt = client.connectedAt else { return }
    report.connections += 1
    connectTimes.append(Double((connectedAt - client.joinedAt).nanoseconds) / 1e6)
  }

  private func join(_ index: Int, at now: Instant) throws {
    let room = "room-\(Int.random(in: 0..<settings.rooms, using: &random))"
    let identity = places[index].identity
    places[index].client = try ChurnClient(
      url: "ws://127.0.0.1:\(server.signalingAddress.port)", token: token(room: room, identity: identity),
      room: room, identity: identity, certificate: certificate)
    report.joins += 1
    // Some go before they have come.
    let isHasty = Int.random(in: 0..<10, using: &random) == 0
    places[index].until = now + (isHasty ? draw(0...60) : draw(1_000...24_000))
  }

  private func token(room: String, identity: String) -> String {
    let expiry = WallClock.unixSeconds + 600
    let claims = """
      {"iss":"\(Self.key)","sub":"\(identity)","exp":\(expiry),"video":{"roomJoin":true,"room":"\(room)"}}
      """
    return SignedToken.text([UInt8](claims.utf8), secret: Self.secret)
  }

  /// Everyone goes; waits until the server knows, at most as long as it lets a silent participant be.
  private func disperse() async throws {
    let now = MonotonicClock.now()
    for index in places.indices {
      guard let client = places[index].client else { continue }
      if index % 3 == 0 { client.crash() } else { client.leave(at: now) }
      note(client)
      places[index].client = nil
    }
    for silent in silent { silent.client.crash() }
    silent = []
    places = []
    for _ in 0..<300 {
      if await server.census() == Census() { break }
      try await Task.sleep(nanoseconds: 100_000_000)
    }
    // Sockets that are closed on both sides, and timers of theirs.
    try await Task.sleep(nanoseconds: 3_000_000_000)
  }

  // MARK: What the process holds

  private static func footprint() -> Footprint {
    palbe_release_free_memory()
    var descriptors = 0
    if let folder = opendir("/proc/self/fd") {
      while readdir(folder) != nil { descriptors += 1 }
      closedir(folder)
    }
    return Footprint(
      liveBytes: Int(palbe_malloc_live()), residentBytes: Int(palbe_resident_bytes()),
      descriptors: descriptors)
  }
}
