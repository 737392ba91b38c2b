import CPalbeWebSockets
import PalbeEventLoop
import PalbeUnits

/// Who gets a place, and who makes room.
///
/// A connection is fresh until its first request is read: through the TLS handshake, of which the library keeps tens of kilobytes,
/// and the head. It is kept between two requests. Neither does anything for its place, so when places are short the one that has
/// been so longest makes room: who only connects keeps nobody out.
extension ServerService {
  /// Connections that are told to end and have not yet.
  private static let endingLimit = 8

  /// Whether a connection of this address is taken.
  func admits(_ peer: SocketAddress) -> Bool {
    guard connections.count < limits.connectionCount + Self.endingLimit, gate.admits(peer) else {
      return false
    }
    let now = MonotonicClock.now()
    if fresh.count >= limits.freshConnectionCount {
      guard let oldest = fresh.oldest(), dismiss(oldest, at: now) else { return false }
    } else if connections.count - endingCount >= limits.connectionCount {
      guard let oldest = oldestIdle(), dismiss(oldest, at: now) else { return false }
    }
    return true
  }

  private func oldestIdle() -> (identity: OpaquePointer, since: Instant)? {
    guard let first = fresh.oldest() else { return kept.oldest() }
    guard let second = kept.oldest() else { return first }
    return first.since <= second.since ? first : second
  }

  /// False when it has not been idle for long.
  private func dismiss(_ idle: (identity: OpaquePointer, since: Instant), at now: Instant) -> Bool {
    guard now - idle.since >= limits.crowdedIdleTime, let connection = connections[idle.identity] else {
      return false
    }
    leaveIdle(connection)
    connection.isEnding = true
    endingCount += 1
    palbe_lws_kill(idle.identity)
    return true
  }

  /// The connection has no request yet.
  func enterFresh(_ identity: OpaquePointer, _ connection: ServerConnection) {
    connection.idleTicket = .fresh(fresh.enter(identity, at: MonotonicClock.now()))
  }

  /// The connection has no request any more.
  func enterKept(_ identity: OpaquePointer, _ connection: ServerConnection) {
    leaveIdle(connection)
    connection.idleTicket = .kept(kept.enter(identity, at: MonotonicClock.now()))
  }

  /// A request came, or the connection's end.
  func leaveIdle(_ connection: ServerConnection) {
    switch connection.idleTicket {
    case .fresh(let ticket): fresh.leave(ticket)
    case .kept(let ticket): kept.leave(ticket)
    case nil: break
    }
    connection.idleTicket = nil
  }
}
