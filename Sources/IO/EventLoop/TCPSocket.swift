import CPalbeLinux
import Glibc
import PalbeUnits

/// A TCP port that takes connections, without blocking; closed with its last user.
public final class TCPListener: Sendable {
  /// For a `Poller`: readable while connections wait.
  public let fileDescriptor: Int32
  /// Where it is bound, with the port the system chose for port 0.
  public let localAddress: SocketAddress

  /// Opens a listener at `address`; port 0 takes any free one.
  ///
  /// - Parameter isDualStack: an IPv6 listener bound to "::" also takes IPv4.
  public init(binding address: SocketAddress, isDualStack: Bool = false) throws(SocketError) {
    (fileDescriptor, localAddress) = try Self.open(address, isDualStack: isDualStack, backlog: 128)
  }

  /// The same as a descriptor, for who closes it.
  /// - Parameter backlog: connections that wait to be taken.
  package static func open(
    _ address: SocketAddress, isDualStack: Bool, backlog: Int32
  ) throws(SocketError) -> (descriptor: Int32, address: SocketAddress) {
    let isIPv6 = address.family == .ipv6
    let descriptor = palbe_tcp_socket(isIPv6 ? 1 : 0)
    guard descriptor >= 0 else { throw SocketError(.socket, port: address.port) }
    do throws(SocketError) {
      if isIPv6 {
        try descriptor.set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, isDualStack ? 0 : 1)
      }
      // A restart need not wait until connections of the old process are forgotten.
      try descriptor.set(SOL_SOCKET, SO_REUSEADDR, 1)
      var storage = sockaddr_storage()
      var length = address.encode(into: &storage, mapped: false)
      guard palbe_bind(descriptor, &storage, length) == 0 else {
        throw SocketError(.bind, port: address.port)
      }
      guard listen(descriptor, backlog) == 0, palbe_set_nonblocking(descriptor) == 0 else {
        throw SocketError(.socket, port: address.port)
      }
      length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      guard palbe_getsockname(descriptor, &storage, &length) == 0, let actual = SocketAddress(&storage) else {
        throw SocketError(.getsockname, port: address.port)
      }
      return (descriptor, actual.overTCP)
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(fileDescriptor) }

  /// The next connection; nil when none waits. Throws when the process can hold no more descriptors or the system no more
  /// sockets: the connection still waits then.
  public func accept() throws(SystemError) -> TCPStream? {
    guard let (descriptor, remote) = try Self.accept(from: fileDescriptor) else { return nil }
    return TCPStream(fileDescriptor: descriptor, remoteAddress: remote.overTCP)
  }

  /// The same of any listening descriptor; the connection is closed by whoever takes it.
  package static func accept(
    from listener: Int32
  ) throws(SystemError) -> (descriptor: Int32, remote: SocketAddress)? {
    while true {
      var storage = sockaddr_storage()
      let descriptor = palbe_accept(listener, &storage)
      if descriptor >= 0 {
        guard let remote = SocketAddress(&storage) else {
          close(descriptor)
          continue
        }
        return (descriptor, remote)
      }
      switch errno {
      case EAGAIN: return nil
      case EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL: throw SystemError(.accept)
      // The connection was gone before it was taken, or a signal came.
      case ECONNABORTED, EINTR: continue
      // What was wrong with its network is its own trouble.
      default: return nil
      }
    }
  }
}

/// A TCP connection that never blocks; closed when it goes out of scope.
public struct TCPStream: ~Copyable, Sendable {
  /// For a `Poller`.
  public let fileDescriptor: Int32
  /// The other end.
  public let remoteAddress: SocketAddress

  /// Bytes that the kernel keeps for a slow peer; more of them would only be late.
  private static let sendBufferByteCount: Int32 = 131_072

  fileprivate init(fileDescriptor: Int32, remoteAddress: SocketAddress) {
    self.fileDescriptor = fileDescriptor
    self.remoteAddress = remoteAddress
    // Neither matters enough to refuse the connection.
    try? fileDescriptor.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
    try? fileDescriptor.set(SOL_SOCKET, SO_SNDBUF, Self.sendBufferByteCount)
  }

  /// Connects.
  ///
  /// - Parameter waits: until the other end has accepted. Else the stream takes no bytes before; that it does then, or
  ///   has failed, is when its descriptor is writable.
  public init(connectingTo address: SocketAddress, waits: Bool = true) throws(SocketError) {
    let descriptor = palbe_tcp_socket(address.family == .ipv6 ? 1 : 0)
    guard descriptor >= 0 else { throw SocketError(.socket, port: address.port) }
    var storage = sockaddr_storage()
    let length = address.encode(into: &storage, mapped: false)
    let isConnected =
      if waits {
        palbe_connect(descriptor, &storage, length) == 0 && palbe_set_nonblocking(descriptor) == 0
      } else {
        palbe_set_nonblocking(descriptor) == 0
          && (palbe_connect(descriptor, &storage, length) == 0 || errno == EINPROGRESS)
      }
    guard isConnected else {
      let error = SocketError(.socket, port: address.port)
      close(descriptor)
      throw error
    }
    self.init(fileDescriptor: descriptor, remoteAddress: address.overTCP)
  }

  deinit { close(fileDescriptor) }

  /// Reads what is there, at most what `buffer` holds. Allocates nothing.
  /// - Returns: the number of bytes, 0 when none is there; nil when the connection has ended.
  @_lifetime(buffer: copy buffer)
  public func read(into buffer: inout MutableSpan<UInt8>) -> Int? {
    let count = buffer.withUnsafeMutableBytes { bytes in
      Glibc.recv(fileDescriptor, bytes.baseAddress, bytes.count, Int32(MSG_DONTWAIT))
    }
    if count > 0 { return count }
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : nil
  }

  /// Writes what the kernel takes. Allocates nothing.
  /// - Returns: the number of bytes, fewer than there are when its buffer is full; nil when the connection has ended.
  public func write(_ bytes: Span<UInt8>) -> Int? {
    let count = bytes.withUnsafeBytes { bytes in
      Glibc.send(fileDescriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
    if count >= 0 { return count }
    return errno == EAGAIN || errno == EINTR ? 0 : nil
  }
}

extension Int32 {
  /// Sets an option of the socket with this descriptor.
  func set(_ level: Int32, _ option: Int32, _ value: Int32) throws(SocketError) {
    var value = value
    guard setsockopt(self, level, option, &value, 4) == 0 else { throw .system(SystemError(.setsockopt)) }
  }
}
