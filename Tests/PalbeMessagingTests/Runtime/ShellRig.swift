import Foundation
import PalbeChatCore
import PalbeMessaging
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import Palbase

/// A `palbe-server` process over a folder; killed and started again on the same port.
final class ChatServer: @unchecked Sendable {
  private let folder: TemporaryFolder
  private var process: ToolProcess
  let port: UInt16

  init() throws {
    folder = try TemporaryFolder()
    process = try Self.start(folder, port: 0)
    port = try process.readPort()
  }

  private static func start(_ folder: TemporaryFolder, port: UInt16) throws -> ToolProcess {
    try ToolProcess(
      "palbe-server", ["serve", "--host", "127.0.0.1", "--port", "\(port)", "--data", folder.path("data")])
  }

  func kill() {
    process.terminate(with: SIGKILL)
    _ = process.finish()
  }

  func startAgain() throws {
    process = try Self.start(folder, port: port)
    _ = process.readLine()
  }

  deinit { kill() }
}

/// What a shell told, by the chats it told of.
@MainActor final class Told {
  var events: [ShellEvent] = []
  var rows: [ChatID: [ClientMessageID: Row]] = [:]
  var chats: [ChatID: ChatSnapshot] = [:]
  var deliveries = 0
  private var waiters:
    [(condition: @MainActor (Told) -> Bool, continuation: CheckedContinuation<Void, Never>)] = []

  func take(_ new: [ShellEvent]) {
    deliveries += 1
    events += new
    for event in new {
      switch event {
      case .chats(let list, _): for chat in list { chats[chat.id] = chat }
      case .transcript(let chat, let changes):
        for change in changes {
          switch change {
          case .inserted(let row), .updated(let row): rows[chat, default: [:]][row.id] = row
          case .removed(let id): rows[chat]?[id] = nil
          case .elevated: break
          }
        }
      default: break
      }
    }
    let due = waiters.filter { $0.condition(self) }
    waiters.removeAll { $0.condition(self) }
    for waiter in due { waiter.continuation.resume() }
  }

  /// Returns when something told makes it true.
  func when(_ condition: @escaping @MainActor (Told) -> Bool) async {
    if condition(self) { return }
    await withCheckedContinuation { waiters.append((condition, $0)) }
  }

  func texts(_ chat: ChatID) -> [String] {
    (rows[chat] ?? [:]).values.filter { $0.kind.isBubble }.sorted {
      ($0.position ?? TranscriptPosition(rawValue: .max))
        < ($1.position ?? TranscriptPosition(rawValue: .max))
    }.compactMap(\.text)
  }

  /// The only chat that has a text.
  func chat(with text: String) -> ChatID? {
    rows.first { $0.value.values.contains { $0.text == text } }?.key
  }
}

/// An app with a shell: real HTTP, a real socket, a real file.
@MainActor final class ChatApp {
  let folder: TemporaryFolder
  let host: PalbaseHost
  let user: UserID
  private(set) var shell: MessagingShell!
  private(set) var told = Told()
  var settings = ShellSettings()

  var runtime: PalbaseRuntime { get throws { try host.runtime() } }

  init(
    _ server: ChatServer, _ name: String, in folder: TemporaryFolder? = nil, opens: Bool = true,
    signsIn: Bool = false
  )
    async throws
  {
    let isNew = folder == nil
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    let keys = ["ServerURL": "http://127.0.0.1:\(server.port)", "DataFolder": "data"]
    try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
      .write(to: URL(fileURLWithPath: folder.path("config.plist")))
    host = PalbaseHost(
      surroundings: AppProcess.surroundings(folder.url.path), time: .system,
      transport: { _ in CurlTransport() },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
    let sessions = try host.runtime().sessions
    if isNew {
      let current = try await sessions.signIn(
        signsIn ? "sign-in" : "sign-up",
        ["email": "\(name)@example.com", "password": "correct horse \(name)"])
      user = try #require(UserID(current.id))
    } else if case .signedIn(let current) = sessions.state.value {
      user = try #require(UserID(current.id))
    } else {
      throw BackendError.client(.notSignedIn)
    }
    if opens { try await open() }
  }

  func open(starting: Bool = true) async throws {
    let told = Told()
    self.told = told
    shell = try await MessagingShell.open(runtime, user: user, settings: settings) { told.take($0) }
    if starting {
      await shell.start()
      try await shell.waitUntilEnrolled()
    }
  }

  func chat(with other: ChatApp) async throws -> ChatID { try await shell.directChat(with: other.user).id }
}

enum AppProcess {
  static func surroundings(_ folder: String) -> Settings.Surroundings {
    Settings.Surroundings(
      environment: ["PALBE_CONFIG": folder + "/config.plist"], resourceFolder: nil,
      executable: folder + "/bin/app",
      home: folder + "/home")
  }
}

@MainActor func failure(_ body: @MainActor () async throws -> Void) async -> FailureCode? {
  do {
    try await body()
    return nil
  } catch { return (error as? BackendError)?.code }
}
