import Foundation
import Glibc
import PalbeBackendCore
import PalbeEventLoop
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization

/// How long and how rough.
public struct CampaignSettings: Sendable {
  public var seed: UInt64 = 1
  public var operationCount = 3_000
  public var clientCount = 12
  public var killCount = 3
  public var groupCount = 6
  public init() {}
}

/// What became of it.
public struct CampaignReport: Sendable {
  public var operations = 0
  public var accepted = 0
  public var commits = 0
  /// Commits and messages that came too late.
  public var stale = 0
  public var kills = 0
  /// Requests whose connection broke.
  public var broken = 0
  /// What must not be. Empty: all is well.
  public var complaints: [String] = []
}

/// Clients at a real `palbe-server` process that is killed again and again. What they were told must hold in the end: nothing
/// acknowledged is lost, sequences are dense, one commit an epoch, an acknowledgement removes only its rows, a key answers the
/// first answer (requirements 4.1, 4.5).
public final class Campaign: @unchecked Sendable {
  let model = CampaignModel()
  private let settings: CampaignSettings
  private let folder: TemporaryFolder
  private var process: ToolProcess
  let port: UInt16
  private(set) var groups: [(GroupID, MLSGroupID)] = []
  private(set) var users: [UserID] = []
  private var clients: [CampaignClient] = []
  private let done = Atomic<Int>(0)
  private let brokenCount = Atomic<Int>(0)

  /// Starts the server, and founds the groups.
  public init(_ settings: CampaignSettings) throws {
    self.settings = settings
    folder = try TemporaryFolder()
    (process, port) = try Self.start(folder.path("data"), port: 0)
    try populate()
  }

  private static func start(_ data: String, port: UInt16) throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess("palbe-server", ["serve", "--dev", "--data", data, "--port", "\(port)"])
    do { return (process, try process.readPort()) } catch {
      throw ServerClient.Unexpected(
        description: "palbe-server did not start: \(error) \(process.finish().errors)")
    }
  }

  /// An access token; in development a first sign-in makes the account.
  static func signIn(_ http: HTTPConnection, _ email: String) throws -> (user: UserID, token: String) {
    let body = Array(
      try JSONSerialization.data(withJSONObject: ["email": email, "password": "correct horse \(email)"]))
    for _ in 0..<3_000 {
      let answer = try? http.send(
        "POST", "/v1/auth/sign-in", headers: [("content-type", "application/json")], body: body)
      if let answer, answer.status == 200, let text = answer.json["user_id"] as? String,
        let user = UserID(text), let token = answer.json["access_token"] as? String
      {
        return (user, token)
      }
      if let answer, answer.status != 503, answer.status != 429 {
        throw ServerClient.Unexpected(description: "sign-in: \(String(decoding: answer.body, as: UTF8.self))")
      }
      usleep(20_000)
    }
    throw ServerClient.Unexpected(description: "nobody can sign in for a minute")
  }

  private func populate() throws {
    // One in five users has two devices.
    for index in 0..<settings.clientCount {
      let email = "u\(index % max(1, settings.clientCount * 4 / 5))@example.org"
      let http = HTTPConnection(port: port)
      let (user, token) = try Self.signIn(http, email)
      if !users.contains(user) { users.append(user) }
      let client = ServerClient(
        port: port, user: user, accessToken: token, seed: settings.seed &* 1_000 &+ UInt64(index))
      try client.enrol(packages: 20)
      clients.append(CampaignClient(self, client, email: email, usesSocket: index % 2 == 1))
    }
    var random = RandomSource(seed: settings.seed)
    for _ in 0..<settings.groupCount {
      let founder = clients[Int(random.next() % UInt64(clients.count))]
      let others = users.filter { $0 != founder.client.user && random.next() % 3 == 0 }.prefix(8)
      // The founder's other device comes with the commit too.
      let own = clients.filter { $0.client.user == founder.client.user && $0.device != founder.device }
        .map(\.device)
      var leaves = try others.flatMap { try founder.client.claim($0) }
      if !own.isEmpty { leaves += try founder.client.claim(founder.client.user) }
      guard !leaves.isEmpty else { continue }
      let mlsID = MLSGroupID(random.bytes(32))
      let json = try founder.client.get(
        "POST", "/v1/groups",
        [
          "rfc_group_id": ServerClient.text(mlsID.bytes), "kind": "group",
          "initial_commit": founder.client.bundle(mlsID, 0, adding: Array(others), leaves: leaves),
        ])
      guard let text = json["group_id"] as? String, let group = GroupID(text) else {
        throw ServerClient.Unexpected(description: "no group: \(json)")
      }
      model.founded(group, by: founder.device, with: leaves)
      groups.append((group, mlsID))
    }
  }

  func broken() { brokenCount.wrappingAdd(1, ordering: .relaxed) }

  /// Runs to the end.
  public func run() throws -> CampaignReport {
    let each = settings.operationCount / clients.count
    let threads = try clients.map { client in
      try WorkerThread(name: "client") { [self] in
        for _ in 0..<each {
          do { try client.step() } catch { model.complain("\(error)") }
          done.wrappingAdd(1, ordering: .relaxed)
        }
      }
    }
    var random = RandomSource(seed: settings.seed &+ 77)
    let total = each * clients.count
    let points = (0..<settings.killCount).map { _ in Int(random.next() % UInt64(max(1, total * 9 / 10))) }
      .sorted()
    var kills = 0
    for point in points {
      while done.load(ordering: .relaxed) < point { usleep(1_000) }
      try killServer()
      kills += 1
    }
    for thread in threads { thread.join() }
    // Once more, so that what is checked is what is on the disk.
    try killServer()
    kills += 1
    var heads: [GroupID: LogSequence] = [:]
    for client in clients {
      try client.fetch(all: true)
      for (group, _) in groups where heads[group] == nil { heads[group] = try client.head(of: group) }
    }
    model.check(heads: heads)
    process.terminate()
    let end = process.finish()
    if end.code != 0 { model.complain("the server ended with \(end.code): \(end.errors)") }
    let told = model.report
    return CampaignReport(
      operations: done.load(ordering: .relaxed), accepted: told.accepted, commits: told.commits,
      stale: told.stale, kills: kills, broken: brokenCount.load(ordering: .relaxed),
      complaints: told.complaints)
  }

  private func killServer() throws {
    process.terminate(with: SIGKILL)
    _ = process.finish()
    (process, _) = try Self.start(folder.path("data"), port: port)
  }
}
