import PalbeChatClient
import PalbeChatCore
import PalbeMessaging
import PalbeUnits
import Synchronization

/// What one device of a bench hears: each text with the moment it came, in order.
final class ChatInbox: Sendable {
  struct Item: Sendable {
    var text: String
    var at: UInt64
  }
  private struct State {
    var items: [Item] = []
    var count = 0
    /// Who waits until so many have come.
    var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
    var groups: Set<GroupID> = []
  }
  private let state = Mutex(State())
  /// Texts that begin so are noted.
  private let prefix: String

  init(prefix: String = "m") { self.prefix = prefix }

  var sink: ShellSink { { events in self.heard(events) } }

  private func heard(_ events: [ShellEvent]) {
    let now = nanoseconds()
    let woken = state.withLock { state -> CheckedContinuation<Void, Never>? in
      for event in events {
        switch event {
        case .transcript(_, let changes):
          for case .inserted(let row) in changes {
            guard let text = row.text, text.hasPrefix(prefix) else { continue }
            state.items.append(Item(text: text, at: now))
            state.count += 1
          }
        case .chats(let chats, _):
          for case let group? in chats.map(\.summary.group) { state.groups.insert(group) }
        default: continue
        }
      }
      guard let waiter = state.waiter, state.count >= waiter.count else { return nil }
      state.waiter = nil
      return waiter.continuation
    }
    woken?.resume()
  }

  var items: [Item] { state.withLock { $0.items } }
  var groupCount: Int { state.withLock { $0.groups.count } }

  /// Returns when so many have come in all.
  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if state.count >= count { return true }
        state.waiter = (count, continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func clear() {
    state.withLock { state in
      (state.items, state.count) = ([], 0)
    }
  }
}

/// A server's process and devices of people, on this machine.
final class ChatWorld {
  let folder: BenchFolder
  let server: DeliveryServer
  private(set) var clients: [(client: ChatClient, inbox: ChatInbox)] = []

  init() throws {
    folder = try BenchFolder()
    server = try DeliveryServer(
      folder: folder.file("server"),
      ["--device-rate", "1000000", "--log-level", "warning", "--max-group-devices", "10000"])
  }

  /// A person's device that is enrolled.
  @discardableResult
  func add(_ name: String, settings: ShellSettings = ShellSettings()) async throws -> (
    client: ChatClient, inbox: ChatInbox
  ) {
    let inbox = ChatInbox()
    var settings = settings
    settings.folder = stores(of: name)
    let client = try await ChatClient.open(
      server: server.address, folder: folder.file(name), email: "\(name)@example.org", settings: settings,
      sink: inbox.sink)
    await client.shell.start()
    try await client.shell.waitUntilEnrolled()
    clients.append((client, inbox))
    return (client, inbox)
  }

  /// Where somebody's stores lie.
  func stores(of name: String) -> String { folder.file(name) + "/chats" }

  func close() async {
    for (client, _) in clients { await client.shell.close() }
    clients = []
  }
}

/// The middle and the worst but one in a hundred.
struct Percentiles {
  let p50: Double
  let p99: Double

  init(_ values: [Double]) {
    let sorted = values.sorted()
    func at(_ part: Double) -> Double {
      sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
    }
    (p50, p99) = (at(0.5), at(0.99))
  }
}
