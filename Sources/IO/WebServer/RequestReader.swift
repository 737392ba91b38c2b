import CPalbeLinux
import CPalbeWebSockets
import Glibc
import PalbeEventLoop
import PalbeUnits

/// Copies a request out of the library's header table, which lives only during a callback.
struct RequestReader {
  private let identity: OpaquePointer
  private let limits: WebServerLimits
  private let peer: SocketAddress

  init(_ identity: OpaquePointer, _ limits: WebServerLimits, peer: SocketAddress) {
    self.identity = identity
    self.limits = limits
    self.peer = peer
  }

  /// - Parameter path: what the callback was given; nil asks the library.
  func read(path: UnsafeRawBufferPointer?) -> HTTPRequest {
    let (method, token) = method()
    let text: String
    if let path { text = String(decoding: path, as: UTF8.self) } else { text = token.map(value) ?? "/" }
    return HTTPRequest(
      method: method, path: text, query: query(), headers: headers(), remoteAddress: peer)
  }

  private func method() -> (String, lws_token_indexes?) {
    let methods: [(lws_token_indexes, String)] = [
      (WSI_TOKEN_GET_URI, "GET"), (WSI_TOKEN_POST_URI, "POST"), (WSI_TOKEN_OPTIONS_URI, "OPTIONS"),
      (WSI_TOKEN_PUT_URI, "PUT"), (WSI_TOKEN_PATCH_URI, "PATCH"), (WSI_TOKEN_DELETE_URI, "DELETE"),
      (WSI_TOKEN_HEAD_URI, "HEAD"),
    ]
    for (token, name) in methods where lws_hdr_total_length(identity, token) > 0 { return (name, token) }
    return ("UNKNOWN", nil)
  }

  /// Whether a request line was read.
  var hasMethod: Bool { method().1 != nil }

  private func value(_ token: lws_token_indexes) -> String {
    let length = Int(lws_hdr_total_length(identity, token))
    guard length > 0 else { return "" }
    // Fragments are joined by one character each; the library reports how much it wrote.
    return text(capacity: length + 64) { lws_hdr_copy(identity, $0, $1, token) }
  }

  private func query() -> [HTTPRequest.Field] {
    var items: [HTTPRequest.Field] = []
    var index: Int32 = 0
    while true {
      let length = Int(lws_hdr_fragment_length(identity, WSI_TOKEN_HTTP_URI_ARGS, index))
      // An empty item ("a=1&&b=2") has length 0 as the end has; the count of fragments is bounded by the
      // library.
      let item = text(capacity: length + 1) {
        lws_hdr_copy_fragment(identity, $0, $1, WSI_TOKEN_HTTP_URI_ARGS, index)
      }
      guard length > 0 || isFragment(index) else { return items }
      index += 1
      guard !item.isEmpty else { continue }
      let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      items.append(.init(String(parts[0]), parts.count > 1 ? String(parts[1]) : ""))
    }
  }

  private func isFragment(_ index: Int32) -> Bool {
    var byte: CChar = 0
    return lws_hdr_copy_fragment(identity, &byte, 1, WSI_TOKEN_HTTP_URI_ARGS, index) >= 0
  }

  private func headers() -> [HTTPRequest.Field] {
    var fields: [HTTPRequest.Field] = []
    for index in 0..<Int32(WSI_TOKEN_COUNT.rawValue) {
      let token = lws_token_indexes(UInt32(index))
      guard lws_hdr_total_length(identity, token) > 0, let raw = palbe_lws_header_name(index) else {
        continue
      }
      var name = String(cString: raw)
      guard name.count > 1, name.removeLast() == ":", name.first != ":" else { continue }
      fields.append(.init(name, value(token)))
    }
    for name in limits.additionalHeaderNames + ["transfer-encoding"]
    where !fields.contains(where: { $0.name == name }) {
      let key = name + ":"
      let length = Int(lws_hdr_custom_length(identity, key, Int32(key.utf8.count)))
      guard length >= 0 else { continue }
      let value = text(capacity: length + 1) {
        lws_hdr_custom_copy(identity, $0, $1, key, Int32(key.utf8.count))
      }
      fields.append(.init(name, value))
    }
    return fields
  }

  /// Names that decide about a body, with white space before the colon (RFC 9112 §5.1): the library takes them for others, and
  /// who stands before this server may not.
  private static let spacedNames = ["content-length", "transfer-encoding"].flatMap { name in
    [" :", "\t:", "  :", "\t\t:", " \t:", "\t :"].map { name + $0 }
  }

  /// Whether a header that decides about a body has white space before its colon.
  var hasSpaceBeforeColon: Bool {
    Self.spacedNames.contains { lws_hdr_custom_length(identity, $0, Int32($0.utf8.count)) >= 0 }
  }

  private func text(capacity: Int, _ copy: (UnsafeMutablePointer<CChar>, Int32) -> Int32) -> String {
    let bytes = [UInt8](unsafeUninitializedCapacity: max(2, capacity)) { buffer, count in
      count = 0
      guard let base = buffer.baseAddress else { return }
      let written = base.withMemoryRebound(to: CChar.self, capacity: buffer.count) {
        copy($0, Int32(clamping: buffer.count))
      }
      count = min(max(0, Int(written)), buffer.count)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether the client wants and understands that the connection stays for another request (RFC 9112 §9.3).
  var wantsToStay: Bool {
    let version = value(WSI_TOKEN_HTTP).lowercased()
    let wishes = value(WSI_TOKEN_CONNECTION).lowercased()
    return version.hasSuffix("1.1") && !wishes.contains("close")
  }
}

/// The other end of a TCP connection; 0.0.0.0 when it is gone already.
func peerAddress(of descriptor: Int32) -> SocketAddress {
  var storage = sockaddr_storage()
  var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
  guard palbe_getpeername(descriptor, &storage, &length) == 0, let address = SocketAddress(&storage) else {
    return SocketAddress(ipv4: 0, 0, 0, 0, port: 0)
  }
  return address
}
