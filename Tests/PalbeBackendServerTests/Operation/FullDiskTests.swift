import Foundation
import Glibc
import PalbeBackendCore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// The real binary with files that may not grow.
@Suite("palbe-server on a full disk (section 3)", .enabled(if: ToolProcess.executable("palbe-server") != nil))
struct FullDiskTests {
  private static let limit = 3 << 20

  private func start(_ data: String, limit: Int?) throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess.serving(
      data, ["--reserved-space", "0"], fileByteLimit: limit)
    return (process, try process.readPort())
  }

  private func signIn(_ port: UInt16) throws -> ServerClient {
    try .signedIn(port: port, "anna@example.org", "correct horse", seed: UInt64(port))
  }

  @Test(
    "Attachments and messages are refused as unavailable, the log says why, the server stays; with room again nothing acknowledged is lost"
  )
  func full() throws {
    let folder = try TemporaryFolder()
    let data = folder.path("data")
    let (process, port) = try start(data, limit: Self.limit)
    let anna = try signIn(port)
    let (group, mlsID) = try anna.found(with: [])
    // The last byte does not fit.
    let bytes = anna.random.bytes(Self.limit + 1)
    let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": bytes.count])
    let put = try #require(view["put_url"] as? String)
    let refused = try HTTPConnection(port: port).send("PUT", put, body: bytes)
    #expect(refused.status == 503 && refused.code == "unavailable")
    let offset = try HTTPConnection(port: port).send("HEAD", put).headers["upload-offset"].flatMap { Int($0) }
    #expect(try #require(offset) <= Self.limit)

    var accepted = 0
    var refusals = 0
    for _ in 0..<60 where refusals < 3 {
      let answer = try anna.ask(
        "POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 0, count: 200_000))
      if answer.status == 200 {
        accepted += 1
      } else {
        #expect(answer.status == 503 && answer.code == "unavailable")
        refusals += 1
      }
      #expect(try HTTPConnection(port: port).send("GET", "/v1/ready").status == 204)
    }
    #expect(accepted > 5 && refusals == 3)
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0)
    // Told when it begins, and not for each request.
    let faults = end.errors.split(separator: "\n").filter { $0.contains("warning store fault") }
    #expect(faults.count == 2 && faults.allSatisfy { $0.hasSuffix(" count=1") }, "\(end.errors)")
    // SQLite takes a file that may not grow for another failure than a full disk.
    #expect(faults.contains { $0.contains("store=attachments fault=full") }, "\(end.errors)")
    #expect(faults.contains { $0.contains("store=messages fault=f") }, "\(end.errors)")

    let (again, newPort) = try start(data, limit: nil)
    let reader = ServerClient(anna, port: newPort)
    let head = try #require(reader.get("GET", "/v1/groups/\(group)")["head_seq"] as? Int)
    #expect(head >= accepted)
    let rest = Array(bytes[(offset ?? 0)...])
    let range = "bytes \(offset ?? 0)-\(bytes.count - 1)/\(bytes.count)"
    let http = HTTPConnection(port: newPort)
    #expect(try http.send("PUT", put, headers: [("content-range", range)], body: rest).status == 201)
    try reader.get("POST", "/v1/groups/\(group)/messages", reader.message(mlsID, 0))
    again.terminate()
    #expect(again.finish().code == 0)
    #expect(try BackendServer.check(data, repairs: false) == [])
  }

  @Test(
    "A disk that somebody else fills in the middle of an upload: refused as unavailable, nothing half of it shows, and it goes on",
    .enabled(if: ToolProcess.canMountDisks, "may not mount: skipped"))
  func filledMeanwhile() throws {
    let folder = try TemporaryFolder()
    let data = folder.path("data")
    try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: false)
    let process = try ToolProcess.serving(
      data, ["--reserved-space", "0"], disk: (data, 24 << 20))
    let port = try process.readPort()
    let inside = process.path(inside: data)
    let anna = try signIn(port)
    let (group, mlsID) = try anna.found(with: [])
    let bytes = anna.random.bytes(12 << 20)
    let view = try anna.get("POST", "/v1/groups/\(group)/blobs", ["size": bytes.count])
    let (id, put) = (try #require(view["blob_id"] as? String), try #require(view["put_url"] as? String))
    let uploading = HTTPConnection(port: port)
    try uploading.write(
      Array("PUT \(put) HTTP/1.1\r\nhost: x\r\ncontent-length: \(bytes.count)\r\n\r\n".utf8)
        + bytes[..<(1 << 20)])
    func offset() throws -> Int {
      let answer = try HTTPConnection(port: port).send("HEAD", put)
      return try #require(answer.headers["upload-offset"].flatMap { Int($0) })
    }
    while try offset() < 1 << 20 { usleep(1_000) }
    // All that is left.
    let filler = open(inside + "/filler", O_WRONLY | O_CREAT | O_EXCL, 0o600)
    try #require(filler >= 0)
    let zeros = [UInt8](repeating: 0, count: 65_536)
    while write(filler, zeros, zeros.count) > 0 {}
    #expect(errno == ENOSPC)
    close(filler)
    try? uploading.write(Array(bytes[(1 << 20)...]))
    let refused = try uploading.answer()
    #expect(refused.status == 503 && refused.code == "unavailable")
    uploading.disconnect()
    let kept = try offset()
    #expect(kept <= bytes.count / 2)
    #expect(try anna.ask("POST", "/v1/blobs/\(id)/complete").code == "upload_incomplete")
    let names = try FileManager.default.subpathsOfDirectory(atPath: inside + "/blobs")
    #expect(!names.contains { $0.hasSuffix(id) } && names.contains { $0.hasSuffix(id + ".part") })
    let message = try anna.ask(
      "POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 0, count: 200_000))
    #expect(message.status == 503 && message.code == "unavailable")
    #expect(try HTTPConnection(port: port).send("GET", "/v1/ready").status == 204)

    #expect(unlink(inside + "/filler") == 0)
    let range = "bytes \(kept)-\(bytes.count - 1)/\(bytes.count)"
    let rest = try HTTPConnection(port: port).send(
      "PUT", put, headers: [("content-range", range)], body: Array(bytes[kept...]))
    #expect(rest.status == 201)
    let done = try anna.get("POST", "/v1/blobs/\(id)/complete")
    let get = try #require(done["get_url"] as? String)
    #expect(try HTTPConnection(port: port).send("GET", get).body == bytes)
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 0))
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0)
    for store in ["attachments", "messages"] {
      #expect(end.errors.contains("warning store fault store=\(store) fault=full"), "\(end.errors)")
    }
  }
}
