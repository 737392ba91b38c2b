import Glibc
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendServer
import PalbeEventLoop
import PalbeServerClient
import PalbeUnits
import Synchronization

/// One figure, beside the best that it could be.
struct ServerRow {
  var scenario: String
  var metric: String
  var value: Double
  var unit: String
  var floor: Double
  /// Of a rate ours by the floor; of memory the floor by ours: 1 is best.
  var ratio: Double
}

/// What the delivery server costs. Ours and the floor are measured in turns; the best of each counts.
struct ServerBench {
  var slices: Int
  var sockets: Int
  var only: String?
  var progress: (String) -> Void
  private(set) var rows: [ServerRow] = []

  init(slices: Int, sockets: Int, only: String?, progress: @escaping (String) -> Void) {
    self.slices = slices
    self.sockets = sockets
    self.only = only
    self.progress = progress
  }

  /// Requests that wait at once, and so are one transaction.
  private static let width = 64

  mutating func run() throws {
    for size in [2, 10, 100] where wants("fan-out 1:\(size)") { try fanOut(size) }
    if wants("drain") { try drain() }
    if wants("http 1:10") { try overHTTP() }
    if wants("idle sockets") { try idleSockets() }
  }

  private func wants(_ scenario: String) -> Bool {
    only.map { scenario.contains($0) } ?? true
  }

  private mutating func add(
    _ scenario: String, _ metric: String, _ value: Double, _ unit: String, floor: Double
  ) {
    rows.append(
      ServerRow(
        scenario: scenario, metric: metric, value: value, unit: unit, floor: floor, ratio: value / floor))
  }

  /// A world of groups of one size in one file, and its copy for the floor.
  private func worlds(size: Int, groups: Int, in folder: BenchFolder) throws -> BenchWorld {
    let world = try BenchWorld(path: folder.file("ours"))
    try world.enrol(size * groups)
    for group in 0..<groups { try world.found(Array(world.devices[group * size..<(group + 1) * size])) }
    world.loop.stop()
    try folder.copy("ours", to: "floor")
    return world
  }

  private func messages(_ calls: [BackendCall]) -> [(id: [UInt8], blob: [UInt8])] {
    calls.compactMap { call in
      guard case .send(_, let message) = call.request else { return nil }
      return (message.id.bytes, message.blob)
    }
  }

  private mutating func fanOut(_ size: Int) throws {
    let scenario = "fan-out 1:\(size)"
    let folder = try BenchFolder()
    let before = try worlds(size: size, groups: max(2, 128 / size), in: folder)
    let world = try BenchWorld(path: folder.file("ours"), after: before)
    defer { world.loop.stop() }
    let floor = try ServerFloor(path: folder.file("floor"), world: world)
    let count = size == 100 ? 1_280 : 6_400
    var (ours, theirs) = (Double.infinity, Double.infinity)
    for slice in 0..<slices {
      progress("\(scenario): slice \(slice + 1) of \(slices)")
      let calls = (0..<count).map { world.message($0) }
      ours = min(ours, try world.seconds(calls, width: Self.width))
      theirs = min(theirs, try floor.send(messages(calls), width: Self.width))
    }
    add(scenario, "messages", Double(count) / ours, "1/s", floor: Double(count) / theirs)
    add(
      scenario, "queue rows", Double(count * (size - 1)) / ours, "1/s",
      floor: Double(count * (size - 1)) / theirs)
  }

  private mutating func drain() throws {
    let folder = try BenchFolder()
    let before = try BenchWorld(path: folder.file("ours"))
    try before.enrol(40)
    for group in 0..<4 { try before.found(Array(before.devices[group * 10..<(group + 1) * 10])) }
    var (ours, theirs) = (Double.infinity, Double.infinity)
    var rows = 0
    _ = try before.seconds((0..<8_000).map { before.message($0) }, width: 512)
    before.loop.stop()
    for slice in 0..<max(1, min(slices, 3)) {
      progress("drain: slice \(slice + 1)")
      for name in ["one", "two"] { try folder.copy("ours", to: name) }
      let world = try BenchWorld(path: folder.file("one"), after: before)
      let start = nanoseconds()
      var count = 0
      while true {
        let pages = try world.ask(
          world.devices.map { BackendCall(.fetchQueue(after: .start, limit: 100, connection: nil), from: $0) }
        )
        var acks: [BackendCall] = []
        for (device, page) in zip(world.devices, pages) {
          guard case .queue(let rows, _) = page, let last = rows.last else { continue }
          count += rows.count
          acks.append(BackendCall(.acknowledge(.upTo(last.id), connection: nil), from: device))
        }
        guard !acks.isEmpty else { break }
        _ = try world.ask(acks)
      }
      ours = min(ours, Double(nanoseconds() - start) / 1e9)
      world.loop.stop()
      rows = count
      let floor = try ServerFloor(path: folder.file("two"), world: before).drain(page: 100)
      guard floor.rows == count else {
        throw ServerBenchFailure("\(count) rows, and \(floor.rows) at the floor")
      }
      theirs = min(theirs, floor.seconds)
    }
    add("drain", "queue rows", Double(rows) / ours, "1/s", floor: Double(rows) / theirs)
  }

