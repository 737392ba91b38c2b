import CPalbeWebSockets
import Glibc
import PalbeEventLoop
import PalbeUnits

/// The socket on which a server hears of new connections.
struct ListeningSocket {
  /// Owned by whoever takes it; the library closes what it watches.
  let descriptor: Int32
  /// The system's choice when it was asked for 0.
  let port: UInt16

  /// Binds and listens. "::" is all addresses of both families, or all IPv4 ones where the host has no IPv6.
  init(_ address: SocketAddress) throws(WebServerError) {
    let isAny = address.family == .ipv6 && address.isUnspecified
    func open(_ address: SocketAddress) throws(SocketError) -> (descriptor: Int32, address: SocketAddress) {
      try TCPListener.open(address, isDualStack: isAny, backlog: SOMAXCONN)
    }
    let actual: SocketAddress
    do throws(SocketError) {
      do throws(SocketError) { (descriptor, actual) = try open(address) } catch {
        guard isAny, error.isFamilyMissing else { throw error }
        (descriptor, actual) = try open(SocketAddress(ipv4: 0, 0, 0, 0, port: address.port))
      }
    } catch { throw WebServerError(error) }
    port = actual.port
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
    do throws(SystemError) {
      for _ in 0..<Self.acceptsPerTurn {
        guard let (descriptor, peer) = try TCPListener.accept(from: lws_get_socket_fd(listener)) else {
          return
        }
        guard admits(peer) else {
          close(descriptor)
          continue
        }
        var yes: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
        // One that it cannot take it closes.
        _ = lws_adopt_socket_vhost(vhost, descriptor)
      }
    } catch { pauseAccepting(listener, because: String(cString: strerror(error.code))) }
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
