import CPalbeLinux
import Glibc
import PalbeUnits
import PalbeWebServer

/// A client that sends whatever a test wants: its own HTTP and frames over a blocking TCP socket.
final class RawClient {
  private(set) var descriptor: Int32

  /// The receive limit only ends a test that would hang.
  convenience init(port: UInt16, ipv6: Bool = false, receiveBuffer: Int32? = nil) throws {
    self.init(ipv6: ipv6, receiveBuffer: receiveBuffer)
    try connect(port: port, ipv6: ipv6)
  }

  /// Holds a descriptor, and is not connected yet.
  init(ipv6: Bool = false, receiveBuffer: Int32? = nil) {
    descriptor = palbe_tcp_socket(ipv6 ? 1 : 0)
    if var size = receiveBuffer { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, 4) }
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  func connect(port: UInt16, ipv6: Bool = false) throws {
    var storage = sockaddr_storage()
    let length = palbe_address_encode(
      &storage, ipv6 ? 1 : 0, ipv6 ? 0 : 0x7f00_0001 << 32, ipv6 ? 1 : 0, port, 0)
    guard palbe_connect(descriptor, &storage, length) == 0 else { throw TestError.noConnection(errno) }
  }

  deinit { close(descriptor) }

  enum TestError: Error { case noConnection(Int32) }

  /// False when the server has closed.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var offset = 0
    while offset < bytes.count {
      let sent = bytes[offset...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard sent > 0 else { return false }
      offset += sent
    }
    return true
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Says that nothing more will be sent; reading goes on.
  func shutdownSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Ends as a program that crashed: what is on the way is lost.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
    descriptor = -1
  }

  /// At most `count` bytes; empty at the end of the stream.
  func read(_ count: Int = 65_536) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, read in
      read = max(0, recv(descriptor, buffer.baseAddress, count, 0))
    }
  }

  func read(exactly count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = read(count - bytes.count)
      if more.isEmpty { break }
      bytes += more
    }
    return bytes
  }

  /// All until the server closes.
  func readToEnd() -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let more = read()
      if more.isEmpty { return bytes }
      bytes += more
    }
  }

  /// Status, head and body of an answer, as long as it says it is.
  func response(toHead isHead: Bool = false) -> (status: Int, head: String, body: String) {
    var head: [UInt8] = []
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      let byte = read(1)
      if byte.isEmpty { return (0, String(decoding: head, as: UTF8.self), "") }
      head += byte
    }
    let text = String(decoding: head.dropLast(4), as: UTF8.self)
    let parts = text.split(separator: " ", maxSplits: 2)
    let length = text.split(separator: "\r\n").first { $0.hasPrefix("content-length: ") }
    let count = isHead ? 0 : length.flatMap { Int($0.dropFirst(16)) } ?? 0
    return (
      parts.count > 1 ? Int(parts[1]) ?? 0 : 0, text, String(decoding: read(exactly: count), as: UTF8.self)
    )
  }

  /// Upgrades; true when a 101 comes, of which not a byte too much is read.
  func upgrade(_ target: String = "/ws", headers: String = "") -> Bool {
    send(Self.upgradeRequest(target, headers: headers))
    var head: [UInt8] = []
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      let byte = read(1)
      if byte.isEmpty { return false }
      head += byte
    }
    let text = String(decoding: head, as: UTF8.self)
    // The accept value of RFC 6455 §1.3 for this key.
    return text.hasPrefix("HTTP/1.1 101 ") && text.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  }

  static func upgradeRequest(_ target: String, headers: String = "") -> String {
    "GET \(target) HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\(headers)\r\n"
  }

  /// A frame with a true length, masked unless told otherwise.
  static func frame(_ opcode: UInt8, _ payload: [UInt8], final: Bool = true, masked: Bool = true) -> [UInt8] {
    var bytes: [UInt8] = [(final ? 0x80 : 0) | opcode]
    let flag: UInt8 = masked ? 0x80 : 0
    if payload.count < 126 {
      bytes.append(flag | UInt8(payload.count))
    } else if payload.count < 65_536 {
      bytes += [flag | 126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
    } else {
      bytes.append(flag | 127)
      bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
    }
    guard masked else { return bytes + payload }
    let key: [UInt8] = [1, 2, 3, 4]
    return bytes + key + payload.enumerated().map { $1 ^ key[$0 & 3] }
  }

  /// The next frame of the server: opcode and payload; nil at the end of the stream.
  ///
  /// Pings are answered and passed over, as on a busy machine one may come at any time, unless the test is about them.
  func readFrame(answeringPings: Bool = true) -> (opcode: UInt8, payload: [UInt8])? {
    while let frame = readAnyFrame() {
      guard answeringPings, frame.opcode == 9 else { return frame }
      send(Self.frame(10, frame.payload))
    }
    return nil
  }

  private func readAnyFrame() -> (opcode: UInt8, payload: [UInt8])? {
    let head = read(exactly: 2)
    guard head.count == 2 else { return nil }
    var length = Int(head[1] & 0x7f)
    if length >= 126 { length = read(exactly: length == 126 ? 2 : 8).reduce(0) { $0 << 8 | Int($1) } }
    let payload = read(exactly: length)
    return payload.count == length ? (head[0] & 0x0f, payload) : nil
  }
}
