import Foundation
import Glibc

/// A blocking HTTP/1.1 client over one kept connection to 127.0.0.1, for threads of tests.
public final class HTTPConnection {
  /// A whole answer.
  public struct Answer: Sendable {
    public var status: Int
    /// Names in lower case.
    public var headers: [String: String]
    public var body: [UInt8]

    /// An answer.
    public init(status: Int, headers: [String: String], body: [UInt8]) {
      self.status = status
      self.headers = headers
      self.body = body
    }

    /// The body as a JSON object; empty where it is none.
    public var json: [String: Any] {
      (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
    }
    /// The `code` of a refusal.
    public var code: String? { json["code"] as? String }
  }

  /// No whole answer came: whether the request was carried out is unknown.
  public struct Broken: Error { public init() {} }

  private let port: UInt16
  private let seconds: Int
  private let receiveByteCount: Int32?
  private var descriptor: Int32 = -1
  var buffer: [UInt8] = []

  /// Connects at the first request.
  /// - Parameter receiveByteCount: what the kernel keeps of what is not read; nil is its own choice.
  public init(port: UInt16, timeout seconds: Int = 60, receiveByteCount: Int32? = nil) {
    self.receiveByteCount = receiveByteCount
    self.port = port
    self.seconds = seconds
  }

  deinit { disconnect() }

  /// Ends the connection; the next request makes another.
  public func disconnect() {
    if descriptor >= 0 { close(descriptor) }
    descriptor = -1
    buffer = []
  }

  /// Asks, and waits for the answer.
  public func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws -> Answer {
    do {
      if descriptor < 0 { try connect() }
      var head = "\(method) \(target) HTTP/1.1\r\nhost: localhost\r\n"
      for (name, value) in headers { head += "\(name): \(value)\r\n" }
      if let body { head += "content-length: \(body.count)\r\n" }
      try write(Array((head + "\r\n").utf8) + (body ?? []))
      return try answer(hasBody: method != "HEAD")
    } catch {
      disconnect()
      throw error
    }
  }

  /// Writes bytes as they are; for tests of what is no request.
  public func write(_ bytes: [UInt8]) throws {
    if descriptor < 0 { try connect() }
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Broken() }
      sent += count
    }
  }

  /// The next answer on the connection.
  public func answer(hasBody: Bool = true) throws -> Answer {
    var end: Int?
    var from = 0
    while end == nil {
      end = endOfHead(from: from)
      if end == nil {
        from = max(0, buffer.count - 3)
        try read()
      }
    }
    let head = String(decoding: buffer[..<(end ?? 0)], as: UTF8.self).components(separatedBy: "\r\n")
    buffer.removeFirst((end ?? 0) + 4)
    let status = Int(head[0].split(separator: " ").dropFirst().first ?? "") ?? 0
    var headers: [String: String] = [:]
    for line in head.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      guard parts.count == 2 else { continue }
      headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    let count = hasBody ? Int(headers["content-length"] ?? "0") ?? 0 : 0
    while buffer.count < count { try read() }
    let body = Array(buffer.prefix(count))
    buffer.removeFirst(count)
    if headers["connection"]?.lowercased() == "close" { disconnect() }
    return Answer(status: status, headers: headers, body: body)
  }

  private func endOfHead(from start: Int) -> Int? {
    guard buffer.count >= 4 else { return nil }
    for index in start...buffer.count - 4
    where buffer[index] == 13 && buffer[index + 1] == 10 && buffer[index + 2] == 13
      && buffer[index + 3] == 10
    {
      return index
    }
    return nil
  }

  func read() throws {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = recv(descriptor, &bytes, bytes.count, 0)
    guard count > 0 else { throw Broken() }
    buffer += bytes.prefix(count)
  }

  private func connect() throws {
    buffer = []
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw Broken() }
    if var count = receiveByteCount {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &count, 4)
    }
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard code == 0 else { throw Broken() }
  }
}
