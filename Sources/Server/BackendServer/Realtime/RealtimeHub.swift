import PalbeAccountsCore
import PalbeBackendCore
import PalbeEventLoop
import PalbeUnits
import PalbeWebServer
import Synchronization

/// All sockets: carries events to those that hear their topics, and ends those whose session, device or silence ends them.
package final class RealtimeHub: Sendable {
  /// Why a socket is closed (RFC 6455 §7.4.2 leaves 4000 and above to applications).
  package enum CloseCode {
    /// Reads too slowly, or the server drains.
    package static let tryLater: UInt16 = 1_013
    package static let sessionOver: UInt16 = 4_401
    package static let deviceRevoked: UInt16 = 4_403
    package static let silent: UInt16 = 4_408
  }

  /// What it allows.
  package struct Settings: Sendable {
    /// A socket without a heartbeat for so long is closed; clients send one each 25 s.
    package var silence = TimeDelta.seconds(60)
    /// Bytes that wait for a client before it counts as too slow.
    package var slowByteCount = 1 << 20
    /// The limits of the requirements.
    package init() {}
  }

  /// For metrics.
  package struct Statistics: Sendable, Hashable {
    package var openedCount: UInt64 = 0
    package var slowCount: UInt64 = 0
    package var silentCount: UInt64 = 0
    package var sessionEndCount: UInt64 = 0
  }

  let settings: Settings
  let verifier: any SessionVerifier
  let counts = Mutex(Statistics())
  private let loop = Mutex<BackendLoop?>(nil)
  private let connections = Mutex<[UInt64: RealtimeConnection]>([:])

  package init(verifier: any SessionVerifier, settings: Settings = Settings()) {
    self.verifier = verifier
    self.settings = settings
  }

  /// Once, before the first socket.
  package func attach(_ loop: BackendLoop) { self.loop.withLock { $0 = loop } }

  func ask(_ call: BackendCall, answer: @escaping BackendLoop.Answer) {
    guard let loop = loop.withLock({ $0 }) else { return answer(.failure(.unavailable(.busy))) }
    loop.ask(call, answer: answer)
  }

  /// Open sockets.
  package var count: Int { connections.withLock { $0.count } }
  /// What was done until now.
  package var statistics: Statistics { counts.withLock { $0 } }

  // MARK: The web server's thread

  func open(_ socket: WebSocket, session: VerifiedSession, device: DeviceID) -> RealtimeConnection {
    let connection = RealtimeConnection(socket: socket, session: session, device: device, hub: self)
    connections.withLock { $0[socket.id] = connection }
    counts.withLock { $0.openedCount += 1 }
    return connection
  }

  func closed(_ connection: RealtimeConnection) {
    connections.withLock { $0[connection.id.rawValue] = nil }
    loop.withLock { $0 }?.connectionClosed(connection.id)
  }

  // MARK: The loop's thread

  /// Carries an event to those that hear it.
  package func deliver(_ event: BackendEvent, to subscribers: [ConnectionID]) {
    switch event {
    case .publish(let topic, let news):
      var text: (topic: String, frame: String)?
      for connection in find(subscribers) {
        guard let name = connection.text(of: topic) else { continue }
        // One text for all that call the topic the same, which they do.
        if text?.topic != name { text = (name, RealtimeText.event(name, news)) }
        if let text { connection.send(text.frame) }
      }
    case .subscriptionEnded(let id, let topic, let reason): find([id]).first?.ended(topic, reason)
    case .wakePush, .deleteBlobs, .storeFault: break
    }
  }

  private func find(_ ids: [ConnectionID]) -> [RealtimeConnection] {
    connections.withLock { connections in ids.compactMap { connections[$0.rawValue] } }
  }

  /// Ends sockets that were silent for too long, or whose token is over.
  package func sweep(at now: ServerTime) {
    for connection in all {
      if connection.session.deadline <= now.instant {
        end(connection, "session_expired")
      } else if now.instant - connection.heard > settings.silence {
        counts.withLock { $0.silentCount += 1 }
        connection.socket.close(code: CloseCode.silent, reason: "no heartbeat")
      }
    }
  }

  // MARK: Any thread

  private var all: [RealtimeConnection] { connections.withLock { Array($0.values) } }

  /// Sessions are over: so are their sockets.
  package func end(_ sessions: [SessionID]) {
    let over = Set(sessions)
    for connection in all where over.contains(connection.session.session) { end(connection, "session_ended") }
  }

  private func end(_ connection: RealtimeConnection, _ reason: String) {
    counts.withLock { $0.sessionEndCount += 1 }
    connection.socket.close(code: CloseCode.sessionOver, reason: reason)
  }

  /// The server ends soon: clients are to come again, to whatever answers then.
  package func drain() {
    for connection in all { connection.socket.close(code: CloseCode.tryLater, reason: "draining") }
  }
}
