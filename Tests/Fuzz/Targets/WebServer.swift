@_spi(Testing) import PalbeWebServer

extension FuzzTarget {
  /// What a server sends to a client after the upgrade; the first byte is the size of the pieces it comes in.
  static let webSocketFrames = FuzzTarget(name: "websocket-frames") { bytes in
    guard let first = bytes.first else { return }
    let step = Int(first) + 1
    var reader = WebSocketFrameReader(messageByteLimit: 4_096)
    var offset = 1
    while offset < bytes.count {
      let end = min(bytes.count, offset + step)
      reader.append(bytes[offset..<end])
      do { while let event = try reader.next() { check(event) } } catch { return }
      offset = end
    }
  }

  private static func check(_ event: WebSocketFrameReader.Event) {
    switch event {
    case .message(.binary(let bytes)): precondition(bytes.count <= 4_096)
    case .message(.text(let text)): precondition(text.utf8.count <= 4_096)
    case .ping(let bytes), .pong(let bytes): precondition(bytes.count <= 125)
    case .close(let closure): precondition(closure.code == 1_005 || closure.reason.utf8.count <= 3 * 123)
    }
  }

  /// What a server answers to an upgrade; the first byte is the size of the pieces it comes in.
  static let upgradeResponse = FuzzTarget(name: "upgrade-response") { bytes in
    guard let first = bytes.first else { return }
    let step = Int(first) + 1
    var reader = UpgradeResponseReader()
    var offset = 1
    while offset < bytes.count {
      let end = min(bytes.count, offset + step)
      if reader.append(bytes[offset..<end]) != nil { return }
      offset = end
    }
    _ = reader.finish()
  }

  /// What parses must print and parse again to the same address, and fit into one request line.
  static let webSocketURL = FuzzTarget(name: "websocket-url") { bytes in
    guard let url = WebSocketURL(String(decoding: bytes, as: UTF8.self)) else { return }
    precondition(
      url.target.hasPrefix("/") && (url.authority + url.target).utf8.allSatisfy { $0 > 32 && $0 < 127 })
    let again = WebSocketURL("\(url.isSecure ? "wss" : "ws")://\(url.authority)\(url.target)")
    precondition(again == url, "\(url) does not round-trip")
  }

  /// A `Range` and a `Content-Range` header: what they give lies within what there is. The first byte is the size.
  static let httpRange = FuzzTarget(name: "http-range") { bytes in
    guard let first = bytes.first else { return }
    let text = String(decoding: bytes.dropFirst(), as: UTF8.self)
    if case .part(let range) = HTTPRange(text, count: Int64(first)) {
      precondition(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= Int64(first))
    }
    guard let part = HTTPContentRange(text) else { return }
    precondition(!part.range.isEmpty && part.range.lowerBound >= 0)
    precondition(part.count.map { part.range.upperBound <= $0 } ?? true)
  }
}
