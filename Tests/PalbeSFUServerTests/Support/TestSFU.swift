import CPalbeLinux
import Glibc
import PalbeServerObservation
import PalbeUnits

@testable import PalbeSFUServer

extension SFUServer {
  /// On any free ports of loopback, silent.
  static func onLoopback(
    workers: Int = 2, _ change: (inout Configuration) -> Void = { _ in }
  ) throws -> SFUServer {
    var configuration = Configuration(keys: [Tokens.key: Tokens.secret])
    configuration.host = SocketAddress(ipv4: 127, 0, 0, 1, port: 0)
    configuration.port = 0
    configuration.udpPort = 0
    configuration.workerCount = workers
    // Nobody reads a full log in a test; errors only.
    configuration.log = ServerLog(level: .warning)
    change(&configuration)
    return try SFUServer(configuration)
  }

  var url: String { "ws://127.0.0.1:\(signalingAddress.port)" }
}

/// HTTP as bytes over a blocking TCP socket.
enum HTTP {
  struct Answer {
    var status: Int
    var head: String
    var body: String
    var bytes: [UInt8] = []
  }

  static let upgradeHeaders =
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

  /// Sends one request and reads the answer: all of it, or its head when the server switches protocols.
  static func ask(
    _ port: UInt16, _ target: String, method: String = "GET", headers: String = "", body: String = "",
    upgrades: Bool = false
  ) -> Answer {
    let descriptor = palbe_tcp_socket(0)
    defer { close(descriptor) }
    // Only ends a test that would hang.
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var storage = sockaddr_storage()
    let length = palbe_address_encode(&storage, 0, 0x7f00_0001 << 32, 0, port, 0)
    guard palbe_connect(descriptor, &storage, length) == 0 else {
      return Answer(status: 0, head: "", body: "")
    }
    let text =
      "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
      + (upgrades ? upgradeHeaders : "Connection: close\r\n")
      + headers + "\r\n" + body
    var request = Array(text.utf8)[...]
    while !request.isEmpty {
      let sent = request.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { break }
      request = request.dropFirst(sent)
    }
    var bytes = [UInt8]()
    var chunk = [UInt8](repeating: 0, count: 16_384)
    while true {
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 else { break }
      bytes += chunk[..<count]
      if bytes.starts(with: "HTTP/1.1 101".utf8) { break }
    }
    let answer = String(decoding: bytes, as: UTF8.self)
    guard let gap = answer.firstRange(of: "\r\n\r\n") else {
      return Answer(status: 0, head: answer, body: "")
    }
    let words = answer.split(separator: " ", maxSplits: 2)
    return Answer(
      status: words.count > 1 ? Int(words[1]) ?? 0 : 0, head: String(answer[..<gap.lowerBound]).lowercased(),
      body: String(answer[gap.upperBound...]),
      bytes: bytes.firstRange(of: Array("\r\n\r\n".utf8)).map { Array(bytes[$0.upperBound...]) } ?? [])
  }
}
