import CPalbeLinux
import CPalbeWebSockets
import Glibc
import PalbeUnits

/// The socket on which a server hears of new connections.
struct ListeningSocket {
  /// Owned by whoever takes it; the library closes what it watches.
  let descriptor: Int32
  /// The system's choice when it was asked for 0.
  let port: UInt16

  /// Binds and listens. "::" is all addresses of both families, or all IPv4 ones where the host has no IPv6.
  init(_ address: SocketAddress) throws(WebServerError) {
    let isAny = address.family == .ipv6 && address.high == 0 && address.low == 0
    var wanted = address
    var descriptor = palbe_tcp_socket(address.family == .ipv6 ? 1 : 0)
    if descriptor < 0, errno == EAFNOSUPPORT, isAny {
      wanted = SocketAddress(ipv4: 0, 0, 0, 0, port: address.port)
      descriptor = palbe_tcp_socket(0)
    }
    guard descriptor >= 0 else { throw errno == EAFNOSUPPORT ? .addressNotAvailable : .noResources }
    var yes: Int32 = 1
    // A restart need not wait until connections of the old process are forgotten.
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
    if wanted.family == .ipv6 {
      var onlyIPv6: Int32 = isAny ? 0 : 1
      setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &onlyIPv6, 4)
    }
    var storage = sockaddr_storage()
    let length = palbe_address_encode(
      &storage, wanted.family == .ipv6 ? 1 : 0, wanted.high, wanted.low, wanted.port, 0)
    guard palbe_bind(descriptor, &storage, length) == 0, listen(descriptor, SOMAXCONN) == 0,
      palbe_set_nonblocking(descriptor) == 0
    else {
      let code = errno
      close(descriptor)
      switch code {
      case EADDRINUSE: throw .portInUse(address.port)
      case EACCES, EPERM: throw .permissionDenied(address.port)
      case EADDRNOTAVAIL: throw .addressNotAvailable
      default: throw .noResources
      }
    }
    self.descriptor = descriptor
    port = localPort(of: descriptor)
  }
}

/// Connections are accepted here and handed to the library. Its own listener asks the kernel again without a pause when the process has
/// no descriptor left, and says nothing.
extension ServerService {
  private static let acceptsPerTurn = 32
  private static let pauseMicroseconds: Int64 = 100_000

  /// Takes those who wait, as many as one turn should.
  func acceptConnections() {
    guard let listener, let vhost = lws_get_vhost(listener) else { return }
    for _ in 0..<Self.acceptsPerTurn {
      var storage = sockaddr_storage()
      let descriptor = palbe_accept(lws_get_socket_fd(listener), &storage)
      guard descriptor >= 0 else {
        switch errno {
        case EAGAIN: return
        // The connection was gone before it was taken, or a signal came.
        case ECONNABORTED, EINTR: continue
        default: return pauseAccepting(listener, because: String(cString: strerror(errno)))
        }
      }
      guard admits(peerAddress(of: descriptor)) else {
        close(descriptor)
        continue
      }
      var yes: Int32 = 1
      setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
      // One that it cannot take it closes.
      _ = lws_adopt_socket_vhost(vhost, descriptor)
    }
  }

  /// Those who connect wait in the kernel meanwhile; connections that are there go on.
  private func pauseAccepting(_ listener: OpaquePointer, because reason: String) {
    lws_rx_flow_control(listener, 0)
    palbe_lws_call_after(listener, Self.pauseMicroseconds)
    whenPaused(reason)
  }

  /// The pause is over.
  func resumeAccepting() {
    if let listener { lws_rx_flow_control(listener, 1) }
  }
}
