import Foundation
import PalbeBackendCore
import PalbeSQLStore
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("Faults of the stores: in the log, in metrics")
struct FaultLogTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A log into a file of the folder, and its lines.
  private func log() throws -> (ServerLog, () -> [String]) {
    let path = folder.path("log")
    let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    try #require(descriptor >= 0)
    return (
      ServerLog(level: .info, descriptor: descriptor),
      {
        ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
      }
    )
  }

  @Test("A full disk is told at once, then once a minute with its count; another fault by itself")
  func limited() throws {
    let (log, lines) = try log()
    let faults = FaultLog(log)
    let start = Instant(nanoseconds: 1_000)
    for index in 0..<500 { faults.note(.full, of: .messages, at: start + .milliseconds(index)) }
    faults.note(.corrupted, of: .accounts, at: start)
    faults.note(.full, of: .messages, at: start + .seconds(60))
    #expect(lines().count == 3)
    #expect(
      lines()[0].contains("warning store fault store=messages fault=full") && lines()[0].hasSuffix("count=1"))
    #expect(lines()[1].contains("store=accounts fault=corrupted"))
    #expect(lines()[2].hasSuffix("count=500"))
    var text = Exposition()
    faults.write(into: &text)
    let page = text.text
    #expect(page.contains("palbe_server_store_faults_total{store=\"messages\",fault=\"full\"} 501\n"))
    #expect(page.contains("palbe_server_store_faults_total{store=\"attachments\",fault=\"full\"} 0\n"))
  }

  @Test("A group whose row is damaged: 503 for it, others are served, one line in the log, counted")
  func damagedGroup() throws {
    let sessions = FakeSessions()
    let (log, lines) = try log()
    var configuration = BackendServer.Configuration(data: folder.path("data"))
    configuration.log = log
    configuration.metrics = (0, MetricsPage())
    var server = try BackendServer(configuration, verifier: sessions)
    var random = RandomSource(seed: 3)
    func client(_ user: UserID) -> ServerClient {
      ServerClient(port: server.port, user: user, accessToken: sessions.signIn(user).0, seed: random.next())
    }
    let anna = client(UserID(at: ServerTime.now.wall, using: &random))
    try anna.enrol()
    let (damaged, whole) = (try anna.found(with: []), try anna.found(with: []))
    server.stop()
    server = try BackendServer(configuration, verifier: sessions) { store in
      try? store.connection.execute("UPDATE grp SET epoch = -1, head = 9223372036854775807 WHERE key = 1")
    }
    defer { server.stop() }
    let reader = ServerClient(anna, port: server.port)
    for _ in 0..<5 {
      for path in ["/v1/groups/\(damaged.group)", "/v1/groups"] {
        let refused = try reader.ask("GET", path)
        #expect(refused.status == 503 && refused.code == "unavailable")
      }
      let refused = try reader.ask(
        "POST", "/v1/groups/\(damaged.group)/messages", reader.message(damaged.mlsID, 0))
      #expect(refused.status == 503)
      try reader.get("POST", "/v1/groups/\(whole.group)/messages", reader.message(whole.mlsID, 0))
    }
    #expect(lines().filter { $0.contains("store fault") }.count == 1, "\(lines())")
    let port = try #require(server.metricsPort)
    let page = String(decoding: try HTTPConnection(port: port).send("GET", "/metrics").body, as: UTF8.self)
    #expect(page.contains("palbe_server_store_faults_total{store=\"messages\",fault=\"corrupted\"} 15\n"))
  }
}
