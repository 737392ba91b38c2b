/// The same connection as a WebSocket, blocking.
extension HTTPConnection {
  /// Asks to speak WebSocket; the answer is 101 when that is so.
  public func upgrade(_ target: String, headers: [(String, String)]) throws -> Answer {
    disconnect()
    var head = "GET \(target) HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n"
    head += "sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-version: 13\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    try write(Array((head + "\r\n").utf8))
    return try answer()
  }

  /// Sends a text message; its mask is of zeros.
  public func send(frame text: String) throws { try write(Self.frame(0x81, Array(text.utf8))) }

  /// The next text message; answers pings on the way. Throws `Broken` when the server closes.
  public func nextFrame() throws -> String {
    while true {
      while buffer.count < 2 { try read() }
      let (opcode, short) = (buffer[0] & 15, Int(buffer[1] & 0x7f))
      let extra = short == 126 ? 2 : short == 127 ? 8 : 0
      while buffer.count < 2 + extra { try read() }
      let count = extra == 0 ? short : buffer[2..<2 + extra].reduce(0) { $0 << 8 | Int($1) }
      while buffer.count < 2 + extra + count { try read() }
      let payload = Array(buffer[(2 + extra)..<(2 + extra + count)])
      buffer.removeFirst(2 + extra + count)
      switch opcode {
      case 1: return String(decoding: payload, as: UTF8.self)
      case 8: throw Broken()
      case 9: try write(Self.frame(0x8a, payload))
      default: break
      }
    }
  }

  private static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
    let length: [UInt8]
    switch payload.count {
    case ..<126: length = [0x80 | UInt8(payload.count)]
    case ..<65_536: length = [0xfe, UInt8(payload.count >> 8), UInt8(truncatingIfNeeded: payload.count)]
    default:
      length =
        [0xff] + stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: payload.count >> $0) }
    }
    return [first] + length + [0, 0, 0, 0] + payload
  }
}
