import Foundation
import PalbeBackendCore
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// The folder is moved, replaced or deleted while a server has its files open.
@Suite("palbe-server and a data folder that goes while it runs (section 3)")
final class DisplacedFolderTests {
  private let folder: TemporaryFolder
  private let server: BackendServer
  private let sessions = FakeSessions()
  private let anna: ServerClient
  private var data: String { folder.path("data") }

  init() throws {
    folder = try TemporaryFolder()
    let log = open(folder.path("log"), O_WRONLY | O_CREAT | O_APPEND, 0o600)
    var configuration = BackendServer.Configuration(data: folder.path("data"))
    configuration.log = ServerLog(level: .info, descriptor: log)
    server = try BackendServer(configuration, verifier: sessions)
    var random = RandomSource(seed: 4)
    let user = UserID(at: ServerTime.now.wall, using: &random)
    anna = ServerClient(port: server.port, user: user, accessToken: sessions.signIn(user).0, seed: 4)
    try anna.enrol()
  }

  deinit { server.stop() }

  private var log: String { (try? String(contentsOfFile: folder.path("log"), encoding: .utf8)) ?? "" }

  private func send(_ group: (group: GroupID, mlsID: MLSGroupID)) throws -> HTTPConnection.Answer {
    try anna.ask("POST", "/v1/groups/\(group.group)/messages", anna.message(group.mlsID, 0))
  }

  @Test(
    "Bug: what was sent then was acknowledged and lost; it is refused, told, unready, and goes on when the folder is back"
  )
  func moved() throws {
    let group = try anna.found(with: [])
    #expect(try send(group).status == 200 && anna.ask("GET", "/v1/ready").status == 204)
    let files = FileManager.default
    try files.moveItem(atPath: data, toPath: folder.path("moved"))
    for isReplaced in [false, true] {
      if isReplaced {
        try files.createDirectory(atPath: data, withIntermediateDirectories: false)
        try files.copyItem(
          atPath: folder.path("moved/messages.sqlite"), toPath: data + "/messages.sqlite")
      }
      let refused = try send(group)
      #expect(refused.status == 503 && refused.code == "unavailable")
      #expect(try anna.ask("GET", "/v1/queue").status == 503)
      let unready = try anna.ask("GET", "/v1/ready")
      #expect(unready.status == 503 && unready.code == "unavailable")
    }
    #expect(log.contains("store=messages fault=displaced"), "\(log)")
    try files.removeItem(atPath: data)
    try files.moveItem(atPath: folder.path("moved"), toPath: data)
    #expect(try send(group).json["seq"] as? Int == 2)
    #expect(try anna.ask("GET", "/v1/ready").status == 204)
  }

  @Test("Deleted while nobody asks: the log tells within seconds")
  func deleted() throws {
    try FileManager.default.removeItem(atPath: data)
    let deadline = Date(timeIntervalSinceNow: 10)
    while !log.contains("fault=displaced"), Date() < deadline { usleep(20_000) }
    #expect(log.contains("store=messages fault=displaced"))
  }

  @Test("Accounts: their file is gone, they are refused, the messages go on")
  func accounts() throws {
    let desk = try AccountDesk(folder.path("desk"))
    #expect(try desk.signUp("anna@example.org").status == 200)
    let path = folder.path("desk/accounts.sqlite")
    try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
    let refused = try desk.signIn("anna@example.org")
    #expect(refused.status == 503 && refused.code == "unavailable")
    #expect(try desk.ask("GET", "/v1/ready").status == 503)
    try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
    #expect(try desk.signIn("anna@example.org").status == 200)
  }
}
