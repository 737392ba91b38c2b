/// A ws:// or wss:// address, cut into what a connection needs.
struct WebSocketURL: Hashable, Sendable {
  var isSecure: Bool
  /// Without brackets.
  var host: String
  var port: UInt16
  /// Path and query as they go into the request line; at least "/".
  var target: String

  /// The Host header.
  var authority: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// Nil for another scheme, a missing host, user information, a bad port, or characters no request line
  /// may hold.
  init?(_ text: String) {
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
    } else if let colon = authority.firstIndex(of: ":") {
      portText = authority[authority.index(after: colon)...]
      authority = authority[..<colon]
      guard portText?.contains(":") == false else { return nil }
    }
    guard !authority.isEmpty else { return nil }
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
