import CPalbeLinux
import PalbeUnits

/// What the process needs to know of its host.
public enum Host {
  /// The addresses of the interfaces that are up: IPv4 before IPv6, loopback last, port 0.
  /// Link-local IPv6 addresses are left out: they need a zone.
  public static func localAddresses() throws(SystemError) -> [SocketAddress] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { throw SystemError(.getifaddrs) }
    defer { freeifaddrs(first) }
    var found: [SocketAddress] = []
    var entry = first
    while let interface = entry {
      entry = interface.pointee.ifa_next
      guard interface.pointee.ifa_flags & UInt32(IFF_UP) != 0,
        let raw = interface.pointee.ifa_addr,
        let address = SocketAddress(raw), !address.isLinkLocal
      else { continue }
      found.append(address)
    }
    func rank(_ address: SocketAddress) -> Int {
      (address.isLoopback ? 2 : 0) + (address.family == .ipv6 ? 1 : 0)
    }
    return found.enumerated().sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }
      .map(\.element)
  }

  /// The addresses of a host by its name or number, each once; empty when it has none or the name service does not answer.
  /// Waits for the name service.
  public static func addresses(of name: String, port: UInt16) -> [SocketAddress] {
    var first: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, nil, nil, &first) == 0 else { return [] }
    defer { freeaddrinfo(first) }
    var found: [SocketAddress] = []
    var entry = first
    while let info = entry {
      entry = info.pointee.ai_next
      guard let raw = info.pointee.ai_addr, var address = SocketAddress(raw) else { continue }
      address.port = port
      if !found.contains(address) { found.append(address) }
    }
    return found
  }

  /// The number of processors this process may use.
  public static var processorCount: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// Raises the limit of open descriptors to the most the process may have, at most `wanted`.
  /// - Returns: the limit that holds now.
  @discardableResult
  public static func raiseOpenFileLimit(to wanted: Int = 65_536) throws(SystemError) -> Int {
    let limit = palbe_raise_open_files(UInt(max(0, wanted)))
    guard limit >= 0 else { throw SystemError(.setrlimit) }
    return limit
  }
}

extension SocketAddress {
  /// fe80::/10.
  var isLinkLocal: Bool { family == .ipv6 && high >> 54 == 0x3fa }

  /// From the system's form; nil for another family than IPv4 and IPv6.
  init?(_ raw: UnsafeMutablePointer<sockaddr>) {
    let byteCount: Int
    switch Int32(raw.pointee.sa_family) {
    case AF_INET: byteCount = MemoryLayout<sockaddr_in>.size
    case AF_INET6: byteCount = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    var storage = sockaddr_storage()
    withUnsafeMutableBytes(of: &storage) {
      $0.copyMemory(from: UnsafeRawBufferPointer(start: raw, count: byteCount))
    }
    self.init(&storage)
  }
}
