import Palbase
import PalbeChatCore
import PalbeMessaging
import PalbeUnits

/// Sends numbered texts to somebody until it is killed, and says each that is durable.
@MainActor enum ChatProbe {
  static func run(peer: UserID, count: Int) async throws {
    let runtime = try PalbaseHost.shared.runtime()
    guard case .signedIn(let current) = runtime.sessions.state.value, let me = UserID(current.id) else {
      throw BackendError.client(.notSignedIn)
    }
    let shell = try await MessagingShell.open(runtime, user: me, settings: ShellSettings()) { _ in }
    await shell.start()
    try await shell.waitUntilEnrolled()
    let chat = try await shell.directChat(with: peer).id
    for number in 0..<count {
      let id = try await shell.enqueue(.text(TextBody("text \(number)")), to: chat)
      say("\(number) \(id.text)")
    }
    // Until it is killed.
    try await Task.sleep(for: .seconds(600))
  }
}
