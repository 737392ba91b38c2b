import Foundation
import PalbeBackendCore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("Attachments over the real server (4.2 blobs, S0-47)")
struct BlobRouteTests {
  private let rig: ServerRig

  init() throws {
    rig = try ServerRig { $0.blobs.reservedByteCount = 0 }
  }

  private func put(
    _ client: ServerClient, _ address: String, _ bytes: [UInt8], range: String? = nil
  ) throws -> HTTPConnection.Answer {
    // Whoever has the address needs no token.
    try HTTPConnection(port: rig.server.port).send(
      "PUT", address, headers: range.map { [("content-range", $0)] } ?? [], body: bytes)
  }

  @Test("Announced, uploaded by pieces, completed, fetched by another member, gone for who left")
  func life() throws {
    let (anna, ben) = (try rig.device(), try rig.device())
    let (group, _) = try anna.found(with: [ben.user])
    let bytes = anna.random.bytes(200_000)
    let key = anna.newKey()
    let announced = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 200_000], key: key)
    let id = try #require(announced["blob_id"] as? String)
    let address = try #require(announced["put_url"] as? String)
    #expect(announced["state"] as? String == "pending" && announced["get_url"] == nil)
    // The same key is the same blob.
    let again = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 200_000], key: key)
    #expect(again["blob_id"] as? String == id && again["put_url"] as? String == address)

    let early = try anna.ask("POST", "/v1/blobs/\(id)/complete")
    #expect(early.status == 409 && early.code == "upload_incomplete")
    #expect(try put(anna, address, Array(bytes[..<50_000]), range: "bytes 0-49999/200000").status == 200)
    let part = try anna.ask("POST", "/v1/blobs/\(id)/complete")
    #expect((part.json["details"] as? [String: Any])?["upload_offset"] as? Int == 50_000)
    // After a restart of the app the uploader asks for the address again.
    #expect(try anna.get("GET", "/v1/blobs/\(id)")["put_url"] as? String == address)
    #expect(try ben.ask("GET", "/v1/blobs/\(id)").code == "blob_not_found")
    let wrong = try put(anna, address, Array(bytes[..<10]), range: "bytes 0-9/200000")
    #expect(
      wrong.status == 409 && wrong.code == "upload_offset_mismatch" && wrong.headers["request-id"] != nil)
    #expect(try put(anna, address, Array(bytes[50_000...]), range: "bytes 50000-199999/200000").status == 201)
    #expect(try anna.get("POST", "/v1/blobs/\(id)/complete")["state"] as? String == "ready")
    #expect(try anna.get("POST", "/v1/blobs/\(id)/complete")["state"] as? String == "ready")

    let view = try ben.get("GET", "/v1/blobs/\(id)")
    #expect(view["size"] as? Int == 200_000 && view["put_url"] == nil)
    let get = try #require(view["get_url"] as? String)
    #expect(try HTTPConnection(port: rig.server.port).send("GET", get).body == bytes)
    try ben.get("POST", "/v1/groups/\(group)/leave")
    #expect(try ben.ask("GET", "/v1/blobs/\(id)").code == "not_a_member")
    let forged = try put(anna, get.replacing("op=get", with: "op=put"), bytes)
    #expect(forged.status == 403 && forged.code == "forbidden")
    #expect(
      try anna.ask("POST", "/v1/groups/\(group)/blobs", ["size": 3 << 30]).code == "attachment_too_large")
  }

  @Test("What has expired is deleted with its bytes; a start removes what a crash has left")
  func expired() throws {
    var configuration = BackendServer.Configuration(data: rig.folder.path("other"))
    configuration.loop.limits.uploadTime = .milliseconds(1)
    configuration.loop.limits.sweepInterval = .milliseconds(1)
    configuration.blobs.reservedByteCount = 0
    var server: BackendServer? = try BackendServer(configuration, verifier: rig.sessions)
    let user = rig.newUser()
    let anna = ServerClient(
      port: server!.port, user: user, accessToken: rig.sessions.signIn(user).0, seed: 5)
    try anna.enrol()
    let (group, _) = try anna.found(with: [])
    let id = try #require(
      try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 10])["blob_id"] as? String)
    let blob = try #require(BlobID(id))
    let files = server!.blobs.files
    let (descriptor, _) = try files.openPart(of: blob)
    close(descriptor)
    while try files.state(of: blob) != .none { usleep(1_000) }
    #expect(try anna.ask("GET", "/v1/blobs/\(id)").code == "blob_not_found")
    server?.stop()
    server = nil
    let (stray, _) = try files.openPart(of: blob)
    close(stray)
    server = try BackendServer(configuration, verifier: rig.sessions)
    #expect(try files.all().isEmpty)
    server?.stop()
  }
}
