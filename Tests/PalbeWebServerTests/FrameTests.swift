import PalbeUnits
@_spi(Testing) import PalbeWebServer
import Testing

@Suite("WebSocket frames of the client")
struct FrameTests {
  typealias Reader = WebSocketFrameReader

  /// All events of `bytes`, given in pieces of `step`.
  private func read(_ bytes: [UInt8], step: Int = .max, limit: Int = 1_000) throws(Reader.Failure) -> [Reader
    .Event]
  {
    var reader = Reader(messageByteLimit: limit)
    var events: [Reader.Event] = []
    var offset = 0
    while offset < bytes.count {
      let end = min(bytes.count, offset + min(step, bytes.count))
      reader.append(bytes[offset..<end])
      while let event = try reader.next() { events.append(event) }
      offset = end
    }
    return events
  }

  /// RFC 6455 §5.7, what a server sends: "Hello" whole, in two fragments, with a ping between.
  private static let hello: [UInt8] = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]
  private static let fragmented: [UInt8] = [
    0x01, 0x03, 0x48, 0x65, 0x6c, 0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f, 0x80, 0x02, 0x6c, 0x6f,
  ]

  @Test("RFC 6455 §5.7: the examples, however the network cuts them", arguments: [1, 2, 3, 100])
  func examples(step: Int) throws {
    #expect(try read(Self.hello, step: step) == [.message(.text("Hello"))])
    #expect(try read(Self.fragmented, step: step) == [.ping(Array("Hello".utf8)), .message(.text("Hello"))])
    let medium = [0x82, 0x7e, 0x01, 0x00] + [UInt8](repeating: 7, count: 256)
    let large = [0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0] + [UInt8](repeating: 8, count: 65_536)
    #expect(
      try read(medium + large, step: step == 1 ? 97 : step * 1_000, limit: 65_536) == [
        .message(.binary([UInt8](repeating: 7, count: 256))),
        .message(.binary([UInt8](repeating: 8, count: 65_536))),
      ])
  }

  @Test("Every prefix of valid frames is waited for, none fails")
  func truncation() throws {
    let bytes = Self.hello + Self.fragmented + [0x88, 0x04, 0x03, 0xe8, 0x6f, 0x6b]
    for count in 0...bytes.count { _ = try read(Array(bytes[..<count])) }
    #expect(try read(bytes).last == .close(WebSocketClosure(code: 1_000, reason: "ok")))
    #expect(try read([0x88, 0]) == [.close(WebSocketClosure(code: 1_005))])
  }

  @Test("RFC 6455 §5: what a server must not send fails with its code")
  func failures() {
    let cases: [([UInt8], Reader.Failure)] = [
      ([0xc1, 0], .protocolError), ([0x83, 0], .protocolError), ([0x8b, 0], .protocolError),
      ([0x81, 0x85, 0, 0, 0, 0, 1, 2, 3, 4, 5], .protocolError), ([0x09, 0], .protocolError),
      ([0x89, 0x7e, 0, 126], .protocolError), ([0x80, 0], .protocolError),
      ([0x01, 0, 0x81, 0], .protocolError),
      ([0x88, 1, 3], .protocolError), ([0x81, 1, 0xff], .invalidText), ([0x82, 0x7e, 0x03, 0xe9], .tooLong),
      ([0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], .tooLong),
      ([0x02, 0x7e, 0x03, 0xe8] + [UInt8](repeating: 0, count: 1_000) + [0x80, 1, 0], .tooLong),
    ]
    for (bytes, failure) in cases {
      #expect(throws: failure, "\(bytes.prefix(12))") { try read(bytes) }
    }
  }

  @Test("The answer to an upgrade: a 101 with frames behind it, or a refusal with its body, at any cut")
  func upgradeResponse() {
    typealias Outcome = UpgradeResponseReader.Outcome
    func outcome(_ text: String, cut: Int) -> Outcome {
      var reader = UpgradeResponseReader()
      let bytes = Array(text.utf8)
      if let early = reader.append(bytes[..<min(cut, bytes.count)]) { return early }
      return reader.append(bytes[min(cut, bytes.count)...]) ?? reader.finish()
    }
    let accepted =
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept:  abc= \r\n\r\n"
    let cases: [(String, Outcome)] = [
      (accepted, .upgraded(accept: "abc=", rest: [])),
      (
        "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
        .refused(status: 401, body: Array("no".utf8))
      ),
      (
        "HTTP/1.0 404 Not Found\r\n\r\nuntil the end",
        .refused(status: 404, body: Array("until the end".utf8))
      ),
      (
        "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na;x=y\r\n0123456789\r\n0\r\n\r\n",
        .refused(status: 503, body: Array("abc0123456789".utf8))
      ),
      ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", .malformed),
      ("SSH-2.0-OpenSSH_9.2\r\n\r\n", .malformed), ("HTTP/1.1 2 OK\r\n\r\n", .malformed), ("", .malformed),
      ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", .malformed), ("HTTP/1.1 200 OK\r\n", .malformed),
      ("HTTP/1.1 404 x\r\nContent-Length: -4\r\n\r\nabc", .refused(status: 404, body: [])),
    ]
    for (text, expected) in cases {
      for cut in 0...text.utf8.count {
        let outcome = outcome(text, cut: cut)
        if case .refused(let status, _) = outcome, case .refused(let wanted, _) = expected,
          text.contains("-4")
        {
          #expect(status == wanted)
        } else {
          #expect(outcome == expected, "cut at \(cut)")
        }
      }
    }
    var reader = UpgradeResponseReader()
    #expect(reader.append(Array(accepted.utf8) + [0x82, 0]) == .upgraded(accept: "abc=", rest: [0x82, 0]))
    var endless = UpgradeResponseReader()
    #expect(endless.append([UInt8](repeating: 65, count: 70_000)) == .malformed)
  }

  @Test("Random and damaged bytes are refused or waited for, never trapped on")
  func damaged() {
    var random = RandomSource(seed: 7)
    let answers = [
      "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n",
      "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
    ].map { Array($0.utf8) }
    for round in 0..<4_000 {
      var frames = Self.fragmented + Self.hello
      var answer = answers[round & 1]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        frames[Int.random(in: 0..<frames.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        answer[Int.random(in: 0..<answer.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      _ = try? read(frames, step: Int.random(in: 1...20, using: &random))
      var reader = UpgradeResponseReader()
      if reader.append(answer) == nil { _ = reader.finish() }
    }
  }
}
