import Foundation
import Glibc
import Palbase
import PalbeChatClient
import PalbeChatCore
import PalbeMessaging
import PalbeTestKit
import PalbeUnits
import Synchronization

/// A client's process: it does what lines on standard input say, and at random what people do in chats.
public actor CampaignClient {
  public static let command = "campaign-client"
  /// The campaign's own program, also for a test.
  static let program = ToolProcess.executable("chat-campaign")?.path ?? "/proc/self/exe"

  private let client: ChatClient
  private let folder: String
  private let index: Int
  private let life: String
  private let interval: Double
  private var random: RandomSource
  private var count = 0
  private var actions = 0
  private var isActive = false
  private var chats: [ChatID: GroupID] = [:]
  private let journal: FileHandle
  private var noted: [[String]] = []
  private var isReady = false

  /// Runs one until it is told to end: server, folder, index, life, seed, seconds between actions.
  public static func run(_ words: [String]) async -> Int32 {
    guard words.count == 6, let index = Int(words[2]), let seed = UInt64(words[4]),
      let interval = Double(words[5])
    else { return 2 }
    do {
      let news = AsyncStream<[ShellEvent]>.makeStream()
      var opened: ChatClient?
      // A server that is down, or a file that the one before has not let go of yet.
      for attempt in 0..<600 where opened == nil {
        do {
          opened = try await ChatClient.open(
            server: words[0], folder: words[1], email: "c\(index)@example.org",
            sink: { events in news.continuation.yield(events) })
        } catch let error as BackendError where error.retry == .yes || error.code == .unreachable {
          if attempt == 599 { throw error }
          try await Task.sleep(for: .milliseconds(100))
        }
      }
      guard let client = opened else { return 1 }
      let own = try CampaignClient(client, words[1], index, words[3], seed, interval)
      await client.shell.start()
      try await client.shell.waitUntilEnrolled()
      say("user \(client.user)")
      let listening = Task { for await events in news.stream { await own.heard(events) } }
      let acting = Task { await own.act() }
      for await line in lines() {
        if line == "end" { break }
        await own.take(line)
      }
      acting.cancel()
      listening.cancel()
      await client.shell.close()
      return 0
    } catch {
      say("complaint \(error)")
      return 1
    }
  }

  private init(
    _ client: ChatClient, _ folder: String, _ index: Int, _ life: String, _ seed: UInt64, _ interval: Double
  ) throws {
    (self.client, self.folder, self.index, self.life, self.interval) = (client, folder, index, life, interval)
    random = RandomSource(seed: seed &* 1_000 &+ UInt64(index) &* 100 &+ (UInt64(life) ?? 0))
    let path = folder + "/journal"
    if let data = FileManager.default.contents(atPath: path) {
      for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
        noted.append(line.split(separator: "\t").map(String.init))
      }
    } else {
      _ = FileManager.default.createFile(atPath: path, contents: nil)
    }
    guard let handle = FileHandle(forWritingAtPath: path) else { throw ChatClient.Failure("no journal") }
    journal = handle
    try journal.seekToEnd()
  }

  static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

  private static func lines() -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while let line = readLine() { continuation.yield(line) }
        continuation.finish()
      }
    }
  }

  private func below(_ bound: Int) -> Int { Int(random.next() % UInt64(max(1, bound))) }

  // MARK: News

  private func heard(_ events: [ShellEvent]) {
    for event in events {
      switch event {
      case .chats(let snapshots, _):
        for chat in snapshots where chat.summary.state == .active {
          if let group = chat.summary.group { chats[chat.id] = group }
        }
        if !chats.isEmpty, !isReady {
          isReady = true
          Self.say("ready")
        }
      case .ended(let end) where end != .closed: Self.say("complaint the shell ended: \(end)")
      default: break
      }
    }
  }

  // MARK: What it is told

  private func take(_ line: String) async {
    let words = line.split(separator: " ").map(String.init)
    do {
      switch words.first {
      case "go": isActive = true
      case "stop": isActive = false
      case "group":
        let chat = try await client.shell.groupChat(
          title: words[1], members: words.dropFirst(2).compactMap { UserID($0) })
        _ = try await client.shell.send(.text(TextBody("founded \(words[1])")), to: chat.id)
        Self.say("founded")
      case "direct":
        guard let peer = UserID(words[1]) else { return }
        let chat = try await client.shell.directChat(with: peer)
        _ = try await client.shell.send(.text(TextBody("founded")), to: chat.id)
        Self.say("founded")
      case "report": try await report()
      default: Self.say("complaint unknown: \(line)")
      }
    } catch { Self.say("complaint \(line): \(error)") }
  }

  private func report() async throws {
    var told: [String: [[String]]] = [:]
    for (chat, group) in chats {
      var rows: [Row] = []
      var before: TranscriptPosition?
      repeat {
        let page = try await client.shell.page(of: chat, before: before, limit: 500)
        rows = page.rows + rows
        before = page.earlier
      } while before != nil
      told[group.text] = rows.filter(\.kind.isBubble).map { row in
        [
          row.seq.map { "\($0)" } ?? "pending", row.id.text, described(row),
          row.delivery == .sent ? "sent" : "pending",
        ]
      }
    }
    struct State: Encodable {
      var chats: [String: [[String]]]
      var noted: [[String]]
      var actions: Int
    }
    let data = try JSONEncoder().encode(State(chats: told, noted: noted, actions: actions))
    Self.say("state " + String(decoding: data, as: UTF8.self))
  }

  private func described(_ row: Row) -> String {
    let reactions = row.reactions.map { "\($0.emoji)\($0.users.map(\.text).sorted())" }.sorted()
    return "\(row.sender?.device.text ?? "") '\(row.text ?? row.attachment?.filename ?? "")'"
      + (row.isEdited ? " edited" : "") + (row.isDeleted ? " deleted" : "") + " \(reactions)"
  }

  // MARK: What people do

  func act() async {
    while !Task.isCancelled {
      try? await Task.sleep(for: .milliseconds(Int(interval * 1_000 * (0.5 + Double(below(1_000)) / 1_000))))
      guard isActive, !chats.isEmpty else { continue }
      let (chat, group) = chats.sorted { $0.key < $1.key }[below(chats.count)]
      do { try await act(in: chat, group) } catch is CancellationError { return } catch {
        // The store went with the process that is about to end, or the chat is not here yet.
        Self.say("complaint act: \(error)")
      }
      actions += 1
    }
  }

  private func act(in chat: ChatID, _ group: GroupID) async throws {
    let shell = client.shell
    switch below(100) {
    case 0..<70:
      count += 1
      let text = "c\(index).\(life).\(count)"
      _ = try await shell.enqueue(.text(TextBody(text)), to: chat)
      note(group, text)
    case 70..<76:
      count += 1
      let name = "c\(index).\(life).\(count).bin"
      let file = OutgoingFile(
        .bytes(random.bytes(1_000 + below(40_000))), kind: .file, filename: name,
        mimeType: "application/octet-stream")
      _ = try await shell.enqueueFile(file, to: chat)
      note(group, name)
    case 76..<88:
      let rows = try await shell.page(of: chat, limit: 20).rows.filter { $0.kind.isBubble && $0.seq != nil }
      guard !rows.isEmpty else { return }
      _ = try await shell.enqueue(
        .reaction(
          target: rows[below(rows.count)].id, emoji: ["👍", "❤️", "🎉"][below(3)], isRemoved: below(3) == 0),
        to: chat)
    case 88..<92:
      await shell.setTyping(true, in: chat)
    default:
      guard let last = try await shell.page(of: chat, limit: 1).rows.last?.seq else { return }
      // The server may be gone; the mark is told later.
      Task { _ = try? await shell.command(.markRead(chat, upTo: last)) }
    }
  }

  /// In the journal before anything else is done: it outlives a kill.
  private func note(_ group: GroupID, _ text: String) {
    noted.append([group.text, text])
    try? journal.write(contentsOf: Data("\(group.text)\t\(text)\n".utf8))
  }
}
