import Glibc
import PalbeChatClient
import PalbeChatCore
import PalbeEventLoop
import PalbeMessaging
import PalbeServerClient
import PalbeUnits

/// What a chat costs over the SDK and a real delivery server on this machine: two processors for all of it. Each figure is beside
/// the sum of the parts that cannot be left out, measured in the same run.
@MainActor
struct ChatBench {
  /// The short form counts what came, and measures little.
  let isShort: Bool
  let only: String?
  let progress: (String) -> Void
  private(set) var rows: [ServerRow] = []

  init(isShort: Bool, only: String?, progress: @escaping (String) -> Void) {
    (self.isShort, self.only, self.progress) = (isShort, only, progress)
  }

  mutating func run() async throws {
    _ = try? Host.raiseOpenFileLimit()
    if wants("two devices") { try await twoDevices() }
    if wants("fan-out") { try await fanOut(isShort ? 5 : 40, messages: isShort ? 20 : 100) }
    for size in isShort ? [10] : [50, 200, 400] where wants("group of \(size)") { try await found(size) }
    if wants("flood") { try await flood() }
    if wants("cold start") { try await coldStart() }
  }

  private func wants(_ scenario: String) -> Bool { only.map { scenario.contains($0) } ?? true }

  private mutating func add(
    _ scenario: String, _ metric: String, _ value: Double, _ unit: String, floor: Double
  ) {
    rows.append(
      ServerRow(
        scenario: scenario, metric: metric, value: value, unit: unit, floor: floor,
        ratio: floor > 0 ? value / floor : value > 0 ? .infinity : 1))
  }

  // MARK: Two devices

  /// A short text from one device to another, one at a time: until the sender knows that the server has it, and until it is
  /// told to the receiver's models.
  private mutating func twoDevices() async throws {
    progress("two devices: signing in")
    let world = try ChatWorld()
    let (anna, _) = try await world.add("anna")
    let (ben, inbox) = try await world.add("ben")
    let chat = try await anna.shell.directChat(with: ben.user).id
    let count = isShort ? 30 : 300
    // The first makes the group; the next warm everything up.
    for index in 0..<10 { _ = try await anna.shell.send(.text(TextBody("m w\(index)")), to: chat) }
    await inbox.wait(for: 10)
    inbox.clear()
    let tally = { (name: String) in OpenStorages.tally(in: world.stores(of: name)) }
    let before = (tally("anna"), tally("ben"))
    var (sent, received): ([Double], [Double]) = ([], [])
    for index in 0..<count {
      progress("two devices: \(index) of \(count)")
      let start = nanoseconds()
      _ = try await anna.shell.send(.text(TextBody("m \(index)")), to: chat)
      sent.append(Double(nanoseconds() - start) / 1_000)
      await inbox.wait(for: index + 1)
      received.append(Double(inbox.items[index].at - start) / 1_000)
    }
    try await Task.sleep(for: .milliseconds(300))
    let after = (tally("anna"), tally("ben"))
    let (annas, bens) = (after.0 - before.0, after.1 - before.1)
    await world.close()
    let server = try ChatFloor.server(in: world.folder, byteCount: ChatFloor.sealedByteCount, count: 200)
    let sender = try ChatFloor.device(annas, messages: count, in: world.folder, count: 200)
    let receiver = try ChatFloor.device(bens, messages: count, in: world.folder, count: 200)
    let mls = ChatFloor.message(byteCount: ChatFloor.plainByteCount, count: 200)
    let sending = sender + mls.seal + server
    let receiving = sending + mls.open + receiver
    let (out, come) = (Percentiles(sent), Percentiles(received))
    add("two devices", "send p50", out.p50, "us", floor: sending)
    add("two devices", "send p99", out.p99, "us", floor: sending)
    add("two devices", "receive p50", come.p50, "us", floor: receiving)
    add("two devices", "receive p99", come.p99, "us", floor: receiving)
    let per = { (value: Int) in Double(value) / Double(count) }
    add("two devices", "sender's waits for the medium", per(annas.waits), "a message", floor: 1)
    add("two devices", "receiver's waits for the medium", per(bens.waits), "a message", floor: 1)
    add("two devices", "sender's records", per(annas.writes), "a message", floor: per(annas.writes))
    add("two devices", "receiver's records", per(bens.writes), "a message", floor: per(bens.writes))
  }

  // MARK: One to many

