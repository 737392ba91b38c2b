import PalbeSFUCore
import Synchronization

/// Who may come in: what may change while the server runs. Read and written by any thread.
final class LiveAccess: Sendable {
  private struct State {
    var keys: [String: String]
    var createsRooms: Bool
    var maxRooms: Int
  }
  private let state: Mutex<State>

  init(keys: [String: String], rooms: SFUConfiguration) {
    state = Mutex(Self.state(keys, rooms))
  }

  func change(keys: [String: String], rooms: SFUConfiguration) {
    state.withLock { $0 = Self.state(keys, rooms) }
  }

  private static func state(_ keys: [String: String], _ rooms: SFUConfiguration) -> State {
    State(keys: keys, createsRooms: rooms.createsRooms, maxRooms: rooms.maxRooms)
  }

  /// API key name to secret.
  var keys: [String: String] { state.withLock { $0.keys } }

  /// The first who joins makes the room.
  var createsRooms: Bool { state.withLock { $0.createsRooms } }

  /// Rooms of one worker.
  var maxRooms: Int { state.withLock { $0.maxRooms } }

  var resolver: JoinResolver { JoinResolver(keys: keys) }
}
