/// An IPv4 or IPv6 address and a UDP or TCP port, as a value without references: RFC 8445's transport address.
///
/// A TCP connection is named by its other end; while it lasts there is no second one from there to one listener.
public struct SocketAddress: Hashable, Sendable, BitwiseCopyable {
  /// The address family.
  public enum Family: UInt8, Sendable, BitwiseCopyable {
    case ipv4 = 4
    case ipv6 = 6
  }

  /// What the port belongs to.
  public enum Transport: UInt8, Sendable, BitwiseCopyable {
    case tcp = 6
    case udp = 17
  }

  public var family: Family
  /// UDP unless said otherwise.
  public var transport: Transport
  /// The first eight bytes of the address, big-endian; an IPv4 address is in the upper half.
  public var high: UInt64
  /// The last eight bytes of an IPv6 address, big-endian.
  public var low: UInt64
  public var port: UInt16

  @inlinable public init(ipv4 a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8, port: UInt16) {
    family = .ipv4
    transport = .udp
    high = UInt64(a) << 56 | UInt64(b) << 48 | UInt64(c) << 40 | UInt64(d) << 32
    low = 0
    self.port = port
  }

  @inlinable public init(ipv6High high: UInt64, low: UInt64, port: UInt16) {
    family = .ipv6
    transport = .udp
    self.high = high
    self.low = low
    self.port = port
  }

  /// "0.0.0.0" or "::": every address of a host.
  public var isUnspecified: Bool { high == 0 && low == 0 }

  /// The same address and port, of a TCP connection.
  public var overTCP: SocketAddress {
    var address = self
    address.transport = .tcp
    return address
  }

  @inlinable public static func == (left: SocketAddress, right: SocketAddress) -> Bool {
    left.high == right.high && left.low == right.low && left.endpointBits == right.endpointBits
  }

  @inlinable public func hash(into hasher: inout Hasher) {
    hasher.combine(high)
    hasher.combine(low)
    hasher.combine(endpointBits)
  }

  /// All that is not the address itself.
  @inlinable var endpointBits: UInt32 {
    UInt32(port) << 16 | UInt32(family.rawValue) << 8 | UInt32(transport.rawValue)
  }

  /// The four or sixteen bytes of the address in network order.
  public var addressBytes: [UInt8] {
    (0..<(family == .ipv4 ? 4 : 16)).map { index in
      let word = index < 8 ? high : low
      return UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64(index % 8)))
    }
  }

  /// From four or sixteen bytes in network order; nil for any other length.
  public init?(addressBytes bytes: [UInt8], port: UInt16) {
    func word(_ slice: ArraySlice<UInt8>) -> UInt64 { slice.reduce(0) { $0 << 8 | UInt64($1) } }
    switch bytes.count {
    case 4: self.init(ipv4: bytes[0], bytes[1], bytes[2], bytes[3], port: port)
    case 16: self.init(ipv6High: word(bytes[0..<8]), low: word(bytes[8..<16]), port: port)
    default: return nil
    }
  }

  /// True for 127.0.0.0/8 and ::1.
  public var isLoopback: Bool {
    switch family {
    case .ipv4: high >> 56 == 127
    case .ipv6: high == 0 && low == 1
    }
  }
}

extension SocketAddress: CustomStringConvertible {
  /// The address without its port: "192.0.2.1", or RFC 5952's form for IPv6.
  public var host: String {
    if family == .ipv4 { return addressBytes.map(String.init).joined(separator: ".") }
    let groups = (0..<8).map { index -> UInt16 in
      UInt16(truncatingIfNeeded: (index < 4 ? high : low) >> (48 - 16 * UInt64(index % 4)))
    }
    // The longest run of two or more zero groups becomes "::".
    var best = (start: -1, length: 1)
    var start = 0
    while start < 8 {
      var end = start
      while end < 8, groups[end] == 0 { end += 1 }
      if end - start > best.length { best = (start, end - start) }
      start = max(end, start + 1)
    }
    func hex(_ range: Range<Int>) -> String {
      groups[range].map { String($0, radix: 16) }.joined(separator: ":")
    }
    guard best.start >= 0 else { return hex(0..<8) }
    return hex(0..<best.start) + "::" + hex(best.start + best.length..<8)
  }

  /// "192.0.2.1:80", "[2001:db8::1]:80", and for TCP "192.0.2.1:80/tcp".
  public var description: String {
    (family == .ipv4 ? "\(host):\(port)" : "[\(host)]:\(port)") + (transport == .tcp ? "/tcp" : "")
  }

  /// Parses an address without brackets or zone: "192.0.2.1" or "2001:db8::1"; nil when malformed.
  public init?(host: String, port: UInt16) {
    if host.contains(":") {
      guard let bytes = Self.parseIPv6(host) else { return nil }
      self.init(addressBytes: bytes, port: port)
      return
    }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var bytes = [UInt8]()
    for part in parts {
      guard !part.isEmpty, part.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }), let byte = UInt8(part) else {
        return nil
      }
      bytes.append(byte)
    }
    self.init(addressBytes: bytes, port: port)
  }

  private static func parseIPv6(_ text: String) -> [UInt8]? {
    func groups(_ part: Substring) -> [UInt8]? {
      if part.isEmpty { return [] }
      var bytes = [UInt8]()
      for group in part.split(separator: ":", omittingEmptySubsequences: false) {
        // The standard library reads signs: "+1" and "-0".
        guard (1...4).contains(group.utf8.count), group.first != "+", group.first != "-",
          let value = UInt16(group, radix: 16)
        else { return nil }
        bytes += [UInt8(value >> 8), UInt8(truncatingIfNeeded: value)]
      }
      return bytes
    }
    guard let gap = text.firstRange(of: "::") else {
      guard let bytes = groups(text[...]), bytes.count == 16 else { return nil }
      return bytes
    }
    guard let head = groups(text[..<gap.lowerBound]), let tail = groups(text[gap.upperBound...]),
      head.count + tail.count <= 14
    else { return nil }
    return head + [UInt8](repeating: 0, count: 16 - head.count - tail.count) + tail
  }
}
