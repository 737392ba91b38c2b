import CPalbeLinux
import CPalbeWebSockets
import PalbeUnits
import Synchronization

/// What the library says by itself is bare HTML, and of most that it refuses it closes without a word. A header too long for its
/// buffer stops its own answers, and when it closes a connection that waits for an answer, this says why in the handler's words.
/// Only when it gives up in the middle of a connection's first head the socket is shut down before anybody is told.
extension ServerService {
  /// The library closes a connection; what is written now is the last.
  func sayLastWords(_ identity: OpaquePointer) {
    guard let connection = connections[identity], !link.isStopping.load(ordering: .relaxed) else { return }
    let descriptor = lws_get_socket_fd(identity)
    guard palbe_tcp_is_open(descriptor) != 0 else { return }
    let response: HTTPResponse?
    if connection.idleTicket != nil {
      response = headRefusal(identity, connection, descriptor).map {
        refusal($0, of: HTTPRequest(method: "", path: "", remoteAddress: connection.peer))
      }
    } else {
      // In the middle of a body the library closes only for silence.
      response = tooSlow(connection)
    }
    leaveIdle(connection)
    guard let response else { return }
    let bytes = response.serialized(omittingBody: false, common: limits.commonHeaders)
    bytes.withUnsafeBufferPointer { palbe_lws_say(identity, $0.baseAddress, $0.count) }
  }

  /// Why a head is refused; nil when nothing of one has come.
  private func headRefusal(
    _ identity: OpaquePointer, _ connection: ServerConnection, _ descriptor: Int32
  ) -> RequestRefusal? {
    let count = palbe_tcp_read_count(descriptor, 0) - (connection.readCount ?? 0)
    guard count > 0 else { return nil }
    // The table of headers is gone when its reader has given up, and there when the time was over.
    if RequestReader(identity, limits, peer: connection.peer).hasMethod { return .tooSlow }
    // Each header takes a little more room than it has bytes.
    return count > Int64(headTableByteCount / 2)
      ? .headTooLarge(limit: limits.requestHeadByteCount) : .malformed
  }
}

/// A header that is in each answer of the library's own, and too long for its buffer: there are none then. Kept as long as a
/// context.
final class HeaderSilencer {
  let header: UnsafeMutablePointer<lws_protocol_vhost_options>
  private let name: UnsafeMutablePointer<CChar>
  private let value: UnsafeMutablePointer<CChar>

  init(byteCount: Int) {
    name = .allocate(capacity: 3)
    value = .allocate(capacity: byteCount + 1)
    name.initialize(repeating: 0, count: 3)
    (name[0], name[1]) = (120, 58)
    value.initialize(repeating: 120, count: byteCount)
    value[byteCount] = 0
    header = .allocate(capacity: 1)
    header.initialize(to: lws_protocol_vhost_options())
    header.pointee.name = UnsafePointer(name)
    header.pointee.value = UnsafePointer(value)
  }

  deinit {
    header.deallocate()
    value.deallocate()
    name.deallocate()
  }
}
