import Foundation
import Observation
import PalbeMessaging
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import Palbase
@testable import PalbeMessaging

/// Somebody with an app, as an app sees the SDK: `pb`, and nothing behind it.
@MainActor final class Person {
  let folder: TemporaryFolder
  let host: PalbaseHost
  let name: String
  private(set) var id = ""
  let failures = Mutex<[BackendError]>([])
  nonisolated var pb: PalbeNamespace { PalbeNamespace(host: host) }
  var messaging: MessagingNamespace { pb.messaging }

  init(_ server: ChatServer, _ name: String, in folder: TemporaryFolder? = nil) throws {
    self.name = name
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    let keys = ["ServerURL": "http://127.0.0.1:\(server.port)", "DataFolder": "data"]
    try PropertyListSerialization.data(fromPropertyList: keys, format: .xml, options: 0)
      .write(to: URL(fileURLWithPath: folder.path("config.plist")))
    host = PalbaseHost(
      surroundings: AppProcess.surroundings(folder.url.path), time: .system,
      transport: { _ in CurlTransport() },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
    pb.configure(onError: { [weak self] error in self?.failures.withLock { $0.append(error) } })
  }

  func signUp() async throws {
    id = try await pb.auth.signUp(email: "\(name)@example.com", password: "correct horse \(name)").id
  }

  func signIn() async throws {
    id = try await pb.auth.signIn(email: "\(name)@example.com", password: "correct horse \(name)").id
  }

  /// Signed up, enrolled, and there.
  static func there(_ server: ChatServer, _ name: String) async throws -> Person {
    let person = try Person(server, name)
    try await person.signUp()
    try await person.messaging.start()
    _ = person.messaging.chats
    return person
  }

  /// The chat in this person's list that shows it.
  func chat(showing text: String) async throws -> Chat {
    await until { self.messaging.chats.all.contains { $0.lastMessage?.text == text } }
    let chat = try #require(messaging.chats.all.first { $0.lastMessage?.text == text })
    await until { chat.messages.contains { $0.text == text } }
    return chat
  }

  func end() async { await Messenger.discard(host) }
}

/// Returns when what it reads of observable objects makes it true. Nothing sleeps: it looks again when something changed.
@MainActor func until(_ condition: @MainActor () -> Bool) async {
  while true {
    let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
    let isTrue = withObservationTracking {
      condition()
    } onChange: {
      continuation.yield()
    }
    if isTrue { return }
    for await _ in changes { break }
  }
}
