import Foundation
import Palbe
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Synchronization
import Testing

@testable import Palbase

/// libcurl, whose requests with a body are cut after so many bytes, one number a request.
private final class CuttingTransport: HTTPTransport {
  private let inner = CurlTransport()
  private let cuts: Mutex<[Int64]>
  private let atCut: @Sendable () -> Void
  let requests = Mutex<[TransportRequest]>([])

  init(_ cuts: [Int64] = [], atCut: @escaping @Sendable () -> Void = {}) {
    self.cuts = Mutex(cuts)
    self.atCut = atCut
  }

  func send(_ request: TransportRequest) async throws(TransportFault) -> TransportAnswer {
    requests.withLock { $0.append(request) }
    let next: Int64? = cuts.withLock { request.method == "HEAD" || $0.isEmpty ? nil : $0.removeFirst() }
    guard let cut = next else { return try await inner.send(request) }
    let (inner, atCut, own) = (inner, atCut, request.progress)
    let box = Box()
    var watched = request
    watched.progress = { progress in
      own?(progress)
      guard max(progress.sent, progress.received) >= cut, box.cutNow() else { return }
      atCut()
    }
    let sent = watched
    let task = Task { () -> Result<TransportAnswer, TransportFault> in
      do throws(TransportFault) { return .success(try await inner.send(sent)) } catch {
        return .failure(error)
      }
    }
    box.start(task)
    let result = await task.value
    if case .failure(.cancelled) = result { throw .failed(.connectionLost, mayHaveArrived: true) }
    return try result.get()
  }

  private final class Box: Sendable {
    private let state = Mutex<(task: Task<Result<TransportAnswer, TransportFault>, Never>?, isCut: Bool)>(
      (nil, false))

    func start(_ task: Task<Result<TransportAnswer, TransportFault>, Never>) {
      let isCut = state.withLock { state in
        state.task = task
        return state.isCut
      }
      if isCut { task.cancel() }
    }

    /// True the first time.
    func cutNow() -> Bool {
      let (isFirst, task) = state.withLock { state in
        defer { state.isCut = true }
        return (!state.isCut, state.task)
      }
      if isFirst { task?.cancel() }
      return isFirst
    }
  }
}

/// Answers from a list.
private final class ScriptedTransport: HTTPTransport {
  let requests = Mutex<[TransportRequest]>([])
  private let answers: Mutex<[TransportAnswer]>
  init(_ answers: [TransportAnswer]) { self.answers = Mutex(answers) }

  func send(_ request: TransportRequest) async throws(TransportFault) -> TransportAnswer {
    requests.withLock { $0.append(request) }
    return answers.withLock { $0.isEmpty ? TransportAnswer(status: 500) : $0.removeFirst() }
  }
}

@Suite("S0-45: attachments' bytes, against palbe-server itself", .serialized, .timeLimit(.minutes(3)))
struct BlobTransferTests {
  private let server: ServerProcess
  private let folder: TemporaryFolder
  private let client: ServerClient
  private let group: GroupID
  private let content: [UInt8]

  init() async throws {
    server = try ServerProcess()
    folder = try TemporaryFolder()
    let app = try App(server)
    let anna = try await app.pb.auth.signUp(email: "anna@example.com", password: "correct horse")
    client = ServerClient(
      port: server.port, user: try #require(UserID(anna.id)),
      accessToken: try await app.runtime().sessions.accessToken().text, seed: 3)
    try client.enrol()
    group = try client.found(with: []).group
    var random = RandomSource(seed: 5)
    content = random.bytes(12_000_000)
    try Data(content).write(to: URL(fileURLWithPath: folder.path("up")))
  }

  private func transfer(_ transport: any HTTPTransport) throws -> BlobTransfer {
    var time = Timebase.system
    time.sleep = { try await Task.sleep(nanoseconds: UInt64(max(0, min($0.nanoseconds, 20_000_000)))) }
    let url = try #require(ServerURL("http://127.0.0.1:\(server.port)"))
    return BlobTransfer(HTTPClient(server: url, transport: transport, time: time))
  }

