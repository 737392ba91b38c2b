import Foundation
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import PalbeBackendServer

/// The real binary, killed while it rotates refresh tokens.
@Suite("Accounts: palbe-server, killed", .enabled(if: ToolProcess.executable("palbe-server") != nil))
struct AccountProcessTests {
  /// A server on a free port.
  private static func start(_ folder: String) throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess.serving(folder)
    return (process, try process.readPort())
  }

  private static func post(_ port: UInt16, _ name: String, _ body: [String: String]) throws
    -> HTTPConnection.Answer
  {
    try HTTPConnection(port: port, timeout: 20).send(
      "POST", "/v1/auth/" + name, headers: [("content-type", "application/json")],
      body: [UInt8](try JSONEncoder().encode(body)))
  }

  @Test(
    "Section 3, 1: kill -9 at random moments of refreshes: the token in hand always leads on, its session never ends"
  )
  func killed() throws {
    let folder = try TemporaryFolder()
    var random = RandomSource(seed: 5)
    var (process, port) = try Self.start(folder.path("data"))
    let first = try Self.post(port, "sign-in", ["email": "anna@example.org", "password": "correct horse"])
    try #require(first.status == 200)
    let token = Mutex(first.text("refresh_token"))
    let count = Atomic<Int>(0)
    for _ in 0..<8 {
      let isDone = DispatchSemaphore(value: 0)
      Thread.detachNewThread { [port] in
        // Until no whole answer comes.
        while let answer = try? Self.post(port, "refresh", ["refresh_token": token.withLock { $0 }]) {
          #expect(answer.status == 200, "\(answer.code ?? "")")
          token.withLock { $0 = answer.text("refresh_token") }
          count.add(1, ordering: .relaxed)
        }
        isDone.signal()
      }
      Thread.sleep(forTimeInterval: 0.002 * Double(random.next() % 40))
      process.terminate(with: SIGKILL)
      isDone.wait()
      _ = process.finish()
      (process, port) = try Self.start(folder.path("data"))
      let answer = try Self.post(port, "refresh", ["refresh_token": token.withLock { $0 }])
      #expect(
        answer.status == 200 && answer.text("session_id") == first.text("session_id"), "\(answer.code ?? "")")
      token.withLock { $0 = answer.text("refresh_token") }
    }
    #expect(count.load(ordering: .relaxed) > 0)
    // The account is there, and its password.
    let wrong = try Self.post(port, "sign-in", ["email": "anna@example.org", "password": "wrong horse"])
    #expect(wrong.code == "invalid_credentials")
    process.terminate()
    #expect(process.finish().code == 0)
  }
}
