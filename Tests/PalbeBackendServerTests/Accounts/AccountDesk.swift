import Foundation
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Synchronization

@testable import PalbeBackendServer

/// A real server with accounts over a folder, asked over HTTP.
final class AccountDesk: Sendable {
  let server: BackendServer

  /// Settings under which a password costs next to nothing.
  static var cheap: AccountSettings {
    var settings = AccountSettings()
    settings.rules.passwordCost = AccountRig<MemoryAccountStore>.cheap.passwordCost
    return settings
  }

  init(
    _ folder: String, _ settings: AccountSettings = AccountDesk.cheap,
    log: ServerLog = ServerLog(level: .warning)
  ) throws {
    var configuration = BackendServer.Configuration(data: folder)
    configuration.accounts = settings
    configuration.log = log
    server = try BackendServer(configuration)
  }

  deinit { server.stop() }

  var service: AccountService { server.accounts! }

  /// Asks over a connection of its own.
  func ask(
    _ method: String, _ path: String, _ body: [String: String]? = nil, token: String? = nil,
    raw: [UInt8]? = nil
  ) throws -> HTTPConnection.Answer {
    var headers = [("user-agent", "Test/1"), ("request-id", "r1"), ("content-type", "application/json")]
    if let token { headers.append(("authorization", "Bearer \(token)")) }
    let bytes = try raw ?? body.map { [UInt8](try JSONEncoder().encode($0)) }
    return try HTTPConnection(port: server.port).send(
      method, path, headers: headers, body: bytes ?? (method == "POST" ? [] : nil))
  }

  func post(_ name: String, _ body: [String: String]? = nil, token: String? = nil) throws
    -> HTTPConnection.Answer
  {
    try ask("POST", "/v1/auth/" + name, body, token: token)
  }

  func signUp(_ email: String, _ password: String = "correct horse") throws -> HTTPConnection.Answer {
    try post("sign-up", ["email": email, "password": password])
  }

  func signIn(_ email: String, _ password: String = "correct horse") throws -> HTTPConnection.Answer {
    try post("sign-in", ["email": email, "password": password])
  }

  func refresh(_ token: String) throws -> HTTPConnection.Answer {
    try post("refresh", ["refresh_token": token])
  }

  /// The same request from many threads at once.
  static func together(
    _ count: Int, _ ask: @escaping @Sendable (Int) throws -> HTTPConnection.Answer
  ) -> [HTTPConnection.Answer] {
    let answers = Mutex<[Int: HTTPConnection.Answer]>([:])
    let group = DispatchGroup()
    for index in 0..<count {
      group.enter()
      Thread.detachNewThread {
        if let answer = try? ask(index) { answers.withLock { $0[index] = answer } }
        group.leave()
      }
    }
    group.wait()
    return answers.withLock { Array($0.values) }
  }
}

extension HTTPConnection.Answer {
  func text(_ name: String) -> String { json[name] as? String ?? "" }
  func number(_ name: String) -> Double { json[name] as? Double ?? .nan }
  func isTrue(_ name: String) -> Bool { json[name] as? Bool ?? false }
  func list(_ name: String) -> [[String: Any]] { json[name] as? [[String: Any]] ?? [] }
}

/// Accounts whose delivery server is the test, asked through their routes.
final class LoneDesk: Sendable {
  let service: AccountService
  /// Whom the delivery server was told of, and what it says.
  let told: Told

  final class Told: Sendable {
    let users = Mutex<[UserID]>([])
    let failure = Mutex<BackendFailure?>(nil)
  }

  init(_ folder: String, _ settings: AccountSettings = AccountDesk.cheap) throws {
    let told = Told()
    self.told = told
    service = try AccountService(
      folder: folder, settings: settings, log: ServerLog(level: .warning, descriptor: -1),
      register: { user, done in
        told.users.withLock { $0.append(user) }
        done(told.failure.withLock { $0 })
      }, sessionsEnded: { _ in })
  }

  deinit { service.stop() }

  func ask(_ name: String, _ body: [String: String]) async -> Result<HTTPConnection.Answer, APIError> {
    let members = body.mapValues { JSONValue.text($0) }
    let input = RouteInput(path: JSONObject(), query: JSONObject(), body: JSONObject(members))
    guard let route = RouteTable.accountRoutes(service).first(where: { $0.name == name }),
      case .later(let serve) = route.service
    else { return .failure(.notFound) }
    let result: Result<JSONText?, APIError> = await withCheckedContinuation { continuation in
      serve(input) { continuation.resume(returning: $0) }
    }
    return result.map { .init(status: 200, headers: [:], body: $0?.bytes ?? []) }
  }
}
