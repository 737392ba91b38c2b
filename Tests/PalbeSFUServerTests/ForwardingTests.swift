import CPalbeMallocCounter
import Foundation
import PalbeCallCore
import PalbeDTLS
import PalbeEventLoop
import PalbeLiveKit
import PalbeProtobuf
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import Testing

@_spi(Testing) @testable import PalbeSFUServer
@testable import PalbeWebServer

/// Encoded frames as far as an SFU looks into them.
private enum Frames {
  /// VP8 (RFC 7741 §4.3): the first bit of the first byte is 0 in a key frame; then noise.
  static func video(_ index: Int, byteCount: Int = 3_000) -> [UInt8] {
    var random = RandomSource(seed: UInt64(index))
    let isKey = index.isMultiple(of: 30)
    let head: [UInt8] = isKey ? [0x10, 0, 0, 0x9d, 1, 0x2a, 0x80, 2, 0x68, 1] : [0x11, 0, 0]
    return head + random.bytes(byteCount - head.count)
  }

  /// Opus (RFC 6716 §3.1): 20 ms, one frame; then noise.
  static func audio(_ index: Int) -> [UInt8] {
    var random = RandomSource(seed: 1_000_000 + UInt64(index))
    return [0x78] + random.bytes(80)
  }
}

@Suite("Media through the server over real UDP", .timeLimit(.minutes(2)), .serialized)
struct ForwardingTests {
  /// Turns both clients until `isDone`, calling `tick` every 20 ms; false after 20 s, which only ends a test
  /// that hangs.
  private func run(
    _ clients: [CallClient], tick: (Int) -> Void = { _ in }, until isDone: () -> Bool
  ) throws -> Bool {
    var poller = try Poller()
    let start = MonotonicClock.now()
    var next = start
    var count = 0
    while !isDone() {
      let now = MonotonicClock.now()
      guard now - start < .seconds(20) else { return false }
      for client in clients { try client.turn() }
      if now >= next {
        tick(count)
        count += 1
        next += .milliseconds(20)
      }
      _ = try poller.wait(for: .milliseconds(1))
    }
    return true
  }

