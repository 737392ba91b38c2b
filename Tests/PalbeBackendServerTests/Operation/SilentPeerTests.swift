import Foundation
import Glibc
import PalbeBackendCore
import PalbeBackendKit
import PalbeEventLoop
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// What a process is seen to use (proc(5)).
private struct ProcessView {
  let identifier: Int32

  /// What its descriptors lead to, sorted.
  var descriptors: [String] {
    let folder = "/proc/\(identifier)/fd"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0) }
      .sorted()
  }

  var descriptorCount: Int { descriptors.count }

  /// The most memory it had at once.
  var peakByteCount: Int {
    let text = (try? String(contentsOfFile: "/proc/\(identifier)/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) << 10
  }
}

/// `trial-server` is the real server with short times, in a process of its own.
@Suite(
  "Half-open sockets, slow readers, cut uploads (section 3)", .serialized,
  .enabled(if: ToolProcess.executable("trial-server") != nil))
final class SilentPeerTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func start(_ options: [String]) throws -> (ToolProcess, UInt16, ProcessView) {
    let process = try ToolProcess("trial-server", ["serve", "--data", folder.path("data")] + options)
    let port = try process.readPort()
    _ = try process.readPort()
    return (process, port, ProcessView(identifier: process.processIdentifier))
  }

  private func signIn(_ name: String, _ port: UInt16) throws -> ServerClient {
    try .signedIn(port: port, "\(name)@example.org", "correct horse \(name)", seed: UInt64(name.utf8.count))
  }

  /// An attachment's address, announced.
  private func announce(_ count: Int, _ group: GroupID, _ client: ServerClient) throws -> (
    id: String, put: String
  ) {
    let view = try client.get("POST", "/v1/groups/\(group)/blobs", ["size": count])
    return (try #require(view["blob_id"] as? String), try #require(view["put_url"] as? String))
  }

  private func wait(_ seconds: Double, until condition: () throws -> Bool) throws -> Bool {
    let deadline = MonotonicClock.now() + .seconds(seconds)
    while MonotonicClock.now() < deadline {
      if try condition() { return true }
      usleep(20_000)
    }
    return try condition()
  }

  /// The descriptors of a server that none of these clients is connected to.
  private func quietCount(_ view: ProcessView, _ clients: ServerClient...) throws -> Int {
    for client in clients { client.http.disconnect() }
    var count = view.descriptorCount
    for _ in 0..<100 {
      usleep(100_000)
      let next = view.descriptorCount
      if next == count { break }
      count = next
    }
    return count
  }

  /// How long the server takes to answer somebody else.
  private func latency(_ client: ServerClient, _ group: GroupID, _ mlsID: MLSGroupID) throws -> TimeDelta {
    let begun = MonotonicClock.now()
    try client.get("POST", "/v1/groups/\(group)/messages", client.message(mlsID, 1))
    return MonotonicClock.now() - begun
  }

  @Test(
    "Peers that fall silent in every state are let go in bounded time, and no descriptor of theirs is left")
  func halfOpen() throws {
    let (process, port, view) = try start(["--impatient"])
    let (anna, ben) = (try signIn("anna", port), try signIn("ben", port))
    let (group, mlsID) = try anna.found(with: [ben.user])
    let large = try announce(8 << 20, group, anna)
    let bytes = [UInt8](repeating: 7, count: 8 << 20)
    #expect(try HTTPConnection(port: port).send("PUT", large.put, body: bytes).status == 201)
    let get = try #require(
      try anna.get("POST", "/v1/blobs/\(large.id)/complete")["get_url"] as? String)
    let part = try announce(1 << 20, group, anna)
    let before = try quietCount(view, anna, ben)
    #expect(before > 0)

    // None of them reads or writes another byte; the kernel goes on acknowledging for them.
    var peers: [HTTPConnection] = []
    func peer(_ text: String, body: Int = 0, receives: Int32? = nil) throws {
      let peer = HTTPConnection(port: port, receiveByteCount: receives)
      try peer.write(Array(text.utf8) + [UInt8](repeating: 1, count: body))
      peers.append(peer)
    }
    let login = anna.authentication.map { "\($0): \($1)\r\n" }.joined()
    for _ in 0..<5 {
      try peer("")
      try peer("GET /v1/dev")
      try peer("GET /v1/ready HTTP/1.1\r\nhost: x\r\n\r\n")
      try peer("POST /v1/devices HTTP/1.1\r\nhost: x\r\n\(login)content-length: 500\r\n\r\n", body: 100)
      try peer("PUT \(part.put) HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n", body: 50_000)
      try peer("GET \(get) HTTP/1.1\r\nhost: x\r\n\r\n", receives: 4_096)
      let socket = HTTPConnection(port: port)
      #expect(try socket.upgrade("/v1/realtime", headers: anna.authentication).status == 101)
      peers.append(socket)
    }
    #expect(try wait(5) { view.descriptorCount >= before + 20 })
    var slowest = TimeDelta.zero
    let isGone = try wait(20) {
      slowest = max(slowest, try latency(ben, group, mlsID))
      // One is the connection of who asks.
      return view.descriptorCount <= before + 1
    }
    #expect(isGone, "\(view.descriptors), \(before) before")
    #expect(slowest < .seconds(2), "\(slowest)")
    withExtendedLifetime(peers) {}
    #expect(try quietCount(view, anna, ben) <= before)

    // A process that is stopped is such a peer too, and one that is killed while it is.
    let child = Process()
    child.executableURL = URL(fileURLWithPath: "/bin/bash")
    child.arguments = ["-c", "exec 3<>/dev/tcp/127.0.0.1/\(port); echo -n 'GET /v1/rea' >&3; cat <&3"]
    child.standardOutput = FileHandle.nullDevice
    try child.run()
    #expect(try wait(5) { view.descriptorCount > before })
    kill(child.processIdentifier, SIGSTOP)
    #expect(try wait(10) { view.descriptorCount <= before })
    kill(child.processIdentifier, SIGKILL)
    child.waitUntilExit()
    process.terminate()
    #expect(process.finish().code == 0)
  }

  @Test("Sockets that do not read while others write: ended with what waits bounded, the writers undisturbed")
  func slowReaders() throws {
    let (process, port, view) = try start(["--impatient"])
    let (anna, ben) = (try signIn("anna", port), try signIn("ben", port))
    let (group, mlsID) = try anna.found(with: [ben.user])
    let before = try quietCount(view, anna, ben)
    let topic = TopicName.conversation(mlsID).text
    let slow = try (0..<5).map { _ in
      let socket = HTTPConnection(port: port, receiveByteCount: 4_096)
      #expect(try socket.upgrade("/v1/realtime", headers: ben.authentication).status == 101)
      try socket.send(frame: "{\"type\":\"subscribe\",\"id\":1,\"topic\":\"\(topic)\"}")
      return socket
    }
    let reader = HTTPConnection(port: port)
    #expect(try reader.upgrade("/v1/realtime", headers: ben.authentication).status == 101)
    try reader.send(frame: "{\"type\":\"subscribe\",\"id\":1,\"topic\":\"\(topic)\"}")
    #expect(try reader.nextFrame().contains("\"reply\""))
    let peak = view.peakByteCount
    var events = 0
    for _ in 0..<60 {
      var message = anna.message(mlsID, 1, count: 180_000)
      message["ephemeral"] = true
      try anna.get("POST", "/v1/groups/\(group)/messages", message)
      while true {
        let frame = try reader.nextFrame()
        if frame.contains("\"ephemeral\"") { break }
      }
      events += 1
    }
    #expect(events == 60)
    // The reader is left, and the connection that writes.
    #expect(
      try wait(20) {
        try reader.send(frame: "{\"type\":\"heartbeat\"}")
        _ = try reader.nextFrame()
        return view.descriptorCount <= before + 2
      })
    #expect(view.peakByteCount - peak < 48 << 20, "\((view.peakByteCount - peak) >> 20) MiB more")
    withExtendedLifetime(slow) {}
    process.terminate()
    #expect(process.finish().code == 0)
  }

  @Test("1 GB cut in the middle: memory stays flat, it goes on where it was, and comes out whole")
  func largeUpload() throws {
    let (process, port, view) = try start([])
    let anna = try signIn("anna", port)
    let (group, mlsID) = try anna.found(with: [])
    let count = 1 << 30
    let (id, put) = try announce(count, group, anna)
    let piece = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, filled in
      for index in 0..<1 << 20 { buffer[index] = UInt8(truncatingIfNeeded: index >> 12 &+ index) }
      filled = 1 << 20
    }
    let peak = view.peakByteCount
    let first = HTTPConnection(port: port)
    try first.write(Array("PUT \(put) HTTP/1.1\r\nhost: x\r\ncontent-length: \(count)\r\n\r\n".utf8))
    for _ in 0..<512 { try first.write(piece) }
    try first.write(Array(piece.prefix(1_000)))
    first.disconnect()
    try anna.get("POST", "/v1/groups/\(group)/messages", anna.message(mlsID, 0))
    let http = HTTPConnection(port: port)
    var offset = 0
    // What came before the cut is still being written.
    #expect(
      try wait(30) {
        let now = try http.send("HEAD", put).headers["upload-offset"].flatMap { Int($0) } ?? 0
        defer { offset = now }
        return now >= 512 << 20 && now == offset
      })
    #expect(try anna.ask("POST", "/v1/blobs/\(id)/complete").code == "upload_incomplete")
    let second = HTTPConnection(port: port)
    try second.write(
      Array(
        "PUT \(put) HTTP/1.1\r\nhost: x\r\ncontent-range: bytes \(offset)-\(count - 1)/\(count)\r\ncontent-length: \(count - offset)\r\n\r\n"
          .utf8))
    var place = offset
    while place < count {
      let rest = piece[(place & (1 << 20 - 1))...]
      try second.write(Array(rest))
      place += rest.count
    }
    #expect(try second.answer().status == 201)
    #expect(view.peakByteCount - peak < 32 << 20, "\((view.peakByteCount - peak) >> 20) MiB more")
    let get = try #require(try anna.get("POST", "/v1/blobs/\(id)/complete")["get_url"] as? String)
    for start in [0, 512 << 20, offset - 10, count - 1_000] {
      let answer = try http.send("GET", get, headers: [("range", "bytes=\(start)-\(start + 999)")])
      let expected = (start..<start + 1_000).map { piece[$0 & (1 << 20 - 1)] }
      #expect(answer.status == 206 && answer.body == expected, "\(start)")
    }
    process.terminate()
    #expect(process.finish().code == 0)
  }

  @Test("An upload that was cut and never goes on: its bytes are gone when its time is over")
  func abandoned() throws {
    let (process, port, view) = try start(["--impatient", "--upload-time", "2"])
    let anna = try signIn("anna", port)
    let (group, _) = try anna.found(with: [])
    let before = try quietCount(view, anna)
    let (id, put) = try announce(1 << 20, group, anna)
    let cut = HTTPConnection(port: port)
    try cut.write(Array("PUT \(put) HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n".utf8))
    try cut.write([UInt8](repeating: 1, count: 500_000))
    cut.disconnect()
    func files() -> [String] {
      let all =
        FileManager.default.enumerator(atPath: folder.path("data/blobs"))?.allObjects as? [String] ?? []
      return all.filter { $0.contains("blb_") }
    }
    #expect(try wait(5) { !files().isEmpty })
    #expect(try wait(20) { files().isEmpty }, "\(files())")
    #expect(try wait(5) { view.descriptorCount <= before })
    // The connection that was quiet is gone.
    #expect(try ServerClient(anna, port: port).ask("GET", "/v1/blobs/\(id)").code == "blob_not_found")
    #expect(try HTTPConnection(port: port).send("PUT", put, body: [1]).code == "forbidden")
    process.terminate()
    #expect(process.finish().code == 0)
    #expect(try BackendServer.check(folder.path("data"), repairs: false) == [])
  }
}
