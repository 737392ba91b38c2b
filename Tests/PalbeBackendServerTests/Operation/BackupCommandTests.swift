import Foundation
import PalbeBackendCore
import PalbeSQLStore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import PalbeBackendServer

@Suite("palbe-server backup")
struct BackupCommandTests {
  /// An attachment that is complete.
  private func attach(_ client: ServerClient, _ group: GroupID, _ bytes: [UInt8], port: UInt16) throws
    -> String
  {
    let view = try client.get("POST", "/v1/groups/\(group)/blobs", ["size": bytes.count])
    let put = try #require(view["put_url"] as? String)
    #expect(try HTTPConnection(port: port).send("PUT", put, body: bytes).status == 201)
    let id = try #require(view["blob_id"] as? String)
    try client.get("POST", "/v1/blobs/\(id)/complete")
    return id
  }

  @Test(
    "While the server works: what it acknowledged before is in the copy, whole and consistent; it starts from the copy"
  )
  func online() throws {
    let rig = try ServerRig { $0.blobs.reservedByteCount = 0 }
    defer { rig.server.stop() }
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    let bytes = anna.random.bytes(100_000)
    let blob = try attach(anna, group, bytes, port: rig.server.port)
    for _ in 0..<100 { try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1)) }
    // Somebody else goes on meanwhile.
    let isDone = Atomic<Bool>(false)
    let ended = DispatchSemaphore(value: 0)
    let writer = ServerClient(ben, port: rig.server.port)
    nonisolated(unsafe) let sender = writer
    Thread.detachNewThread {
      while !isDone.load(ordering: .relaxed) {
        _ = try? sender.ask("POST", "/v1/groups/\(group)/messages", sender.message(mlsID, 1))
      }
      ended.signal()
    }
    let (source, target) = (rig.folder.path("data"), rig.folder.path("copy"))
    try BackendServer.backUp(source, to: target)
    isDone.store(true, ordering: .relaxed)
    ended.wait()
    #expect(throws: (any Error).self) { try BackendServer.backUp(source, to: target) }
    #expect(throws: (any Error).self) { try BackendServer.backUp(source, to: "/nonexistent/copy") }
    for place in ["/copy", "/keys/copy", "/../data/copy"] {
      #expect(throws: (any Error).self) { try BackendServer.backUp(source, to: source + place) }
    }
    #expect(try BackendServer.check(target, repairs: false, hasAccounts: false) == [])

    let copy = try BackendServer(BackendServer.Configuration(data: target), verifier: rig.sessions)
    defer { copy.stop() }
    let again = ServerClient(ben, port: copy.port)
    let unread = try again.get("GET", "/v1/groups/\(group)/unread")
    #expect(try #require(unread["group_max_seq"] as? Int) >= 101)
    let get = try #require(again.get("GET", "/v1/blobs/\(blob)")["get_url"] as? String)
    #expect(try HTTPConnection(port: copy.port).send("GET", get).body == bytes)
    // Attachments are links: the copy costs no room.
    let id = try #require(BlobID(blob))
    let attributes = try FileManager.default.attributesOfItem(atPath: copy.blobs.files.path(of: id))
    #expect(attributes[.referenceCount] as? Int == 2)
  }

  @Test("Without a server the command copies alone, and leaves nothing of one that failed")
  func offline() throws {
    let folder = try TemporaryFolder()
    let (source, target) = (folder.path("data"), folder.path("copy"))
    do {
      let sessions = FakeSessions()
      let server = try BackendServer(BackendServer.Configuration(data: source), verifier: sessions)
      var random = RandomSource(seed: 1)
      let user = UserID(at: WallTime(microseconds: 1_700_000_000_000_000), using: &random)
      let anna = ServerClient(
        port: server.port, user: user, accessToken: sessions.signIn(user).0, seed: 1)
      try anna.enrol()
      _ = try anna.found(with: [])
      server.stop()
    }
    try BackendServer.backUp(source, to: target + "/")
    #expect(try BackendServer.check(target, repairs: false, hasAccounts: false) == [])
    let copy = try SQLiteBackendStore(path: target + "/messages.sqlite")
    #expect(try copy.connection.statement("SELECT count(*) FROM grp").first { $0.integer(0) } == 1)
    // A damaged source.
    try Data("no database".utf8).write(to: URL(fileURLWithPath: source + "/messages.sqlite"))
    let other = folder.path("other")
    #expect(throws: (any Error).self) { try BackendServer.backUp(source, to: other) }
    #expect(!FileManager.default.fileExists(atPath: other))
    #expect(!FileManager.default.fileExists(atPath: other + ".partial"))
  }

  @Test("A file of a newer version is refused with its number, by server and check (4.1 migrations)")
  func newer() throws {
    for name in ["messages.sqlite", "accounts.sqlite"] {
      let folder = try TemporaryFolder()
      do { try BackendServer(BackendServer.Configuration(data: folder.path("data"))).stop() }
      do {
        var settings = SQLConnection.Settings()
        settings.journal = .writeAhead
        try SQLConnection(path: folder.path("data/" + name), settings: settings).execute(
          "PRAGMA user_version = 99")
      }
      let error = #expect(throws: (any Error).self) {
        try BackendServer(BackendServer.Configuration(data: folder.path("data")))
      }
      #expect(error.map { "\($0)" }?.contains("version 99") == true)
      let findings = try BackendServer.check(folder.path("data"), repairs: true)
      #expect(findings.contains { $0.description.contains("version 99") && !$0.isRepairable })
    }
  }
}
