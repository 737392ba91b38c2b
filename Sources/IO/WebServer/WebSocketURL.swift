/// A ws:// or wss:// address, cut into what a connection needs.
@_spi(Testing) public struct WebSocketURL: Hashable, Sendable {
  @_spi(Testing) public var isSecure: Bool
  /// Without brackets.
  var host: String
  var port: UInt16
  /// Path and query as they go into the request line; at least "/".
  @_spi(Testing) public var target: String

  /// The Host header.
  @_spi(Testing) public var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// Nil for another scheme, a missing host, user information, a bad port, brackets that hold no IPv6 address, or characters no request line
  /// may hold.
  @_spi(Testing) public init?(_ text: String) {
    guard text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else { return nil }
    let rest: Substring
    if text.lowercased().hasPrefix("ws://") {
      isSecure = false
      rest = text.dropFirst(5)
    } else if text.lowercased().hasPrefix("wss://") {
      isSecure = true
      rest = text.dropFirst(6)
    } else {
      return nil
    }
    let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
    var authority = rest[..<end]
    guard !authority.contains("@") else { return nil }
    let tail = rest[end...].prefix { $0 != "#" }
    target = tail.first == "/" ? String(tail) : "/" + tail
    var portText: Substring?
    if authority.first == "[" {
      guard let close = authority.firstIndex(of: "]") else { return nil }
      let after = authority[authority.index(after: close)...]
      guard after.isEmpty || after.first == ":" else { return nil }
      portText = after.isEmpty ? nil : after.dropFirst()
      authority = authority[authority.index(after: authority.startIndex)..<close]
      guard authority.contains(":") else { return nil }
    } else if let colon = authority.firstIndex(of: ":") {
      portText = authority[authority.index(after: colon)...]
      authority = authority[..<colon]
      guard portText?.contains(":") == false else { return nil }
    }
    guard !authority.isEmpty, !authority.contains(where: { $0 == "[" || $0 == "]" }) else { return nil }
    host = String(authority)
    if let portText, !portText.isEmpty {
      guard portText.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let port = UInt16(portText), port > 0 else {
        return nil
      }
      self.port = port
    } else {
      port = isSecure ? 443 : 80
    }
  }
}
