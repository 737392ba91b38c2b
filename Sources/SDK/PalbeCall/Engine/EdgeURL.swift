import Foundation
import Glibc
import PalbeUnits
import PalbeWire

/// An SFU's address.
@_spi(Testing) public struct EdgeURL: Sendable {
  /// Without brackets.
  @_spi(Testing) public let host: String
  @_spi(Testing) public let port: UInt16
  private let base: String

  /// Nil unless `text` is a `ws://` or `wss://` address with a host and without a query.
  @_spi(Testing) public init?(_ text: String) {
    guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
      scheme == "ws" || scheme == "wss", var host = parts.host, parts.user == nil,
      parts.query == nil, parts.fragment == nil
    else { return nil }
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    guard !host.isEmpty else { return nil }
    guard let port = UInt16(exactly: parts.port ?? (scheme == "wss" ? 443 : 80)), port > 0 else { return nil }
    self.host = host
    self.port = port
    base = String(text.reversed().drop { $0 == "/" }.reversed())
  }

  /// Where a call of the single-connection protocol begins.
  @_spi(Testing) public func signalingURL(joinRequest: [UInt8]) -> String {
    "\(base)/rtc/v1?join_request=\(Base64.encode(joinRequest, alphabet: .url))"
  }

  /// The local address that packets to this host leave from, port 0; nil without a route. Looks the name up: blocks.
  ///
  /// IPv4 comes first where a name has both: it is what an SFU on the same machine or network most often offers.
  func localAddress() -> SocketAddress? {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_DGRAM.rawValue)
    hints.ai_flags = AI_NUMERICSERV
    for family in [AF_INET, AF_INET6] {
      hints.ai_family = family
      var first: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, String(port), &hints, &first) == 0 else { continue }
      defer { freeaddrinfo(first) }
      var entry = first
      while let candidate = entry?.pointee {
        if let address = Self.route(to: candidate) { return address }
        entry = candidate.ai_next
      }
    }
    return nil
  }

  /// Connecting a UDP socket sends nothing and shows which address the system would use.
  private static func route(to candidate: addrinfo) -> SocketAddress? {
    let descriptor = socket(candidate.ai_family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard connect(descriptor, candidate.ai_addr, candidate.ai_addrlen) == 0 else { return nil }
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let bytes = withUnsafeMutablePointer(to: &storage) { pointer -> [UInt8]? in
      let raw = UnsafeMutableRawPointer(pointer)
      guard getsockname(descriptor, raw.assumingMemoryBound(to: sockaddr.self), &length) == 0 else {
        return nil
      }
      switch Int32(pointer.pointee.ss_family) {
      case AF_INET:
        var address = raw.assumingMemoryBound(to: sockaddr_in.self).pointee.sin_addr
        return withUnsafeBytes(of: &address) { Array($0) }
      case AF_INET6:
        var address = raw.assumingMemoryBound(to: sockaddr_in6.self).pointee.sin6_addr
        return withUnsafeBytes(of: &address) { Array($0) }
      default: return nil
      }
    }
    return bytes.flatMap { SocketAddress(addressBytes: $0, port: 0) }
  }
}