  private mutating func fanOut(_ receivers: Int, messages: Int) async throws {
    let scenario = "fan-out 1:\(receivers)"
    let world = try ChatWorld()
    let (sender, _) = try await world.add("sender")
    for index in 0..<receivers {
      progress("\(scenario): device \(index + 1)")
      try await world.add("r\(index)")
    }
    let others = world.clients.dropFirst()
    let chat = try await sender.shell.groupChat(title: "all", members: others.map(\.client.user)).id
    _ = try await sender.shell.send(.text(TextBody("m first")), to: chat)
    for (_, inbox) in others { await inbox.wait(for: 1) }
    progress("\(scenario): \(messages) messages")
    let start = nanoseconds()
    for index in 0..<messages { _ = try await sender.shell.enqueue(.text(TextBody("m \(index)")), to: chat) }
    for (_, inbox) in others { await inbox.wait(for: messages + 1) }
    let seconds = Double(nanoseconds() - start) / 1e9
    let wanted = ["m first"] + (0..<messages).map { "m \($0)" }
    let inOrder = others.reduce(0) { $0 + ($1.inbox.items.map(\.text) == wanted ? messages : 0) }
    await world.close()
    add(scenario, "delivered in order", Double(inOrder), "messages", floor: Double(receivers * messages))
    let server = try ChatFloor.server(in: world.folder, byteCount: ChatFloor.sealedByteCount, count: 50)
    add(scenario, "all have all", seconds * 1_000, "ms", floor: server * Double(messages) / 1_000)
  }

  // MARK: Large groups

  private mutating func found(_ size: Int) async throws {
    let scenario = "group of \(size)"
    let world = try ChatWorld()
    let port = world.server.port
    let (founder, _) = try await world.add("founder")
    var members: [UserID] = []
    for index in 1..<size {
      progress("\(scenario): member \(index)")
      members.append(try PassiveMember(port: port, email: "p\(index)@example.org", seed: UInt64(index)).user)
    }
    progress(scenario)
    let rounds = isShort ? 1 : 3
    var ours = Double.infinity
    for round in 0..<rounds {
      let chat = try await founder.shell.groupChat(title: "g\(round)", members: members).id
      let start = nanoseconds()
      _ = try await founder.shell.send(.text(TextBody("m")), to: chat)
      ours = min(ours, Double(nanoseconds() - start) / 1e6)
      guard let snapshot = try await founder.shell.snapshot(chat), snapshot.members.count == size else {
        throw ServerBenchFailure("\(scenario): not all are in it")
      }
    }
    // The floor asks for each member once, one after the other over one connection, as the server answers then.
    let asker = try ServerClient.signedIn(port: port, "asker@example.org", "correct horse asker", seed: 77)
    let start = nanoseconds()
    for member in members { _ = try asker.claim(member) }
    let requests = Double(nanoseconds() - start) / 1e6
    await world.close()
    add(scenario, "created", ours, "ms", floor: ChatFloor.founding(size) + requests)
  }

  // MARK: A flood

  /// 500 messages a second of 20 chats come to one device, which is a process of its own, with the models of an app.
  private mutating func flood() async throws {
    let (chats, rate, seconds) = isShort ? (4, 100, 3) : (20, 500, 60)
    let world = try ChatWorld()
    progress("flood: signing in")
    let host = try ChatHost(world.server.address, world.folder.file("host"))
    defer { host.end() }
    guard let user = UserID(try host.line()) else { throw ServerBenchFailure("the receiver did not sign in") }
    // The senders' disks are not what is measured.
    var settings = ShellSettings()
    settings.isDurable = false
    let (sender, _) = try await world.add("sender", settings: settings)
    var ids: [ChatID] = []
    for index in 0..<chats {
      let chat = try await sender.shell.groupChat(title: "flood \(index)", members: [user]).id
      _ = try await sender.shell.send(.text(TextBody("m first")), to: chat)
      ids.append(chat)
    }
    try host.tell("go")
    let start = nanoseconds()
    let total = rate * seconds
    for index in 0..<total {
      let due = start + UInt64(index) * 1_000_000_000 / UInt64(rate)
      let now = nanoseconds()
      if due > now { try await Task.sleep(for: .nanoseconds(due - now)) }
      _ = try await sender.shell.enqueue(.text(TextBody("m \(index)")), to: ids[index % chats])
      if index % rate == 0 { progress("flood: \(index) of \(total)") }
    }
    let took = Double(nanoseconds() - start) / 1e9
    try host.tell("\(total + chats)")
    let told = try host.line().split(separator: " ").compactMap { Double($0) }
    guard told.count == 5 else { throw ServerBenchFailure("the receiver told nothing") }
    await world.close()
    add("flood", "received", told[0], "messages", floor: Double(total + chats))
    add("flood", "rate", Double(total) / took, "1/s", floor: Double(rate))
    add("flood", "main actor", told[1] / told[4] * 100, "% of a core", floor: 5)
    add("flood", "memory after a quarter", told[2], "bytes", floor: told[2])
    add("flood", "memory at the end", told[3], "bytes", floor: told[2])
  }

  // MARK: Cold start

  /// Records that are read until the list is there: one a chat is the least.
  private mutating func coldStart() async throws {
    let (chats, messages) = isShort ? (100, 20) : (1_000, 1_000)
    let world = try ChatWorld()
    let told = try await ColdStart.run(world, chats: chats, messages: messages, progress: progress)
    await world.close()
    add(
      "cold start", "records read until the list is there", Double(told.reads), "records",
      floor: Double(chats))
    add("cold start", "until the list is there", told.milliseconds, "ms", floor: told.floorMilliseconds)
    add("cold start", "chats in the list", Double(told.listed), "chats", floor: Double(chats))
  }
}
