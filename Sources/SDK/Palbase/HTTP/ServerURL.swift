import Foundation

/// Where the server is: scheme, host, port and perhaps a path before `/v1`.
package struct ServerURL: Sendable, Hashable {
  /// Without a slash at the end.
  package let text: String
  package let isSecure: Bool

  /// Nil unless `text` is an http or https address of a host, without user, query or fragment.
  package init?(_ text: String) {
    guard let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty,
      parts.scheme == "https" || parts.scheme == "http", parts.user == nil, parts.password == nil,
      parts.query == nil, parts.fragment == nil,
      text.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: "\\") })
    else { return nil }
    isSecure = parts.scheme == "https"
    self.text = text.hasSuffix("/") ? String(text.dropLast()) : text
  }

  /// Tokens may go there: it is this machine, or the way is encrypted.
  package var isConfidential: Bool {
    let host = URLComponents(string: text)?.host?.trimmingCharacters(in: ["[", "]"]) ?? ""
    return isSecure || host == "localhost" || host == "::1"
      || host.hasPrefix("127.") && host.split(separator: ".").count == 4
        && host.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (48...57).contains($0) }
  }

  /// The address of a route. `path` begins with a slash and is encoded already; the query is encoded here.
  package func route(_ path: String, _ query: [(String, String)] = []) -> String {
    var address = text + path
    for (index, item) in query.enumerated() {
      address += index == 0 ? "?" : "&"
      address += "\(Self.encode(item.0))=\(Self.encode(item.1))"
    }
    return address
  }

  /// An address that the server gave, absolute or from its root; nil for one that tokens or files must not go to.
  package func resolve(_ address: String) -> String? {
    if address.hasPrefix("/"), !address.hasPrefix("//") {
      guard let parts = URLComponents(string: text), let host = parts.host else { return nil }
      return "\(isSecure ? "https" : "http")://\(host)\(parts.port.map { ":\($0)" } ?? "")\(address)"
    }
    guard let parts = URLComponents(string: address), parts.host?.isEmpty == false,
      parts.scheme == "https" || parts.scheme == "http" && !isSecure
    else { return nil }
    return address
  }

  /// The address of the realtime socket.
  package var realtime: String {
    (isSecure ? "wss" : "ws") + text.dropFirst(isSecure ? 5 : 4) + "/v1/realtime"
  }

  /// RFC 3986 §2.3: everything but the unreserved characters.
  package static func encode(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case 48...57, 65...90, 97...122, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += "%" + (digits.count == 1 ? "0" : "") + digits
      }
    }
    return result
  }
}
