import CPalbeLinux
import Glibc
import PalbeUnits

/// A bound UDP socket that never blocks; closed when it goes out of scope.
public struct UDPSocket: ~Copyable, Sendable {
  /// How to open it.
  public struct Options: Sendable {
    /// Room the kernel is asked for, for datagrams not read yet. `net.core.rmem_max` caps it.
    public var receiveBufferByteCount = 4 << 20
    /// Room the kernel is asked for, for datagrams not sent yet. `net.core.wmem_max` caps it.
    public var sendBufferByteCount = 4 << 20
    /// An IPv6 socket bound to "::" also takes IPv4.
    public var isDualStack = false
    /// Several sockets share the port and the kernel spreads senders over them.
    public var reusesPort = false

    /// 4 MiB buffers, one stack, a port of its own.
    public init() {}
  }

  /// For a `Poller`.
  public let fileDescriptor: Int32
  /// Where it is bound, with the port the system chose for port 0.
  public let localAddress: SocketAddress
  /// What the kernel granted, which it counts with its own overhead: twice what was asked is usual.
  public let receiveBufferByteCount: Int
  /// What the kernel granted.
  public let sendBufferByteCount: Int

  /// Opens a socket at `address`; port 0 takes any free one.
  public init(binding address: SocketAddress, options: Options = Options()) throws(SocketError) {
    let opened = try Self.open(address, options)
    self.init(
      fileDescriptor: opened.descriptor, localAddress: opened.address,
      receiveBufferByteCount: opened.receive, sendBufferByteCount: opened.send)
  }

  private init(
    fileDescriptor: Int32, localAddress: SocketAddress, receiveBufferByteCount: Int, sendBufferByteCount: Int
  ) {
    self.fileDescriptor = fileDescriptor
    self.localAddress = localAddress
    self.receiveBufferByteCount = receiveBufferByteCount
    self.sendBufferByteCount = sendBufferByteCount
  }

  private static func open(
    _ address: SocketAddress, _ options: Options
  ) throws(SocketError) -> (descriptor: Int32, address: SocketAddress, receive: Int, send: Int) {
    let isIPv6 = address.family == .ipv6
    let descriptor = palbe_udp_socket(isIPv6 ? 1 : 0)
    guard descriptor >= 0 else { throw SocketError(.socket, port: address.port) }
    do throws(SocketError) {
      if isIPv6 {
        try descriptor.set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, options.isDualStack ? 0 : 1)
      }
      if options.reusesPort { try descriptor.set(SOL_SOCKET, SO_REUSEPORT, 1) }
      let receive = grow(descriptor, SO_RCVBUF, force: SO_RCVBUFFORCE, to: options.receiveBufferByteCount)
      let send = grow(descriptor, SO_SNDBUF, force: SO_SNDBUFFORCE, to: options.sendBufferByteCount)
      var storage = sockaddr_storage()
      var length = address.encode(into: &storage, mapped: false)
      guard palbe_bind(descriptor, &storage, length) == 0 else {
        throw SocketError(.bind, port: address.port)
      }
      length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      guard palbe_getsockname(descriptor, &storage, &length) == 0, let actual = SocketAddress(&storage) else {
        throw SocketError(.getsockname, port: address.port)
      }
      return (descriptor, actual, receive, send)
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(fileDescriptor) }

  /// Receives what waits, at most the batch's capacity. Allocates nothing.
  /// - Returns: the number of datagrams, 0 when none waits.
  @discardableResult
  public func receive(into batch: inout ReceiveBatch) throws(SystemError) -> Int {
    try batch.receive(from: fileDescriptor)
  }

  /// Sends what the batch holds, in order. Allocates nothing.
  /// - Returns: true when the batch is empty now; false when the kernel's buffer is full and the rest still
  /// waits.
  @discardableResult
  public func send(_ batch: inout SendBatch) -> Bool {
    batch.send(through: fileDescriptor, mapped: localAddress.family == .ipv6)
  }

  /// Sends one datagram.
  /// - Returns: false when the kernel did not take it; like a loss on the way.
  @discardableResult
  public func send(_ datagram: Span<UInt8>, to destination: SocketAddress) -> Bool {
    var storage = sockaddr_storage()
    let length = destination.encode(into: &storage, mapped: localAddress.family == .ipv6)
    return datagram.withUnsafeBytes { bytes in
      while true {
        let sent = palbe_sendto(
          fileDescriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT), &storage, length)
        if sent >= 0 { return sent == bytes.count }
        // Both leave the next attempt a fair chance: a signal, or an ICMP answer to an earlier datagram.
        guard errno == EINTR || errno == ECONNREFUSED else { return false }
      }
    }
  }

  /// Asks for a buffer size, past the system's cap where the process may; returns what was granted.
  private static func grow(_ descriptor: Int32, _ option: Int32, force: Int32, to byteCount: Int) -> Int {
    var value = Int32(clamping: byteCount)
    if setsockopt(descriptor, SOL_SOCKET, force, &value, 4) != 0 {
      setsockopt(descriptor, SOL_SOCKET, option, &value, 4)
    }
    var granted: Int32 = 0
    var length = socklen_t(4)
    getsockopt(descriptor, SOL_SOCKET, option, &granted, &length)
    return Int(granted)
  }
}
