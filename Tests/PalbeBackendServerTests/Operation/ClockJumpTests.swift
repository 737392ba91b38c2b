import Foundation
import Glibc
import PalbeBackendCore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import PalbeWebTokens
import Testing

@testable import PalbeBackendServer

/// Where Debian puts libfaketime; nil when it is not installed.
private let fakeClock = ["x86_64", "aarch64"]
  .map { "/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
  .first { FileManager.default.fileExists(atPath: $0) }

/// The real binary under libfaketime, which moves its wall clock and leaves the steady one alone.
@Suite(
  "palbe-server and a wall clock that jumps (section 3)", .serialized,
  .enabled(if: ToolProcess.executable("palbe-server") != nil && fakeClock != nil))
struct ClockJumpTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func set(_ offset: String) throws {
    // Renamed into place: it is read at each look at the clock.
    try Data("\(offset)\n".utf8).write(to: URL(fileURLWithPath: folder.path("clock")), options: .atomic)
  }

  private func start() throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess.serving(
      folder.path("data"), ["--reserved-space", "0", "--push-file", folder.path("pushes")],
      environment: [
        "LD_PRELOAD": fakeClock ?? "", "FAKETIME_TIMESTAMP_FILE": folder.path("clock"),
        "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
      ])
    return (process, try process.readPort())
  }

  /// Ends it, and what the library has left.
  private func end(_ process: ToolProcess) {
    process.terminate()
    #expect(process.finish().code == 0)
    for name in ["faketime_shm_", "sem.faketime_sem_"] {
      unlink("/dev/shm/\(name)\(process.processIdentifier)")
    }
  }

  private func post(_ name: String, _ body: [String: String], _ port: UInt16) throws -> HTTPConnection.Answer
  {
    try HTTPConnection(port: port).send(
      "POST", "/v1/auth/" + name, headers: [("content-type", "application/json")],
      body: [UInt8](JSONEncoder().encode(body)))
  }

  private func rows(_ client: ServerClient) throws -> [[String: Any]] {
    try client.get("GET", "/v1/queue")["rows"] as? [[String: Any]] ?? []
  }

  @Test(
    "A day forward, back, and back again: tokens, queues, uploads, idempotency, sockets hold; a start goes on",
    arguments: [["+1d", "+0"], ["-1d", "+0"], ["+1d", "-1d"]])
  func jumps(_ offsets: [String]) throws {
    try set("+0")
    let (process, port) = try start()
    let login = ["email": "anna@example.org", "password": "correct horse"]
    let session = try post("sign-in", login, port)
    let anna = try ServerClient.signedIn(port: port, "anna@example.org", "correct horse", seed: 1)
    let ben = try ServerClient.signedIn(port: port, "ben@example.org", "correct horse", seed: 2)
    let device = try #require(ben.device)
    try ben.get("PUT", "/v1/devices/\(device)/push-token", ["platform": "ios", "token": "00ff"])
    let (group, mlsID) = try anna.found(with: [ben.user])
    let messages = "/v1/groups/\(group)/messages"
    let first = anna.message(mlsID, 1)
    try anna.get("POST", messages, first, key: "first")
    let bytes = anna.random.bytes(100_000)
    let blob = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": bytes.count])
    let put = try #require(blob["put_url"] as? String)
    let http = HTTPConnection(port: port)
    let range = [("content-range", "bytes 0-49999/100000")]
    #expect(try http.send("PUT", put, headers: range, body: Array(bytes[..<50_000])).status == 200)
    let socket = HTTPConnection(port: port)
    #expect(try socket.upgrade("/v1/realtime", headers: anna.authentication).status == 101)
    var refresh = session.text("refresh_token")
    var count = 2
    for offset in offsets {
      try set(offset)
      // Tokens: the access token holds, the refresh token is renewed, a new sign-in is valid at once.
      #expect(try anna.ask("GET", "/v1/devices").status == 200)
      let renewed = try post("refresh", ["refresh_token": refresh], port)
      #expect(renewed.status == 200 && renewed.number("access_expires_in") == 600, "\(renewed.code ?? "")")
      refresh = renewed.text("refresh_token")
      anna.accessToken = renewed.text("access_token")
      #expect(try anna.ask("GET", "/v1/devices").status == 200)
      // Bug: what others read of it was the clock before the jump.
      let claims = try TokenClaims(SignedToken(anna.accessToken).payload)
      let days = Int64(offset.dropLast(offset.hasSuffix("d") ? 1 : 0)) ?? 0
      let issued = (claims.issuedAt ?? 0) - days * 86_400
      #expect(abs(issued - Int64(Date().timeIntervalSince1970)) < 60, "\(offset)")
      // The queue brings what it had, in order, and what comes now behind it.
      #expect(try rows(ben).count == count)
      try anna.get("POST", messages, anna.message(mlsID, 1))
      count += 1
      let all = try rows(ben)
      let ids = all.compactMap { $0["id"] as? Int }
      #expect(ids.count == count && ids == ids.sorted() && Set(ids).count == count)
      #expect(all.compactMap { $0["seq"] as? Int } == Array(2..<count + 1))
      // A repetition is known, the upload goes on, the socket lives.
      #expect(try anna.get("POST", messages, first, key: "first")["seq"] as? Int == 2)
      #expect(try http.send("HEAD", put).headers["upload-offset"] == "50000")
      try socket.send(frame: "{\"type\":\"heartbeat\"}")
      #expect(try socket.nextFrame() == "{\"type\":\"heartbeat\"}")
      // An attachment that is announced now.
      let other = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 3])
      let place = try #require(other["put_url"] as? String)
      #expect(try http.send("PUT", place, body: [1, 2, 3]).status == 201)
      let id = try #require(other["blob_id"] as? String)
      let get = try #require(try anna.get("POST", "/v1/blobs/\(id)/complete")["get_url"] as? String)
      #expect(try http.send("GET", get).body == [1, 2, 3])
    }
    let rest = [("content-range", "bytes 50000-99999/100000")]
    #expect(try http.send("PUT", put, headers: rest, body: Array(bytes[50_000...])).status == 201)
    let ids = try rows(ben).compactMap { $0["id"] as? Int }
    #expect(try ben.get("POST", "/v1/queue/ack", ["up_to": ids[1]])["count"] as? Int == 2)
    #expect(try rows(ben).count == count - 2)
    // A rate is counted by the steady clock: nobody is locked out by the jump.
    #expect(try (0..<50).allSatisfy { _ in try ben.ask("GET", "/v1/devices").status == 200 })
    // The wake came after two seconds of the steady clock, and not at each jump.
    let deadline = Date(timeIntervalSinceNow: 20)
    func pushes() -> Int {
      ((try? String(contentsOfFile: folder.path("pushes"), encoding: .utf8)) ?? "").split(separator: "\n")
        .count
    }
    while pushes() == 0, Date() < deadline { usleep(20_000) }
    #expect((1...3).contains(pushes()))
    end(process)
    // Another start, with the clock as it is now.
    let (again, newPort) = try start()
    let reader = ServerClient(ben, port: newPort)
    #expect(try rows(reader).count == count - 2)
    #expect(try post("refresh", ["refresh_token": refresh], newPort).status == 200)
    end(again)
    #expect(try BackendServer.check(folder.path("data"), repairs: false) == [])
  }
}