  private func announce(_ count: Int) throws -> (id: String, put: String) {
    let json = try client.get("POST", "/v1/groups/\(group.text)/blobs", ["size": count])
    return (try #require(json["blob_id"] as? String), try #require(json["put_url"] as? String))
  }

  private func complete(_ id: String) throws -> String {
    try client.get("POST", "/v1/blobs/\(id)/complete")
    return try #require(try client.get("GET", "/v1/blobs/\(id)")["get_url"] as? String)
  }

  private func downloaded() throws -> [UInt8] {
    [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path("down"))))
  }

  @Test("A file goes up and comes down, cut again and again in the middle; nobody's token goes along")
  func cutFile() async throws {
    let (id, put) = try announce(content.count)
    let transport = CuttingTransport([1_000_000, 2_000_000, 1_000_000])
    let last = Mutex<Int64>(0)
    try await transfer(transport).upload(
      .file(path: folder.path("up")), byteCount: Int64(content.count), to: { _ in put },
      progress: { done, total in last.withLock { $0 = done } })
    #expect(last.withLock { $0 } == content.count)
    let asked = transport.requests.withLock { $0 }
    #expect(asked.count { $0.method == "HEAD" } >= 3)
    #expect(
      asked.allSatisfy { request in
        !request.headers.contains { ["authorization", "palbe-device"].contains($0.name.lowercased()) }
      })
    let get = try complete(id)
    let down = CuttingTransport([3_000_000, 1_000_000])
    try await transfer(down).download(
      to: folder.path("down"), byteCount: Int64(content.count), tag: id, from: { _ in get })
    #expect(try downloaded() == content)
    #expect(down.requests.withLock { $0.count } >= 3)
    // What is there already is not asked for; what is too long begins anew; another attachment's bytes too.
    let idle = CuttingTransport()
    try await transfer(idle).download(
      to: folder.path("down"), byteCount: Int64(content.count), tag: id, from: { _ in get })
    #expect(idle.requests.withLock { $0.isEmpty })
    try Data(content.reversed().prefix(5_000)).write(to: URL(fileURLWithPath: folder.path("down")))
    try await transfer(idle).download(
      to: folder.path("down"), byteCount: Int64(content.count), tag: "another", from: { _ in get })
    #expect(try downloaded() == content)
  }

  @Test("Pieces from a producer: bounded memory, gone on after a cut and in a later try")
  func pieces() async throws {
    let (id, put) = try announce(content.count)
    let content = content
    let largest = Mutex(0)
    let source = BlobTransfer.Source.pieces(byteCount: 1 << 20) { offset, count in
      largest.withLock { $0 = max($0, count) }
      return Array(content[Int(offset)..<Int(offset) + count])
    }
    // The first try ends in the middle: its task is cancelled.
    let first = try transfer(CuttingTransport())
    let isHalf = AsyncStream<Void>.makeStream()
    let task = Task {
      try await first.upload(source, byteCount: Int64(content.count), to: { _ in put }) { done, total in
        if done > total / 2 { isHalf.continuation.yield() }
      }
    }
    for await _ in isHalf.stream { break }
    task.cancel()
    _ = await task.result
    let second = CuttingTransport([500_000])
    try await transfer(second).upload(
      source, byteCount: Int64(content.count), to: { _ in put }, isContinued: true)
    let repeated = second.requests.withLock { $0.count { $0.method == "PUT" } }
    #expect(repeated < 10 && largest.withLock { $0 } <= 1 << 20)
    let get = try complete(id)
    try await transfer(CuttingTransport()).download(
      to: folder.path("down"), byteCount: Int64(content.count), tag: id, from: { _ in get })
    #expect(try downloaded() == content)
  }

  @Test("kill -9 of the server in the middle of an upload and of a download, and started again")
  func killed() async throws {
    let (id, put) = try announce(content.count)
    let server = UncheckedServer(server)
    let restart: @Sendable () -> Void = { server.restart() }
    try await transfer(CuttingTransport([4_000_000], atCut: restart)).upload(
      .file(path: folder.path("up")), byteCount: Int64(content.count), to: { _ in put })
    let again = ServerClient(client, port: self.server.port)
    try again.get("POST", "/v1/blobs/\(id)/complete")
    let get = try #require(try again.get("GET", "/v1/blobs/\(id)")["get_url"] as? String)
    try await transfer(CuttingTransport([4_000_000], atCut: restart)).download(
      to: folder.path("down"), byteCount: Int64(content.count), tag: id, from: { _ in get })
    #expect(try downloaded() == content)
  }

  @Test("Wrong lengths, a forged address, more than was announced: each its code")
  func refusals() async throws {
    let (id, put) = try announce(1_000)
    let transfer = try transfer(CuttingTransport())
    let path = folder.path("up")
    #expect(
      await code { try await transfer.upload(.file(path: path), byteCount: 2_000, to: { _ in put }) }
        == FailureCode(rawValue: "attachment_too_large"))
    let count = Mutex(0)
    #expect(
      await code {
        try await transfer.upload(.file(path: path), byteCount: 1_000) { isOver in
          count.withLock { $0 += 1 }
          return put + "0"
        }
      } == FailureCode(rawValue: "forbidden"))
    #expect(count.withLock { $0 } == 2)
    try Data(content[..<500]).write(to: URL(fileURLWithPath: folder.path("short")))
    let short = folder.path("short")
    #expect(
      await code { try await transfer.upload(.file(path: short), byteCount: 1_000, to: { _ in put }) } != nil)
    // Over the first time, good the second.
    try await transfer.upload(.file(path: path), byteCount: 1_000) { isOver in isOver ? put : put + "0" }
    let get = try complete(id)
    for wrong in [999, 1_001] as [Int64] {
      let down = folder.path("down\(wrong)")
      #expect(
        await code { try await transfer.download(to: down, byteCount: wrong, tag: id, from: { _ in get }) }
          == .integrityFailed)
    }
    #expect(
      await code {
        try await transfer.upload(.file(path: path), byteCount: 1, to: { _ in "ftp://elsewhere/" })
      } == .unexpectedAnswer)
  }

  @Test("404 is told at once, 410 asks for another address once, 503 is repeated as the schedule says")
  func statuses() async throws {
    for (status, requests, addresses) in [(404, 1, 1), (410, 2, 2), (413, 1, 1), (503, 4, 1)] {
      let transport = ScriptedTransport((0..<9).map { _ in TransportAnswer(status: status) })
      let count = Mutex(0)
      let transfer = try transfer(transport)
      let down = folder.path("none")
      #expect(
        await code {
          try await transfer.download(to: down, byteCount: 5, tag: "t") { _ in
            count.withLock { $0 += 1 }
            return "/x"
          }
        } != nil)
      #expect(transport.requests.withLock { $0.count } == requests, "\(status)")
      #expect(count.withLock { $0 } == addresses, "\(status)")
    }
  }
}

/// The transport's thread restarts it while the test waits.
private final class UncheckedServer: @unchecked Sendable {
  private let server: ServerProcess
  init(_ server: ServerProcess) { self.server = server }

  func restart() {
    server.kill()
    try? server.startAgain()
  }
}
