import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@Suite("Web server: hostile clients")
struct HostileTests {
  private func expectAlive(_ server: TestServer, _ comment: Comment) throws {
    let client = try RawClient(port: server.port)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(client.response().body == "OK", comment)
  }

  private static let malformed: [String] = [
    "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
    "BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /a%2 HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /../../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "GET /. HTTP/1.1\r\nHost: x\r\n\r\n",
    "CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\nhello", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
      + "HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "GET / HTTP/1.1\nHost: x\n\n", "GET / HTTP/1.1\r\n : x\r\n\r\n", "GET / HTTP/1.1\r\nHost\r\n\r\n",
    "\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}\u{01}", "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc",
    "GET / HTTP/1.1\r\n" + String(repeating: "X-A: b\r\n", count: 2_000) + "\r\n",
    "GET /?" + String(repeating: "a=b&", count: 2_000) + " HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: "Cookie: a=b\r\n", count: 300) + "\r\n",
    "GET / HTTP/1.1\r\n" + String(repeating: "h", count: 70_000),
    String(repeating: "\u{01}", count: 5_000),
  ]

  @Test("Malformed HTTP neither stops nor blocks the server")
  func malformedHTTP() throws {
    var limits = WebServerLimits.patient
    limits.requestTimeout = .seconds(1)
    let server = try TestServer(limits: limits)
    for text in Self.malformed {
      let client = try RawClient(port: server.port)
      client.send(text)
      // Half a request stays open; the others are answered or closed, with whatever the library finds fit.
      client.shutdownSending()
      let answer = client.readToEnd()
      #expect(!answer.starts(with: Array("HTTP/1.1 101".utf8)))
      try expectAlive(server, "after \(text.prefix(60).debugDescription)")
    }
    // Cut at every prefix of a valid upgrade.
    let valid = Array(RawClient.upgradeRequest("/ws?a=b").utf8)
    for count in stride(from: 1, to: valid.count, by: 7) {
      let client = try RawClient(port: server.port)
      client.send(Array(valid[..<count]))
    }
    try expectAlive(server, "after prefixes")
  }

  @Test("An upgrade without key, host, version 13 or with a body method is refused as HTTP")
  func malformedUpgrades() throws {
    let server = try TestServer()
    let valid = RawClient.upgradeRequest("/ws")
    let cases: [(String, String, Int)] = [
      ("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "", 400), ("Host: localhost\r\n", "", 400),
      ("Version: 13", "Version: 8", 426),
      ("Connection: keep-alive, Upgrade\r\n", "Connection: close\r\n", 400),
      ("GET /ws", "POST /ws", 400),
    ]
    for (old, new, status) in cases {
      let client = try RawClient(port: server.port)
      client.send(valid.replacing(old, with: new))
      #expect(client.response().status == status, "\(old) -> \(new)")
    }
    #expect(server.handler.log.withLock { $0.sockets.count } == 0)
  }

  @Test("Broken frames end their connection with the right code, and only theirs")
  func brokenFrames() async throws {
    var limits = WebServerLimits.patient
    limits.messageByteCount = 100_000
    let server = try TestServer(limits: limits)
    let witness = try RawClient(port: server.port)
    #expect(witness.upgrade())
    let huge: [UInt8] = [0x82, 0xff, 0x3f, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4]
    let cases: [([UInt8], UInt16?)] = [
      (RawClient.frame(2, [UInt8](repeating: 0, count: 100_001)), 1_009),
      (huge + [UInt8](repeating: 7, count: 200_000), 1_009),
      (
        RawClient.frame(2, [UInt8](repeating: 0, count: 60_000), final: false)
          + RawClient.frame(0, [UInt8](repeating: 0, count: 60_000)), 1_009
      ),
      (RawClient.frame(1, [0xff, 0xfe]), 1_007), (RawClient.frame(3, [1]), 1_002),
      (RawClient.frame(0, [1]), 1_002),
      ([0xf2, 0x81, 1, 2, 3, 4, 5], 1_002), ([0x89, 0xfe, 0, 200], nil), ([0x09, 0x80, 1, 2, 3, 4], 1_002),
      (RawClient.frame(2, [1], final: false) + RawClient.frame(2, [1]), 1_002), ([0x82, 0xff, 0x80], nil),
    ]
    for (bytes, code) in cases {
      let client = try RawClient(port: server.port)
      #expect(client.upgrade())
      client.send(bytes)
      var last: UInt16?
      while let frame = client.readFrame() {
        guard frame.opcode == 8, frame.payload.count >= 2 else { continue }
        last = UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1])
        client.shutdownSending()
      }
      if let code { #expect(last == code, "\(bytes.prefix(16))") }
    }
    // Half frames, and an end in the middle.
    for half in [[0x82], [0x82, 0x85], [0x82, 0x85, 1, 2, 3, 4, 9], [0x82, 0xfe, 1], [0x88]] as [[UInt8]] {
      let client = try RawClient(port: server.port)
      #expect(client.upgrade())
      client.send(half)
    }
    await server.handler.wait { $0.closures.count >= 16 }
    #expect(server.handler.log.withLock { $0.received.isEmpty })
    // The library reads unmasked frames as it reads masked ones (RFC 6455 §5.1 wants the connection failed).
    let unmasked = try RawClient(port: server.port)
    #expect(unmasked.upgrade())
    unmasked.send(RawClient.frame(2, [1, 2, 3], masked: false))
    _ = unmasked.readFrame()
    witness.send(RawClient.frame(2, [42]))
    #expect(witness.readFrame()?.payload == [42])
  }

