import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// What clients encrypt is nowhere at the server: neither on its disk nor in its memory, its log or its metrics.
///
/// The real binary runs as its own process; its clients put a marker into everything that is content and encrypt it. Then all
/// that the process has is searched for the marker in every form in which it could be there. `trial-server`, the same server but for
/// one place in which it lets content be seen, shows that the search finds it there.
@Suite(
  "Blindness of palbe-server (4.1)", .serialized,
  .enabled(if: ToolProcess.executable("palbe-server") != nil && ToolProcess.executable("trial-server") != nil)
)
struct BlindnessTests {
  private static let marker = "MARKER-7c1e52f0-of-content"

  private static let search = MarkerSearch([marker])

  private static func seal(_ text: String) -> [UInt8] { Wire.sealed(Array(text.utf8)) }

  private static func freePort() throws -> UInt16 {
    let rig = try ServerRig()
    defer { rig.server.stop() }
    return rig.server.port
  }

  /// What the server is seen to know.
  private struct Seen: Equatable {
    var disk = false
    var memory = false
    var log = false
    var metrics = false
  }

  /// - Parameter leak: the place where content can be seen; nil is the server as it is.
  private func run(leak: String?) throws -> Seen {
    let folder = try TemporaryFolder()
    let process: ToolProcess
    let (port, metrics): (UInt16, UInt16)
    if let leak {
      process = try ToolProcess("trial-server", ["serve", "--data", folder.path("data"), "--leak", leak])
      (port, metrics) = (try process.readPort(), try process.readPort())
    } else {
      metrics = try Self.freePort()
      process = try ToolProcess(
        "palbe-server",
        [
          "serve", "--dev", "--data", folder.path("data"), "--port", "0", "--log-level", "debug",
          "--prometheus-port", "\(metrics)", "--push-file", folder.path("data/pushes"), "--reserved-space",
          "0",
        ])
      port = try process.readPort()
    }
    func signIn(_ name: String, _ seed: UInt64) throws -> ServerClient {
      try .signedIn(port: port, "\(name)@example.org", "correct horse \(name)", seed: seed)
    }
    let (anna, ben) = (try signIn("anna", 1), try signIn("ben", 2))
    let (group, mlsID) = try anna.found(with: [ben.user])
    let text = { (name: String) in "\(name) \(Self.marker) and more" }
    // A message, a name, an attachment with its name inside, something that passes by.
    var bundle = anna.bundle(mlsID, 1)
    bundle["sealed_name"] = ServerClient.text(Self.seal(text("name")))
    bundle["commit"] = ServerClient.text(Wire.commit(mlsID, 1, Self.seal(text("commit"))))
    try anna.get("POST", "/v1/groups/\(group)/commits", bundle)
    for ephemeral in [false, true] {
      var message = anna.message(mlsID, 2)
      message["blob"] = ServerClient.text(Wire.application(mlsID, 2, Self.seal(text("text"))))
      message["ephemeral"] = ephemeral
      try anna.get("POST", "/v1/groups/\(group)/messages", message)
    }
    let bytes = Self.seal(String(repeating: text("attachment"), count: 1_000))
    let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": bytes.count])
    let put = try #require(view["put_url"] as? String)
    #expect(try HTTPConnection(port: port).send("PUT", put, body: bytes).status == 201)
    try anna.get("POST", "/v1/blobs/\(view["blob_id"] as? String ?? "")/complete")
    let rows = try #require(ben.get("GET", "/v1/queue")["rows"] as? [[String: Any]])
    #expect(rows.count >= 3)
    var seen = Seen()
    seen.memory = try !Self.search.found(inMemoryOf: process.processIdentifier).isEmpty
    seen.disk = try !Self.search.found(below: folder.path("data")).isEmpty
    let page = try HTTPConnection(port: metrics).send("GET", "/metrics")
    #expect(page.status == 200)
    seen.metrics = !Self.search.found(in: page.body).isEmpty
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0 && end.errors.contains("route=sendMessage"))
    seen.log = !Self.search.found(in: Array(end.errors.utf8)).isEmpty
    return seen
  }

  @Test(
    "S0-2, S0-47: nothing of what clients encrypt is in the database, its log, attachments, memory, logs or metrics"
  )
  func blind() throws { #expect(try run(leak: nil) == Seen()) }

  @Test(
    "The control: a server that opens one field, and keeps or tells it in one place, is found out there",
    arguments: ["message", "name", "attachment", "log", "metrics"])
  func control(_ place: String) throws {
    let seen = try run(leak: place)
    #expect(seen.disk == ["message", "name", "attachment"].contains(place))
    // An attachment has gone through memory that may have been given back.
    #expect(seen.memory || place == "attachment")
    #expect(seen.log == (place == "log") && seen.metrics == (place == "metrics"))
  }
}