  @Test("audio and video arrive unchanged and in order; the audit log has what was sent")
  func forwards() async throws {
    let path = NSTemporaryDirectory() + "palbe-sfu-audit-\(UUID().uuidString)"
    defer { unlink(path) }
    let server = try SFUServer.onLoopback { $0.auditLogPath = path }
    let anna = try await CallClient.join(server, room: "hall", identity: "anna")
    let bert = try await CallClient.join(server, room: "hall", identity: "bert")
    #expect(try run([anna, bert]) { anna.isConnected && bert.isConnected })
    let isDone = try run([anna, bert]) { tick in
      anna.send(Frames.video(tick), on: .camera, timestamp: UInt32(tick) * 1_800)
      anna.send(Frames.audio(tick), on: .microphone, timestamp: UInt32(tick) * 960)
      bert.pullAudio()
    } until: {
      bert.frames.count >= 60 && bert.audio.count >= 60
    }
    #expect(isDone)
    let sent = (0..<2_000).map { Frames.video($0) }
    let received = bert.frames.compactMap { frame in sent.firstIndex(of: frame.bytes) }
    #expect(received.count == bert.frames.count)
    #expect(received == received.sorted())
    #expect(bert.frames.first?.isKeyFrame == true)
    let sounds = (0..<2_000).map { Frames.audio($0) }
    let heard = bert.audio.compactMap { sounds.firstIndex(of: $0) }
    #expect(heard.count == bert.audio.count)
    #expect(heard == heard.sorted())

    server.stop()
    let log = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    var records: [ArraySlice<UInt8>] = []
    var offset = 0
    while offset + 4 <= log.count {
      let count = log[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
      records.append(log[(offset + 4)...].prefix(count))
      offset += 4 + count
    }
    #expect(offset == log.count)
    #expect(records.count >= 120)
    let permissions = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(permissions == 0o600)
    let last = try #require(heard.last)
    #expect(records.contains { $0.suffix(81).elementsEqual(Frames.audio(last)) })
  }

  @Test("RFC 6544: clients that can only use TCP and one over UDP see each other, unchanged and in order")
  func overTCP() async throws {
    let server = try SFUServer.onLoopback(workers: 1) { $0.tcpPort = 0 }
    let anna = try await CallClient.join(server, room: "hall", identity: "anna")
    let bert = try await CallClient.join(server, room: "hall", identity: "bert")
    let carl = try await CallClient.join(server, room: "hall", identity: "carl")
    for client in [anna, bert] { try client.useTCP(to: server.streamAddresses[0]) }
    #expect(try run([anna, bert, carl]) { anna.isConnected && bert.isConnected && carl.isConnected })
    let isDone = try run([anna, bert, carl]) { tick in
      anna.send(Frames.video(tick), on: .camera, timestamp: UInt32(tick) * 1_800)
    } until: {
      bert.frames.count >= 60 && carl.frames.count >= 60
    }
    #expect(isDone)
    let sent = (0..<2_000).map { Frames.video($0) }
    for client in [bert, carl] {
      let received = client.frames.compactMap { frame in sent.firstIndex(of: frame.bytes) }
      #expect(received.count == client.frames.count)
      #expect(received == received.sorted())
    }
    // A client whose connection breaks goes on over UDP.
    bert.dropTCP()
    let count = bert.frames.count
    let goesOn = try run([anna, bert, carl]) { tick in
      anna.send(Frames.video(tick), on: .camera, timestamp: UInt32(10_000 + tick) * 1_800)
    } until: {
      bert.frames.count >= count + 10
    }
    #expect(goesOn)
  }

  @Test("a client that vanishes leaves the room")
  func vanishes() async throws {
    let server = try SFUServer.onLoopback(workers: 1)
    let anna = try await CallClient.join(server, room: "hall", identity: "anna")
    let bert = try await CallClient.join(server, room: "hall", identity: "bert")
    #expect(try run([anna, bert]) { anna.isConnected && bert.isConnected })
    anna.vanish()
    #expect(try run([bert]) { bert.events.contains(.participantDisconnected(identity: "anna")) })
  }

  /// Something waits to be read.
  private func isReadable(_ descriptors: [Int32]) -> Bool {
    var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    return poll(&polled, nfds_t(polled.count), 0) > 0
  }

  @Test("a turn that only forwards allocates nothing, receive, protection and send included")
  func allocations() async throws {
    let inbox = try WorkerInbox()
    let udp = try UDPSocket(binding: SocketAddress(ipv4: 127, 0, 0, 1, port: 0))
    var random = SystemRandom.source()
    let inputs = [udp.fileDescriptor] + inbox.fileDescriptors
    let sockets = Sockets(udp: udp)
    var configuration = SFUConfiguration(candidates: [sockets.udp.localAddress])
    // Media comes here a hundred times faster than in life: no link's estimate would let it through.
    configuration.controlsCongestion = false
    let identity = try DTLSIdentity(nowUnix: Tokens.now, using: &random)
    var worker = try MediaWorker(
      WorkerSeed(
        index: 0, sockets: sockets, poller: try Poller(), inbox: inbox, data: try SCTPPort(number: 0),
        configuration: configuration,
        identity: identity, auditFile: nil, log: ServerLog(level: .warning)))

    func join(_ name: String) async throws -> CallClient {
      try await CallClient(room: "hall", identity: name) { request in
        let socket = WebSocket(queueByteLimit: 1 << 20) { _ in }
        let connection = SignalingConnection(socket: socket, inbox: inbox)
        let wrapped = try LiveKit.WrappedJoinRequest(serialized: request.span)
        let grant = AccessGrant(room: "hall", identity: name)
        let details = JoinDetails(
          grant: grant, request: try LiveKit.JoinRequest(serialized: wrapped.joinRequest.span))
        #expect(inbox.post(.join(connection, details)))
        return CallClient.Signaling(
          send: { connection.received(binary: $0) },
          receive: {
            var messages: [[UInt8]] = []
            while case .binary(let bytes) = socket.withQueue({ $0.next() }) { messages.append(bytes) }
            return messages
          }, end: {})
      }
    }

    let anna = try await join("anna")
    try worker.turn()
    let bert = try await join("bert")
    let start = MonotonicClock.now()
    while !(anna.isConnected && bert.isConnected), MonotonicClock.now() - start < .seconds(20) {
      try anna.turn()
      try bert.turn()

      try worker.turn()
    }
    #expect(anna.isConnected && bert.isConnected)
    var counts: [UInt64] = []
    for tick in 0..<400 {
      // What the clients sent besides media: reports, feedback, checks, signaling.
      while isReadable(inputs) { try worker.turn() }
      anna.send(Frames.video(tick), on: .camera, timestamp: UInt32(tick) * 1_800)
      anna.send(Frames.audio(tick), on: .microphone, timestamp: UInt32(tick) * 960)
      let deadline = worker.nextDeadline ?? .distantFuture
      let before = palbe_malloc_count()
      try worker.turn()
      let count = palbe_malloc_count() - before
      // Where a timer fell due, the worker sent reports or feedback of its own.
      if tick >= 100, MonotonicClock.now() < deadline { counts.append(count) }
      try anna.turn()
      try bert.turn()
    }
    #expect(bert.frames.count > 300)
    #expect(counts.count > 100, "\(counts.count) turns without a timer")
    #expect(counts.allSatisfy { $0 == 0 }, "mallocs per turn: \(counts)")
  }
}