  /// Messages over HTTP from clients on the same processors.
  private mutating func overHTTP() throws {
    let clientCount = 16
    let folder = try BenchFolder()
    var configuration = BackendServer.Configuration(data: folder.file("data"))
    configuration.loop = BenchWorld.settings
    let server = try BackendServer(configuration, verifier: BenchSessions())
    let world = BenchWorld(loop: server.loop)
    try world.enrol(10 * clientCount)
    for group in 0..<clientCount { try world.found(Array(world.devices[group * 10..<(group + 1) * 10])) }
    var ours = Double.infinity
    let count = 400
    for slice in 0..<slices {
      progress("http: slice \(slice + 1) of \(slices)")
      let calls = (0..<count * clientCount).map { world.message($0) }
      let failures = Mutex(0)
      let start = nanoseconds()
      let threads = try (0..<clientCount).map { client in
        let own = stride(from: client, to: calls.count, by: clientCount).map { calls[$0] }
        let device = world.groups[client].members[0]
        let token = server.tokens.token(user: device.user, device: device.device!)
        return try WorkerThread(name: "client") {
          let http = HTTPConnection(port: server.port)
          let headers = [
            ("authorization", "Bearer \(device.user)"), ("palbe-device", token),
            ("content-type", "application/octet-stream"),
          ]
          for case .send(let group, let message) in own.map(\.request) {
            let path = "/v1/groups/\(group)/messages?epoch=1&client_msg_id=\(message.id)"
            let answer = try? http.send("POST", path, headers: headers, body: message.blob)
            if answer?.status != 200 { failures.withLock { $0 += 1 } }
          }
        }
      }
      for thread in threads { thread.join() }
      ours = min(ours, Double(nanoseconds() - start) / 1e9)
      guard failures.withLock({ $0 }) == 0 else { throw ServerBenchFailure("a message was refused") }
    }
    server.stop()
    let total = Double(count * clientCount)
    // The floor has the transactions that so many clients make at best.
    try folder.copy("data/messages.sqlite", to: "floor")
    let floor = try ServerFloor(path: folder.file("floor"), world: world)
    var theirs = Double.infinity
    for _ in 0..<slices {
      let calls = (0..<count * clientCount).map { world.message($0) }
      theirs = min(theirs, try floor.send(messages(calls), width: clientCount))
    }
    add("http 1:10", "messages", total / ours, "1/s", floor: total / theirs)
  }

  private mutating func idleSockets() throws {
    _ = try? Host.raiseOpenFileLimit()
    let bare = try IdleSockets.bare(sockets, progress)
    let ours = try IdleSockets.server(sockets, progress)
    rows.append(
      ServerRow(
        scenario: "idle sockets", metric: "memory", value: Double(ours), unit: "bytes", floor: Double(bare),
        ratio: Double(bare) / Double(max(1, ours))))
  }
}

/// The rows as JSON or as a table.
enum ServerReport {
  static func json(_ rows: [ServerRow]) -> String {
    let objects = rows.map { row in
      "{\"scenario\":\"\(row.scenario)\",\"metric\":\"\(row.metric)\",\"value\":\(fixed(row.value, 0)),"
        + "\"unit\":\"\(row.unit)\",\"floor\":\(fixed(row.floor, 0)),\"ratio\":\(fixed(row.ratio, 3))}"
    }
    return "[\n  " + objects.joined(separator: ",\n  ") + "\n]"
  }

  static func text(_ rows: [ServerRow]) -> String {
    table(
      ["scenario", "metric", "ours", "unit", "floor", "ratio"],
      rows.map {
        [$0.scenario, $0.metric, fixed($0.value, 0), $0.unit, fixed($0.floor, 0), fixed($0.ratio, 2)]
      }, left: [0, 1, 3])
  }
}
