/// Reads the answer to an upgrade request, which is a 101 and then frames, or a refusal with a body.
@_spi(Testing) public struct UpgradeResponseReader: Sendable {
  /// What the server decided.
  @_spi(Testing) public enum Outcome: Hashable, Sendable {
    /// Frames follow; some may have come already.
    case upgraded(accept: String, rest: [UInt8])
    /// A true HTTP answer.
    case refused(status: Int, body: [UInt8])
    /// Not HTTP, or too long.
    case malformed
  }

  private static let headLimit = 65_536
  private static let bodyLimit = 65_536
  private var bytes: [UInt8] = []
  private var head: Head?

  private struct Head {
    var status: Int
    var fields: [HTTPRequest.Field]
    var end: Int

    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
  }

  /// Nothing read yet.
  @_spi(Testing) public init() {}

  /// Takes bytes; nil while more are needed.
  @_spi(Testing) public mutating func append(_ more: some Collection<UInt8>) -> Outcome? {
    // The blank line may be cut in two: look again from three bytes back.
    let start = max(0, bytes.count - 3)
    bytes.append(contentsOf: more)
    if head == nil {
      guard let end = endOfHead(from: start) else {
        return bytes.count > Self.headLimit ? .malformed : nil
      }
      guard let parsed = Self.parse(bytes[..<end], end: end + 4) else { return .malformed }
      head = parsed
    }
    guard let head else { return nil }
    if head.status == 101 {
      guard head.field("upgrade")?.lowercased() == "websocket",
        let accept = head.field("sec-websocket-accept")
      else { return .malformed }
      return .upgraded(accept: accept, rest: Array(bytes[head.end...]))
    }
    let isChunked = head.field("transfer-encoding") != nil
    let body = bytes[head.end...]
    let isComplete =
      if isChunked {
        body.suffix(5).elementsEqual("0\r\n\r\n".utf8)
      } else if let length = head.field("content-length").flatMap({ Int($0) }) {
        body.count >= length
      } else {
        head.status == 204 || head.status == 304
      }
    return isComplete || body.count >= Self.bodyLimit ? finish() : nil
  }

  /// The outcome when the connection ends here.
  @_spi(Testing) public func finish() -> Outcome {
    guard let head, head.status != 101 else { return .malformed }
    let raw = bytes[head.end...].prefix(Self.bodyLimit)
    if head.field("transfer-encoding") != nil {
      return .refused(status: head.status, body: Self.unchunked(raw))
    }
    let length = head.field("content-length").flatMap { Int($0) } ?? raw.count
    return .refused(status: head.status, body: Array(raw.prefix(max(0, length))))
  }

  private func endOfHead(from start: Int) -> Int? {
    guard bytes.count >= 4 else { return nil }
    var index = start
    while index + 4 <= bytes.count {
      if bytes[index] == 13, bytes[index + 1] == 10, bytes[index + 2] == 13, bytes[index + 3] == 10 {
        return index
      }
      index += 1
    }
    return nil
  }

  private static func parse(_ head: ArraySlice<UInt8>, end: Int) -> Head? {
    var lines = String(decoding: head, as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: false
    )
    .makeIterator()
    guard let statusLine = lines.next() else { return nil }
    let parts = statusLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, parts[0] == "HTTP/1.1" || parts[0] == "HTTP/1.0", parts[1].utf8.count == 3,
      let status = Int(parts[1]), (100...599).contains(status)
    else { return nil }
    var fields: [HTTPRequest.Field] = []
    while let line = lines.next() {
      guard let colon = line.firstIndex(of: ":") else { return nil }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      var text = String(value)
      while text.last == " " || text.last == "\t" { text.removeLast() }
      fields.append(.init(line[..<colon].lowercased(), text))
    }
    return Head(status: status, fields: fields, end: end)
  }

  /// The chunks' bytes (RFC 9112 §7.1), as far as they are well-formed.
  private static func unchunked(_ raw: ArraySlice<UInt8>) -> [UInt8] {
    var body: [UInt8] = []
    var rest = raw
    while let lineEnd = rest.firstIndex(of: 13) {
      let line = String(decoding: rest[..<lineEnd], as: UTF8.self).split(separator: ";").first ?? ""
      guard let size = Int(line, radix: 16), size > 0, size <= rest.endIndex - lineEnd else { break }
      let chunk = rest[lineEnd...].dropFirst(2)
      body += chunk.prefix(size)
      rest = chunk.dropFirst(size + 2)
    }
    return body
  }
}
