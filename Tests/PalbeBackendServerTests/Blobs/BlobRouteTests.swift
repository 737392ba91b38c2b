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

  @Test(
    "Bug: an attachment whose file was cut was served as whole; it is refused as damaged, and check tells")
  func cut() throws {
    let anna = try rig.device()
    let (group, _) = try anna.found(with: [])
    let bytes = anna.random.bytes(1_000)
    let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 1_000])
    let (id, address) = (try #require(view["blob_id"] as? String), try #require(view["put_url"] as? String))
    #expect(try put(anna, address, bytes).status == 201)
    let file = rig.server.blobs.files.path(of: try #require(BlobID(id)))
    // Before it is complete, the uploader sends it again.
    #expect(truncate(file, 10) == 0)
    #expect(try anna.ask("POST", "/v1/blobs/\(id)/complete").code == "upload_incomplete")
    let http = HTTPConnection(port: rig.server.port)
    #expect(try http.send("HEAD", address).headers["upload-offset"] == "0")
    #expect(try put(anna, address, bytes).status == 201)
    let get = try #require(try anna.get("POST", "/v1/blobs/\(id)/complete")["get_url"] as? String)
    #expect(try http.send("GET", get).body == bytes)
    for count in [10, 0, 1_001] {
      #expect(truncate(file, off_t(count)) == 0)
      for headers in [[], [("range", "bytes=0-4")]] {
        let refused = try HTTPConnection(port: rig.server.port).send("GET", get, headers: headers)
        #expect(refused.status == 503 && refused.code == "unavailable")
      }
    }
    #expect(rig.server.blobs.counts.faultCount >= 6)
    rig.server.stop()
    let findings = try BackendServer.check(rig.folder.path("data"), repairs: false, hasAccounts: false)
    #expect(findings.map(\.description) == ["1 attachments whose bytes are missing or cut: \(id)"])
  }

  @Test(
    "Bug: nobody was told of an attachment whose file was gone; log, metric and check tell, but not of one that was let go"
  )
  func gone() throws {
    let anna = try rig.device()
    let (group, _) = try anna.found(with: [])
    let bytes = anna.random.bytes(1_000)
    func ready() throws -> (id: BlobID, get: String) {
      let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 1_000])
      let (id, address) = (try #require(view["blob_id"] as? String), try #require(view["put_url"] as? String))
      #expect(try put(anna, address, bytes).status == 201)
      let done = try anna.get("POST", "/v1/blobs/\(id)/complete")
      return (try #require(BlobID(id)), try #require(done["get_url"] as? String))
    }
    let http = HTTPConnection(port: rig.server.port)
    let (lost, released) = (try ready(), try ready())
    let blobs = rig.server.blobs
    blobs.delete([released.id])
    #expect(try http.send("GET", released.get).status == 404)
    #expect(blobs.counts.faultCount == 0)
    #expect(unlink(blobs.files.path(of: lost.id)) == 0)
    let answer = try http.send("GET", lost.get)
    #expect(answer.status == 404 && answer.code == "blob_not_found")
    #expect(blobs.counts.faultCount == 1)
    rig.server.stop()
    let findings = try BackendServer.check(rig.folder.path("data"), repairs: false, hasAccounts: false)
    let gone = [lost.id, released.id].map(\.text).sorted().joined(separator: ", ")
    #expect(findings.map(\.description) == ["2 attachments whose bytes are missing or cut: \(gone)"])
  }

  @Test(
    "Bug: an upload that had all its bytes when the process ended was never complete; who asks completes it")
  func unnamed() throws {
    let anna = try rig.device()
    let (group, _) = try anna.found(with: [])
    let bytes = anna.random.bytes(1_000)
    let files = rig.server.blobs.files
    for asksFirst in [true, false] {
      let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": 1_000])
      let (id, address) = (try #require(view["blob_id"] as? String), try #require(view["put_url"] as? String))
      let blob = try #require(BlobID(id))
      let (descriptor, _) = try files.openPart(of: blob)
      try files.write(bytes, at: 0, to: descriptor)
      close(descriptor)
      if asksFirst {
        let http = HTTPConnection(port: rig.server.port)
        #expect(try http.send("HEAD", address).headers["upload-offset"] == "1000")
        #expect(try files.state(of: blob) == .whole(1_000))
      }
      let get = try #require(try anna.get("POST", "/v1/blobs/\(id)/complete")["get_url"] as? String)
      #expect(try HTTPConnection(port: rig.server.port).send("GET", get).body == bytes)
    }
    #expect(rig.server.blobs.counts.storedCount == 2 && rig.server.blobs.counts.storedByteCount == 2_000)
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
