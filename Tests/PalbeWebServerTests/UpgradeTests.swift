import Glibc
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: WebSockets")
struct UpgradeTests {
  @Test("A refused upgrade answers a true status and text, and no 101")
  func refused() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    client.send(RawClient.upgradeRequest("/refused"))
    let missing = client.response()
    #expect(missing.status == 404 && missing.body == "requested room does not exist")
    let other = try RawClient(port: server.port)
    other.send(RawClient.upgradeRequest("/token", headers: "Authorization: Bearer x.y.z\r\n"))
    let denied = other.response()
    #expect(denied.status == 401 && denied.body == "no permission: Bearer x.y.z")
    #expect(server.handler.log.withLock { $0.opened } == 0)
  }

  @Test(
    "RFC 6455 §4.2: without a subprotocol the handshake is accepted, and messages of all lengths are echoed")
  func echo() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    #expect(client.upgrade())
    for count in [0, 1, 125, 126, 65_535, 65_536, 300_000] {
      let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
      client.send(RawClient.frame(2, payload))
      let answer = try #require(client.readFrame())
      #expect(answer.opcode == 2 && answer.payload == payload)
    }
    client.send(RawClient.frame(1, Array("grüße".utf8)))
    #expect(client.readFrame()?.payload == Array("grüße".utf8))
    client.send(RawClient.frame(8, [0x03, 0xe8] + Array("bye".utf8)))
    #expect(client.readFrame()?.opcode == 8)
    await server.handler.wait { !$0.closures.isEmpty }
    #expect(server.handler.log.withLock { $0.closures } == [WebSocketClosure(code: 1_000, reason: "bye")])
  }

  @Test("What is sent during the decision goes out right after the 101")
  func greeting() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    #expect(client.upgrade("/greeting"))
    #expect(client.readFrame()?.payload == [1, 2, 3])
  }

  @Test("RFC 6455 §5.4: fragments are one message, a ping between them is answered")
  func fragments() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    #expect(client.upgrade())
    client.send(RawClient.frame(2, [1, 2], final: false))
    client.send(RawClient.frame(9, [7]))
    let pong = try #require(client.readFrame())
    #expect(pong.opcode == 10 && pong.payload == [7])
    client.send(RawClient.frame(0, [3], final: false))
    // Byte by byte: half a frame is waited for.
    for byte in RawClient.frame(0, [4, 5]) { client.send([byte]) }
    #expect(client.readFrame()?.payload == [1, 2, 3, 4, 5])
  }

  @Test("Another thread can send and close; the peer sees code and reason")
  func sendFromOutside() async throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    #expect(client.upgrade())
    await server.handler.wait { $0.opened == 1 }
    let socket = server.handler.log.withLock { $0.sockets[0] }
    for number in 0..<200 { #expect(socket.send(binary: [UInt8(number)])) }
    socket.close(code: 4_001, reason: "enough")
    #expect(!socket.send(binary: [9]))
    for number in 0..<200 { #expect(client.readFrame()?.payload == [UInt8(number)]) }
    let close = try #require(client.readFrame())
    #expect(close.opcode == 8 && close.payload == [0x0f, 0xa1] + Array("enough".utf8))
    client.send(RawClient.frame(8, close.payload))
    #expect(client.readToEnd().isEmpty)
    await server.handler.wait { !$0.closures.isEmpty }
    #expect(!socket.send(binary: [9]))
  }

  @Test("A silent client is sent pings and, if it does not answer, is closed; who speaks is not silent")
  func validity() async throws {
    var limits = WebServerLimits.patient
    limits.pingInterval = .seconds(1)
    limits.silenceTimeout = .seconds(2)
    let server = try TestServer(limits: limits)
    let (silent, speaking) = (try RawClient(port: server.port), try RawClient(port: server.port))
    #expect(silent.upgrade() && speaking.upgrade())
    var echoes = 0
    for _ in 0..<26 {
      usleep(100_000)
      speaking.send(RawClient.frame(2, [7]))
      while let frame = speaking.readFrame(answeringPings: false) {
        if frame.opcode == 9 { continue }
        echoes += frame.payload == [7] ? 1 : 0
        break
      }
    }
    #expect(echoes == 26)
    #expect(silent.readFrame(answeringPings: false)?.opcode == 9)
    #expect(silent.readToEnd().allSatisfy { _ in true })
    await server.handler.wait { $0.closures.count == 1 }
  }

  @Test("Stopping the server sends 1001 and closes")
  func stop() throws {
    let server = try TestServer()
    let client = try RawClient(port: server.port)
    #expect(client.upgrade())
    client.send(RawClient.frame(1, Array("x".utf8)))
    #expect(client.readFrame() != nil)
    server.server.stop()
    let close = client.readFrame()
    #expect(close?.opcode == 8 && close?.payload.prefix(2) == [0x03, 0xe9])
    #expect(server.handler.log.withLock { $0.closures.count } == 1)
  }
}