  @Test("200 connections at once are served, and what comes above the limit is closed")
  func manyConnections() async throws {
    var limits = WebServerLimits.patient
    limits.connectionCount = 200
    let server = try TestServer(limits: limits)
    var clients: [RawClient] = []
    for _ in 0..<200 {
      let client = try RawClient(port: server.port)
      #expect(client.upgrade())
      clients.append(client)
    }
    let surplus = try RawClient(port: server.port)
    surplus.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(surplus.readToEnd().isEmpty)
    for (number, client) in clients.enumerated() { client.send(RawClient.frame(2, [UInt8(number)])) }
    for (number, client) in clients.enumerated() { #expect(client.readFrame()?.payload == [UInt8(number)]) }
    clients = []
    await server.handler.wait { $0.closures.count == 200 }
    try expectAlive(server, "after all have gone")
  }

  @Test("A client that does not read is ended when its queue is full; others are not held up")
  func slowReader() async throws {
    var limits = WebServerLimits.patient
    limits.sendQueueByteCount = 1 << 20
    let server = try TestServer(limits: limits)
    let slow = try RawClient(port: server.port, receiveBuffer: 4_096)
    #expect(slow.upgrade())
    await server.handler.wait { $0.opened == 1 }
    let socket = server.handler.log.withLock { $0.sockets[0] }
    let payload = [UInt8](repeating: 1, count: 50_000)
    var accepted = 0
    while socket.send(binary: payload) {
      accepted += 1
      #expect(socket.queuedByteCount <= 1 << 20)
      try #require(accepted < 10_000)
    }
    await server.handler.wait { $0.closures.count == 1 }
    #expect(socket.queuedByteCount == 0 && !socket.send(binary: [1]))
    try expectAlive(server, "after a slow reader")
  }

  @Test("A request that never ends is answered with 408 after its time, a connection without one is closed")
  func slowRequest() throws {
    var limits = WebServerLimits.patient
    limits.requestTimeout = .seconds(1)
    let server = try TestServer(limits: limits)
    let clients = try ["", "GET / HTTP/1.1\r\nHost: ", "POST /body HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"]
      .map {
        let client = try RawClient(port: server.port)
        client.send($0)
        return client
      }
    for (client, status) in zip(clients, [0, 408, 408]) {
      #expect(client.response().status == status)
      #expect(client.readToEnd().isEmpty)
    }
  }
}
