import Foundation
package import Palbase
import Palbe
package import PalbeMessaging
import PalbeTestKit
package import PalbeUnits
import Synchronization

/// One user's device over the SDK against a real server: what an app has, below the main actor's models.
///
/// Several live in one process, each with a folder, a vault and connections of its own.
package final class ChatClient: Sendable {
  package let runtime: PalbaseRuntime
  package let user: UserID
  package let shell: MessagingShell

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
  }

  private init(_ runtime: PalbaseRuntime, _ user: UserID, _ shell: MessagingShell) {
    (self.runtime, self.user, self.shell) = (runtime, user, shell)
  }

  /// Signs in, and opens the stores; `shell.start()` is the caller's. A server in development makes the account.
  /// - Parameters:
  ///   - server: such as `http://127.0.0.1:8080`.
  ///   - folder: the device's own; made where it is missing.
  package static func open(
    server: String, folder: String, email: String, settings: ShellSettings = ShellSettings(),
    sink: @escaping ShellSink
  ) async throws -> ChatClient {
    let host = try host(server: server, folder: folder)
    let pb = PalbeNamespace(host: host)
    if pb.auth.currentUser == nil {
      try await pb.auth.signIn(email: email, password: "correct horse \(email)")
    }
    guard let user = pb.auth.currentUser.flatMap({ UserID($0.id) }) else {
      throw Failure("nobody is signed in")
    }
    let runtime = try host.runtime()
    let shell = try await MessagingShell.open(runtime, user: user, settings: settings, sink: sink)
    return ChatClient(runtime, user, shell)
  }

  /// Whether stores of a chat can be opened in this build; without network.
  package static func opensStores() async -> Bool {
    guard let folder = try? TemporaryFolder() else { return false }
    do {
      let runtime = try host(server: "http://127.0.0.1:1", folder: folder.path("device")).runtime()
      var random = runtime.time.randomSource
      let user = UserID(at: WallTime(microseconds: runtime.time.wallMilliseconds() * 1_000), using: &random)
      let shell = try await MessagingShell.open(
        runtime, user: user, settings: ShellSettings(), sink: { _ in })
      await shell.close()
      return true
    } catch { return false }
  }

  /// A process' place for its runtime, over real connections.
  package static func host(server: String, folder: String) throws -> PalbaseHost {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let config = folder + "/Palbase-Info.plist"
    try PropertyListSerialization.data(
      fromPropertyList: ["ServerURL": server, "DataFolder": "store"], format: .xml, options: 0
    ).write(to: URL(fileURLWithPath: config))
    let surroundings = Settings.Surroundings(
      environment: ["PALBE_CONFIG": config], resourceFolder: nil, executable: folder + "/app", home: folder)
    return PalbaseHost(
      surroundings: surroundings, time: .system, transport: { _ in CurlTransport() },
      connector: { _ in WebSocketConnector(trustedCertificateFile: nil) })
  }
}
