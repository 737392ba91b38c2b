import Foundation
import Glibc
import PalbeBackendCore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@testable import PalbeBackendServer

@Suite("Blobs over HTTP (4.2, 2.2)")
final class BlobServiceTests {
  private let folder: TemporaryFolder
  private let handler: Handler
  private let server: WebServer
  private let store: BlobStore
  private var random = RandomSource(seed: 7)

  private final class Handler: WebServerHandler {
    let service: BlobService
    let clock: Mutex<Int64>
    init(_ store: BlobStore, _ urls: BlobURLs, _ clock: SharedClock) {
      self.clock = Mutex(0)
      service = BlobService(
        store: store, urls: urls, now: { clock.now.withLock { $0 } },
        refuse: { refusal, _ in .text("\(refusal)", status: 499) })
    }
    func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
      .reject(.text("no", status: 404))
    }
    func body(of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder) -> HTTPBodyDecision {
      service.body(of: request, byteCount: byteCount, responder: responder)
    }
    func respond(to request: HTTPRequest, with responder: HTTPResponder) {
      service.answer(request, with: responder)
    }
  }

  private final class SharedClock: Sendable {
    let now = Mutex<Int64>(1_000)
  }

  private let urls = BlobURLs(key: [UInt8](repeating: 9, count: 32))
  private let clock = SharedClock()

  init() throws {
    folder = try TemporaryFolder()
    var settings = BlobStore.Settings()
    settings.reservedByteCount = 0
    store = try BlobStore(folder: folder.path("blobs"), settings: settings)
    handler = Handler(store, urls, clock)
    var limits = WebServerLimits()
    limits.requestBodyByteCount = 100
    server = try WebServer(host: "127.0.0.1", port: 0, limits: limits, handler: handler)
  }

  deinit {
    server.stop()
    store.stop()
  }

  private func id() -> BlobID { BlobID(at: WallTime(microseconds: 1_700_000_000_000_000), using: &random) }

  private func address(_ id: BlobID, _ count: Int, _ operation: BlobURLs.Operation) -> String {
    urls.address(.init(blob: id, operation: operation, byteCount: Int64(count), expiry: 2_000))
  }

  private func text(_ answer: HTTPConnection.Answer) -> String {
    String(decoding: answer.body, as: UTF8.self)
  }

  /// Asks until the answer is as wanted: what the last connection has left is still being written.
  private func eventually(
    _ http: HTTPConnection, _ target: String, _ condition: (HTTPConnection.Answer) -> Bool
  ) throws -> HTTPConnection.Answer {
    for _ in 0..<10_000 {
      let answer = try http.send("HEAD", target)
      if condition(answer) { return answer }
      usleep(1_000)
    }
    return try http.send("HEAD", target)
  }

  @Test("A whole body, then all of it, ranges, a stranger's range, HEAD, If-Range")
  func wholeAndRanges() throws {
    let http = HTTPConnection(port: server.port)
    let (id, bytes) = (id(), random.bytes(300_000))
    let put = try http.send("PUT", address(id, bytes.count, .put), body: bytes)
    #expect(put.status == 201 && put.headers["upload-offset"] == "300000")
    #expect(try Data(contentsOf: URL(fileURLWithPath: store.files.path(of: id))) == Data(bytes))
    let get = address(id, bytes.count, .get)
    #expect(try http.send("GET", get).body == bytes)
    for (range, expected, status) in [
      ("bytes=0-0", 0..<1, 206), ("bytes=100000-199999", 100_000..<200_000, 206),
      ("bytes=-5", 299_995..<300_000, 206), ("bytes=299999-", 299_999..<300_000, 206),
      ("bytes=0-1,5-6", 0..<300_000, 200),
    ] {
      let answer = try http.send("GET", get, headers: [("range", range)])
      #expect(answer.status == status && answer.body == Array(bytes[expected]), "\(range)")
      #expect(
        status == 200
          || answer.headers["content-range"]
            == "bytes \(expected.lowerBound)-\(expected.upperBound - 1)/300000"
      )
    }
    let beyond = try http.send("GET", get, headers: [("range", "bytes=300000-")])
    #expect(text(beyond) == "rangeNotSatisfiable(count: 300000)")
    // Bug: RFC 9110 §15.5.17 wants the length told.
    #expect(beyond.headers["content-range"] == "bytes */300000")
    let other = [("range", "bytes=0-0"), ("if-range", "\"another\"")]
    #expect(try http.send("GET", get, headers: other).status == 200)
    let head = try http.send("HEAD", get)
    #expect(
      head.status == 200 && head.headers["content-length"] == "300000"
        && head.headers["accept-ranges"] == "bytes")
    let counts = store.counts
    #expect(counts.storedByteCount == 300_000 && counts.completedCount == 1 && counts.openUploadCount == 0)
  }

  @Test("An upload that is cut goes on where it was, also on another connection and by pieces")
  func resumed() throws {
    let (id, bytes) = (id(), random.bytes(500_000))
    let target = address(id, bytes.count, .put)
    let http = HTTPConnection(port: server.port)
    #expect(try http.send("HEAD", target).headers["upload-offset"] == "0")
    let cut = HTTPConnection(port: server.port)
    try cut.write(
      Array("PUT \(target) HTTP/1.1\r\nhost: x\r\ncontent-length: 500000\r\n\r\n".utf8) + bytes[..<200_000])
    let before = try eventually(http, target) { $0.headers["upload-offset"] == "200000" }
    #expect(before.headers["upload-offset"] == "200000")
    cut.disconnect()
    let piece = [("content-range", "bytes 200000-299999/500000")]
    let part = try http.send("PUT", target, headers: piece, body: Array(bytes[200_000..<300_000]))
    #expect(part.status == 200 && part.headers["upload-offset"] == "300000")
    // The same piece again does not fit, and says what would.
    let again = try http.send("PUT", target, headers: piece, body: Array(bytes[200_000..<300_000]))
    #expect(text(again) == "offset(300000)")
    http.disconnect()
    let last = [("content-range", "bytes 300000-499999/*")]
    let done = try http.send("PUT", target, headers: last, body: Array(bytes[300_000...]))
    #expect(done.status == 201)
    // Its answer was lost.
    let repeated = try http.send("PUT", target, headers: last, body: Array(bytes[300_000...]))
    #expect(repeated.status == 201 && repeated.headers["upload-offset"] == "500000")
    http.disconnect()
    #expect(try http.send("GET", address(id, bytes.count, .get)).body == bytes)
  }

  @Test("A whole body without a range begins anew")
  func anew() throws {
    let (id, bytes) = (id(), random.bytes(50_000))
    let target = address(id, bytes.count, .put)
    let http = HTTPConnection(port: server.port)
    _ = try http.send(
      "PUT", target, headers: [("content-range", "bytes 0-9/50000")], body: [UInt8](repeating: 0, count: 10))
    #expect(try http.send("PUT", target, body: bytes).status == 201)
    #expect(try http.send("GET", address(id, bytes.count, .get)).body == bytes)
  }

  @Test("Addresses: forged, of another blob, for another operation, over")
  func addresses() throws {
    let (id, other) = (id(), id())
    let put = address(id, 10, .put)
    func ask(_ target: String, _ method: String = "PUT", _ headers: [(String, String)] = [], count: Int = 10)
      throws -> String
    {
      let http = HTTPConnection(port: server.port)
      return text(
        try http.send(
          method, target, headers: headers, body: method == "PUT" ? [UInt8](repeating: 1, count: count) : nil)
      )
    }
    for forged in [
      put.replacing("size=10", with: "size=11"), put.replacing("exp=2000", with: "exp=9000"),
      put.replacing("op=put", with: "op=get"), put.replacing(id.text, with: other.text),
      put.replacing("sig=", with: "sig=A"), "/v1/blob-bytes/" + id.text, "/v1/blob-bytes/x?op=put",
    ] { #expect(try ask(forged) == "badAddress", "\(forged)") }
    #expect(try ask(address(id, 10, .get)) == "methodNotAllowed")
    #expect(try ask(put, "GET") == "methodNotAllowed")
    #expect(try ask(put, count: 11) == "tooLarge(limit: 10)")
    #expect(try ask(put, "PUT", [("content-range", "bytes 0-10/11")]).hasPrefix("malformed"))
    #expect(try ask(put, "PUT", [("content-range", "bytes 5-14/10")]).hasPrefix("malformed"))
    #expect(try ask(put, "PUT", [("content-range", "bytes 5-14/*")]) == "tooLarge(limit: 10)")
    #expect(try ask(put, "PUT", [("content-range", "nonsense")]).hasPrefix("malformed"))
    #expect(try ask(put, "PUT", [("content-range", "bytes 5-9/10")], count: 5) == "offset(0)")
    #expect(try ask(address(id, 10, .get), "GET") == "notFound")
    clock.now.withLock { $0 = 2_000 }
    #expect(try ask(put) == "addressExpired")
    #expect(try store.files.state(of: id) == .partial(0))
  }

  @Test("A newer upload of a blob ends an older one, whose connection is half open")
  func takenOver() throws {
    let (id, bytes) = (id(), random.bytes(100_000))
    let target = address(id, bytes.count, .put)
    let old = HTTPConnection(port: server.port)
    try old.write(
      Array("PUT \(target) HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n".utf8) + bytes[..<40_000])
    let http = HTTPConnection(port: server.port)
    let before = try eventually(http, target) { $0.headers["upload-offset"] == "40000" }
    #expect(before.headers["upload-offset"] == "40000")
    let rest = [("content-range", "bytes 40000-99999/100000")]
    #expect(try http.send("PUT", target, headers: rest, body: Array(bytes[40_000...])).status == 201)
    #expect(text(try old.answer()) == "superseded")
    #expect(try http.send("GET", address(id, bytes.count, .get)).body == bytes)
    #expect(store.counts.openUploadCount == 0)
  }

  @Test("Bug: the file of a download that was cut stayed open until the next one that its thread did")
  func closedAtOnce() throws {
    let (id, bytes) = (id(), random.bytes(4 << 20))
    let http = HTTPConnection(port: server.port)
    #expect(try http.send("PUT", address(id, bytes.count, .put), body: bytes).status == 201)
    // It takes a little, and goes.
    let cut = HTTPConnection(port: server.port, receiveByteCount: 4_096)
    try cut.write(Array("GET \(address(id, bytes.count, .get)) HTTP/1.1\r\nhost: x\r\n\r\n".utf8))
    while store.counts.sentByteCount == 0 { usleep(1_000) }
    cut.disconnect()
    for _ in 0..<10_000 where store.counts.openDownloadCount > 0 { usleep(1_000) }
    #expect(store.counts.openDownloadCount == 0)
  }

  @Test("A deleted blob is gone, also in the middle of an upload; a download that runs ends whole")
  func deleted() throws {
    let (id, bytes) = (id(), random.bytes(100_000))
    let http = HTTPConnection(port: server.port)
    #expect(try http.send("PUT", address(id, bytes.count, .put), body: bytes).status == 201)
    store.delete([id])
    #expect(text(try http.send("GET", address(id, bytes.count, .get))) == "notFound")
    #expect(store.counts.storedByteCount == 0 && store.counts.deletedCount == 1)
    let next = self.id()
    let target = address(next, bytes.count, .put)
    let half = HTTPConnection(port: server.port)
    try half.write(
      Array("PUT \(target) HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n".utf8) + bytes[..<40_000])
    _ = try eventually(http, target) { $0.headers["upload-offset"] == "40000" }
    store.delete([next])
    #expect(text(try half.answer()) == "superseded")
    #expect(try http.send("HEAD", target).headers["upload-offset"] == "0")
    #expect(try store.files.all().isEmpty)
  }

  @Test("No room for the announced bytes: refused at once, the others undisturbed")
  func reserved() throws {
    var settings = BlobStore.Settings()
    settings.reservedByteCount = .max
    let full = try BlobStore(folder: folder.path("full"), settings: settings)
    defer { full.stop() }
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: Handler(full, urls, clock))
    defer { server.stop() }
    let http = HTTPConnection(port: server.port)
    let answer = try http.send("PUT", address(id(), 1_000, .put), body: [UInt8](repeating: 1, count: 1_000))
    #expect(text(answer).contains("full"))
    #expect(full.counts.faultCount == 1 && full.counts.openUploadCount == 0)
  }

  @Test(
    "The disk is full in the middle: a typed refusal, nobody else disturbed, and the upload goes on when there is room"
  )
  func fullDisk() throws {
    let isFull = Atomic<Bool>(true)
    var files = try BlobFiles(folder: folder.path("failing"))
    let unlucky = id()
    files.willTake = { (step) throws(BlobFault) in
      if step == .syncFile, isFull.load(ordering: .relaxed) { throw .full }
    }
    var settings = BlobStore.Settings()
    settings.reservedByteCount = 0
    let store = try BlobStore(files: files, settings: settings)
    defer { store.stop() }
    let server = try WebServer(host: "127.0.0.1", port: 0, handler: Handler(store, urls, clock))
    defer { server.stop() }
    let http = HTTPConnection(port: server.port)
    let bytes = random.bytes(100_000)
    let target = address(unlucky, bytes.count, .put)
    #expect(text(try http.send("PUT", target, body: bytes)) == "storage(PalbeBackendServer.BlobFault.full)")
    #expect(text(try http.send("GET", address(unlucky, bytes.count, .get))) == "notFound")
    #expect(store.counts.faultCount == 1 && store.counts.storedCount == 0)
    isFull.store(false, ordering: .relaxed)
    #expect(try http.send("HEAD", target).headers["upload-offset"] == "100000")
    #expect(try http.send("PUT", target, body: bytes).status == 201)
    #expect(try http.send("GET", address(unlucky, bytes.count, .get)).body == bytes)
  }
}
