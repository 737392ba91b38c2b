import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeEventLoop
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization

@testable import PalbeBackendServer

/// Sessions by tokens of no meaning.
final class FakeSessions: SessionVerifier {
  private struct Entry {
    var session: VerifiedSession
    var isRevoked = false
  }
  private let entries = Mutex<[String: Entry]>([:])

  func session(token: String) throws(BackendFailure) -> VerifiedSession {
    guard let entry = entries.withLock({ $0[token] }) else { throw .notSignedIn }
    let now = ServerTime.now.wall
    guard !entry.isRevoked, entry.session.expiresAt > now else { throw .sessionExpired }
    return entry.session
  }

  func signIn(_ user: UserID, session: SessionID? = nil, for seconds: Double = 600) -> (String, SessionID) {
    var random = SystemRandomNumberGenerator()
    let number = random.next()
    var source = RandomSource(seed: number)
    let now = ServerTime.now.wall
    let id = session ?? SessionID(at: now, using: &source)
    let token = "token-\(number)"
    entries.withLock {
      $0[token] = Entry(
        session: VerifiedSession(
          user: user, session: id, expiresAt: now + .seconds(seconds),
          deadline: MonotonicClock.now() + .seconds(seconds)))
    }
    return (token, id)
  }

  func revoke(_ token: String) { entries.withLock { $0[token]?.isRevoked = true } }
}

/// A real server on a free port over a folder of its own.
final class ServerRig {
  let folder: TemporaryFolder
  let sessions = FakeSessions()
  let server: BackendServer
  private var random = RandomSource(seed: 99)
  private var seed: UInt64 = 1_000

  init(_ change: (inout BackendServer.Configuration) -> Void = { _ in }) throws {
    folder = try TemporaryFolder()
    var configuration = BackendServer.Configuration(data: folder.path("data"))
    change(&configuration)
    server = try BackendServer(configuration, verifier: sessions)
  }

  deinit { server.stop() }

  func newUser() -> UserID {
    UserID(at: ServerTime.now.wall, using: &random)
  }

  /// A client that is signed in.
  func client(_ user: UserID? = nil) -> ServerClient {
    let user = user ?? newUser()
    seed += 1
    return ServerClient(
      port: server.port, user: user, accessToken: sessions.signIn(user).0, seed: seed)
  }

  /// A client with a device.
  func device(_ user: UserID? = nil) throws -> ServerClient {
    let client = client(user)
    try client.enrol()
    return client
  }
}
