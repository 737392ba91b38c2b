import Foundation
import PalbeBackendCore
import PalbeEventLoop
import PalbeSQLStore
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("palbe-server in operation", .serialized)
struct ServerOperationTests {
  @Test(
    "Metrics: requests by route and status, batches, transactions, queue rows, sockets, attachments, pushes")
  func metrics() throws {
    let rig = try ServerRig {
      $0.metrics = (0, MetricsPage(username: "prometheus", password: "secret"))
      $0.pushes = .file("/dev/null")
    }
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1))
    #expect(try anna.ask("GET", "/v1/nothing").status == 404)
    #expect(try rig.client().ask("GET", "/v1/queue").status == 412)
    defer { rig.server.stop() }
    let port = try #require(rig.server.metricsPort)
    let http = HTTPConnection(port: port)
    #expect(try http.send("GET", "/metrics").status == 401)
    let login = [("authorization", "Basic " + Data("prometheus:secret".utf8).base64EncodedString())]
    func text() throws -> String {
      String(decoding: try http.send("GET", "/metrics", headers: login).body, as: UTF8.self)
    }
    let first = try text()
    for line in [
      "palbe_server_requests_total{route=\"sendMessage\",status=\"200\"} 1",
      "palbe_server_requests_total{route=\"none\",status=\"404\"} 1",
      "palbe_server_requests_total{route=\"queue\",status=\"412\"} 1",
      // The welcome and the message.
      "palbe_server_queue_rows 2", "palbe_server_requests_open 0", "palbe_server_blobs 0",
      "palbe_server_pushes_waiting 0", "palbe_server_sockets 0",
    ] { #expect(first.contains(line + "\n"), "\(line)") }
    for name in ["batch_requests_bucket", "transaction_seconds_count", "request_seconds_sum"] {
      #expect(first.contains("palbe_server_\(name)"))
    }
    let rows = try #require(ben.get("GET", "/v1/queue")["rows"] as? [[String: Any]])
    #expect(rows.count == 2)
    try ben.get("POST", "/v1/queue/ack", ["up_to": rows[1]["id"] as? Int ?? 0])
    #expect(try text().contains("palbe_server_queue_rows 0\n"))
    // Nothing that a client has chosen.
    #expect(
      try !text().contains(anna.user.text) && !text().contains(group.text) && !text().contains("/v1/nothing"))
  }

  @Test(
    "Draining: requests are refused with 503, who waits for rows is answered, sockets are asked to come again"
  )
  func draining() async throws {
    let rig = try ServerRig()
    let anna = try rig.device()
    let port = rig.server.port
    let headers = anna.authentication
    let waiting = Task.detached {
      try HTTPConnection(port: port).send("GET", "/v1/queue?wait=25", headers: headers).status
    }
    while rig.server.requests.openCount == 0 { await Task.yield() }
    // It was handed over; the loop parks it with its next turn.
    _ = try anna.ask("GET", "/v1/key-packages/count")
    #expect(try anna.http.send("GET", "/v1/ready").status == 204)
    let begun = MonotonicClock.now()
    rig.server.drain()
    #expect(try await waiting.value == 200)
    #expect(MonotonicClock.now() - begun < .seconds(20))
    let refused = try anna.ask("GET", "/v1/queue")
    #expect(refused.status == 503 && refused.code == "unavailable" && refused.headers["retry-after"] != nil)
    #expect(try anna.http.send("GET", "/v1/ready").status == 503)
    while rig.server.openCount > 0 { await Task.yield() }
  }

  @Test("A reload changes limits for what comes from then on; what is there already stays")
  func reloaded() throws {
    let rig = try ServerRig { $0.blobs.reservedByteCount = 0 }
    defer { rig.server.stop() }
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    let messages = "/v1/groups/\(group)/messages"
    let large = anna.message(mlsID, 1, count: 5_000)
    try anna.get("POST", messages, large)
    let blob = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 5_000])
    var adjustments = BackendServer.Adjustments()
    adjustments.limits.messageByteCount = 4_096
    adjustments.limits.blobByteCount = 4_096
    adjustments.limits.devicesPerGroup = 2
    adjustments.limits.devicesPerUser = 1
    adjustments.reservedByteCount = 1 << 60
    try rig.server.reload(adjustments)
    let refused = try anna.ask("POST", messages, anna.message(mlsID, 1, count: 5_000))
    #expect(refused.status == 413 && refused.code == "message_too_large")
    #expect((refused.json["details"] as? [String: Any])?["limit"] as? Int == 4_096)
    try anna.get("POST", messages, anna.message(mlsID, 1, count: 3_000))
    #expect(
      try anna.ask("POST", "/v1/groups/\(group)/blobs", ["size": 5_000]).code == "attachment_too_large")
    #expect(try ben.get("GET", "/v1/queue")["rows"].map { ($0 as? [Any])?.count } == 3)
    let second = rig.client(anna.user)
    #expect(throws: (any Error).self) { try second.enrol() }
    let put = try #require(blob["put_url"] as? String)
    #expect(
      try HTTPConnection(port: rig.server.port).send("PUT", put, body: Array(repeating: 1, count: 5_000))
        .status == 503)
    // Rates count at once, and requests that were free before are not counted afterwards.
    adjustments.limits = BackendLimits()
    adjustments.limits.requestsPerSecond = 1
    adjustments.limits.requestBurst = 10
    adjustments.reservedByteCount = 0
    try rig.server.reload(adjustments)
    var statuses: [Int] = []
    for _ in 0..<30 { statuses.append(try ben.ask("GET", "/v1/devices").status) }
    #expect(statuses.contains(200) && statuses.contains(429))
    adjustments.limits = BackendLimits()
    try rig.server.reload(adjustments)
    #expect(try ben.ask("GET", "/v1/devices").status == 200)
    #expect(
      try HTTPConnection(port: rig.server.port).send("PUT", put, body: Array(repeating: 1, count: 5_000))
        .status == 201)
  }

  @Test("A copy of the store while it works: what was acknowledged before it ended is in it")
  func copied() async throws {
    let rig = try ServerRig()
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, mlsID) = try anna.found(with: [ben.user])
    for _ in 0..<200 { try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1)) }
    let path = rig.folder.path("copy.sqlite")
    let loop = rig.server.loop
    let fault = await withCheckedContinuation { done in loop.copy(to: path) { done.resume(returning: $0) } }
    #expect(fault == nil)
    let copy = try SQLiteBackendStore(path: path)
    #expect(try copy.connection.statement("SELECT count(*) FROM log").first { $0.integer(0) } == 201)
    let unwritable = await withCheckedContinuation { done in
      loop.copy(to: "/nonexistent/copy") { done.resume(returning: $0) }
    }
    #expect(unwritable != nil)
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 1))
  }
}
