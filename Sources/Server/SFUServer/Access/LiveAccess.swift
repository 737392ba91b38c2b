import Synchronization

/// Who may come in: what may change while the server runs. Read and written by any thread.
final class LiveAccess: Sendable {
  private struct State {
    var keys: [String: String]
    var createsRooms: Bool
  }
  private let state: Mutex<State>

  init(keys: [String: String], createsRooms: Bool) {
    state = Mutex(State(keys: keys, createsRooms: createsRooms))
  }

  func change(keys: [String: String], createsRooms: Bool) {
    state.withLock { $0 = State(keys: keys, createsRooms: createsRooms) }
  }

  /// API key name to secret.
  var keys: [String: String] { state.withLock { $0.keys } }

  /// The first who joins makes the room.
  var createsRooms: Bool { state.withLock { $0.createsRooms } }

  var resolver: JoinResolver { JoinResolver(keys: keys) }
}
