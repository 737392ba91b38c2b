/// The frames of RFC 6455 §5 as a client reads and writes them. Pure: bytes in, messages out.
///
/// Overview: `append` takes bytes as the network cuts them; `next` gives whole messages and control frames.
/// Memory is
/// bounded by the message limit plus what one read brings, whatever lengths the peer claims.
@_spi(Testing) public struct WebSocketFrameReader: Sendable {
  /// What was read.
  @_spi(Testing) public enum Event: Hashable, Sendable {
    case message(WebSocketMessage)
    case ping([UInt8])
    case pong([UInt8])
    case close(WebSocketClosure)
  }

  /// Why a connection must be failed, and the status code to tell the peer.
  @_spi(Testing) public enum Failure: Error, Hashable, Sendable {
    /// 1002: reserved bits, an unknown opcode, a masked frame, a broken fragmentation or control frame.
    case protocolError
    /// 1007: text that is not UTF-8.
    case invalidText
    /// 1009: longer than the limit.
    case tooLong

    var code: UInt16 {
      switch self {
      case .protocolError: 1_002
      case .invalidText: 1_007
      case .tooLong: 1_009
      }
    }
  }

  private struct Header {
    var isFinal: Bool
    var opcode: UInt8
    var payload: Range<Int>
  }

  private let messageByteLimit: Int
  private var buffer: [UInt8] = []
  private var first = 0
  private var message: [UInt8] = []
  /// The opcode of the message whose fragments are on their way.
  private var fragmented: UInt8?

  /// - Parameter messageByteLimit: of a message, its fragments together.
  @_spi(Testing) public init(messageByteLimit: Int) { self.messageByteLimit = messageByteLimit }

  /// Takes bytes. Call `next` until nil after each call: what is not read stays.
  @_spi(Testing) public mutating func append(_ bytes: some Collection<UInt8>) {
    if first > 0 {
      buffer.removeFirst(first)
      first = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next message or control frame, or nil when more bytes are needed.
  @_spi(Testing) public mutating func next() throws(Failure) -> Event? {
    while let header = try nextHeader() {
      guard header.payload.upperBound <= buffer.count else { return nil }
      let payload = buffer[header.payload]
      first = header.payload.upperBound
      switch header.opcode {
      case 8:
        guard payload.count != 1 else { throw .protocolError }
        return .close(WebSocketClosure(payload: payload))
      case 9: return .ping(Array(payload))
      case 10: return .pong(Array(payload))
      default: break
      }
      if header.opcode != 0 { fragmented = header.opcode }
      message.append(contentsOf: payload)
      guard header.isFinal, let opcode = fragmented else { continue }
      let whole = message
      message = []
      fragmented = nil
      guard opcode == 1 else { return .message(.binary(whole)) }
      guard let text = String(validating: whole, as: UTF8.self) else { throw .invalidText }
      return .message(.text(text))
    }
    return nil
  }

  private func nextHeader() throws(Failure) -> Header? {
    let available = buffer.count - first
    guard available >= 2 else { return nil }
    let isFinal = buffer[first] & 0x80 != 0
    let opcode = buffer[first] & 0x0f
    let short = Int(buffer[first + 1] & 0x7f)
    let isControl = opcode >= 8
    guard buffer[first] & 0x70 == 0, buffer[first + 1] & 0x80 == 0, [0, 1, 2, 8, 9, 10].contains(opcode),
      !isControl || (isFinal && short <= 125),
      isControl || (opcode == 0) == (fragmented != nil)
    else { throw .protocolError }
    let extra = short == 126 ? 2 : short == 127 ? 8 : 0
    guard available >= 2 + extra else { return nil }
    var length = UInt64(short)
    if extra > 0 {
      length = buffer[first + 2..<first + 2 + extra].reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard isControl || length <= UInt64(max(0, messageByteLimit - message.count)) else { throw .tooLong }
    let start = first + 2 + extra
    return Header(isFinal: isFinal, opcode: opcode, payload: start..<start + Int(length))
  }
}

/// Frames of a client, each masked (RFC 6455 §5.3).
enum WebSocketFrameWriter {
  enum Opcode: UInt8 { case text = 1, binary = 2, close = 8, ping = 9, pong = 10 }

  static func frame(_ opcode: Opcode, _ payload: some Collection<UInt8>, mask: UInt32) -> [UInt8] {
    var bytes: [UInt8] = [0x80 | opcode.rawValue]
    bytes.reserveCapacity(payload.count + 14)
    switch payload.count {
    case 0...125: bytes.append(0x80 | UInt8(payload.count))
    case 126...65_535:
      bytes += [0x80 | 126, UInt8(payload.count >> 8), UInt8(truncatingIfNeeded: payload.count)]
    default:
      bytes.append(0x80 | 127)
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: payload.count >> shift))
      }
    }
    let key = (0..<4).map { UInt8(truncatingIfNeeded: mask >> (24 - 8 * UInt32($0))) }
    bytes += key
    var index = 0
    for byte in payload {
      bytes.append(byte ^ key[index & 3])
      index += 1
    }
    return bytes
  }

  static func close(_ request: SendQueue.Close, mask: UInt32) -> [UInt8] {
    // 1005 and 1006 stand for "no code" and are never on the wire.
    guard request.code != 1_005, request.code != 1_006 else { return frame(.close, [], mask: mask) }
    let code = [UInt8(request.code >> 8), UInt8(truncatingIfNeeded: request.code)]
    return frame(.close, code + request.reason.utf8.prefix(123), mask: mask)
  }
}
