import Foundation
import PalbeBackendCore
import PalbeServerClient
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Testing

@testable import PalbeBackendServer

@Suite("Refusals of palbe-server, whoever refuses (2.2)")
struct ServerRefusalTests {
  /// A refusal's form: JSON, its id in body and header, its status in both.
  private func check(_ answer: HTTPConnection.Answer, _ status: Int, _ code: String, _ comment: Comment) {
    #expect(answer.status == status && answer.code == code, comment)
    #expect(answer.headers["content-type"] == "application/json", comment)
    #expect(answer.json["status"] as? Int == status, comment)
    #expect(answer.json["message"] as? String != nil, comment)
    let id = answer.headers["request-id"]
    #expect(id != nil && answer.json["request_id"] as? String == id, comment)
    let waits = code == "rate_limited" || code == "unavailable"
    #expect((answer.headers["retry-after"] != nil) == waits, comment)
    #expect((answer.json["retry_after"] != nil) == waits, comment)
  }

  @Test("The web server's own are the JSON error with a code of the table, and stand in the OpenAPI document")
  func webServer() throws {
    let rig = try ServerRig {
      $0.web.requestBodyByteCount = 5_000
      $0.web.bodiesByteCount = 500
      $0.web.requestTimeout = .seconds(1)
      $0.metrics = (0, MetricsPage())
    }
    defer { rig.server.stop() }
    let anna = rig.client()
    let document = try anna.http.send("GET", "/v1/openapi.json").json
    let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
    let session = "authorization: Bearer \(anna.accessToken)\r\n"
    let upgrade =
      "connection: upgrade\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: "
    let cases: [(method: String, path: String, headers: String, body: Int, status: Int, code: String)] = [
      ("POST", "/v1/devices", "content-length: x\r\n", 0, 400, "invalid_request"),
      ("POST", "/v1/devices", "", 0, 411, "invalid_request"),
      ("GET", "/v1/devices", "transfer-encoding: chunked\r\n", 0, 411, "invalid_request"),
      ("POST", "/v1/devices", session + "content-length: 5001\r\n", 0, 413, "message_too_large"),
      ("POST", "/v1/devices", session + "content-length: 600\r\n", 600, 503, "unavailable"),
      ("POST", "/v1/devices", session + "content-length: 400\r\n", 100, 408, "request_timeout"),
      (
        "GET", "/v1/devices", "y-long: \(String(repeating: "a", count: 40_000))\r\n", 0, 431,
        "invalid_request"
      ),
      ("GET", "/v1/realtime", "upgrade: h2c\r\n\(upgrade)13\r\n", 0, 426, "invalid_request"),
      ("GET", "/v1/realtime", "upgrade: websocket\r\n\(upgrade)8\r\n", 0, 426, "invalid_request"),
      ("PUT", "/v1/realtime", "upgrade: websocket\r\n\(upgrade)13\r\n", 0, 400, "invalid_request"),
    ]
    for (method, path, headers, count, status, code) in cases {
      let comment: Comment = "\(method) \(path) \(headers)"
      let http = HTTPConnection(port: rig.server.port)
      let head = "\(method) \(path) HTTP/1.1\r\nhost: x\r\nrequest-id: mine-1\r\n\(headers)\r\n"
      try http.write(Array(head.utf8) + [UInt8](repeating: 32, count: count))
      let answer = try http.answer()
      check(answer, status, code, comment)
      #expect(answer.headers["request-id"] == "mine-1", comment)
      guard let route = paths[path]?[method.lowercased()] else { continue }
      let responses = try #require(route["responses"] as? [String: [String: Any]])
      #expect((responses["\(status)"]?["description"] as? String)?.contains(code) == true, comment)
    }
    // What is no request: without a path, and so without a client's id.
    let http = HTTPConnection(port: rig.server.port)
    try http.write(Array("BREW /pot HTTP/1.1\r\nhost: x\r\n\r\n".utf8))
    check(try http.answer(), 400, "invalid_request", "no method")
    let port = try #require(rig.server.metricsPort)
    let text = String(decoding: try HTTPConnection(port: port).send("GET", "/metrics").body, as: UTF8.self)
    #expect(text.contains("palbe_server_requests_total{route=\"enrolDevice\",status=\"411\"} 1\n"))
    #expect(text.contains("palbe_server_requests_total{route=\"none\",status=\"426\"} 2\n"))
  }

  @Test("Too many requests of one address: 429 rate_limited, its own id for each; a reload raises the limit")
  func tooMany() throws {
    let rig = try ServerRig {
      $0.web.perAddress.includesLoopback = true
      $0.web.perAddress.requestsPerSecond = 1
      $0.web.perAddress.requestBurst = 2
    }
    defer { rig.server.stop() }
    var ids: Set<String> = []
    for _ in 0..<10 {
      let answer = try HTTPConnection(port: rig.server.port).send("GET", "/v1/ready")
      guard answer.status != 204 else { continue }
      check(answer, 429, "rate_limited", "too many")
      ids.insert(answer.headers["request-id"] ?? "")
    }
    #expect(ids.count >= 5)
    var adjustments = BackendServer.Adjustments()
    adjustments.perAddress.includesLoopback = true
    adjustments.perAddress.requestsPerSecond = 100_000
    adjustments.perAddress.requestBurst = 100_000
    try rig.server.reload(adjustments)
    for _ in 0..<10_000 {
      if try HTTPConnection(port: rig.server.port).send("GET", "/v1/ready").status == 204 { return }
    }
    Issue.record("still limited")
  }

  @Test(
    "Answers about bytes of attachments have their request's id, also good ones, and so has a refused upload")
  func blobs() throws {
    let rig = try ServerRig { $0.blobs.reservedByteCount = 0 }
    defer { rig.server.stop() }
    let anna = try rig.device()
    let (group, _) = try anna.found(with: [])
    let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 3])
    let put = try #require(view["put_url"] as? String)
    let named = [("request-id", "mine-2")]
    let http = HTTPConnection(port: rig.server.port)
    func id(_ method: String, _ target: String, _ body: [UInt8]? = nil) throws -> String? {
      try http.send(method, target, headers: named, body: body).headers["request-id"]
    }
    #expect(try id("HEAD", put) == "mine-2")
    #expect(try id("PUT", put, [1, 2, 3, 4]) == "mine-2")
    check(try http.send("PUT", put, body: [1, 2, 3, 4]), 413, "attachment_too_large", "too long")
    #expect(try id("PUT", put, [1, 2, 3]) == "mine-2")
    let blob = try #require(view["blob_id"] as? String)
    let get = try #require(try anna.get("POST", "/v1/blobs/\(blob)/complete")["get_url"] as? String)
    #expect(try id("GET", get) == "mine-2")
    #expect(try http.send("GET", get).headers["request-id"] != nil)
    check(try http.send("GET", get + "x"), 403, "forbidden", "forged")
    check(try http.send("POST", get, body: [1]), 405, "method_not_allowed", "other method")
  }
}
