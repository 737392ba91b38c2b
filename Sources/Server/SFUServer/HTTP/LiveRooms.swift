import PalbeLiveKit
import PalbeSFUCore
import Synchronization

/// The names of the rooms that are there, for who has no worker's ear: as many as the workers allow.
final class LiveRooms: Sendable {
  private struct State {
    var names: Set<String> = []
    /// Of each worker.
    var counts: [Int]
  }
  private let workerCount: Int
  private let state: Mutex<State>

  init(workerCount: Int) {
    self.workerCount = workerCount
    state = Mutex(State(counts: [Int](repeating: 0, count: workerCount)))
  }

  /// A worker's news; on its thread.
  func take(_ notice: RoomNotice) {
    let name = notice.room.name
    let worker = RoomPlacement.worker(of: name, among: workerCount)
    switch notice.event {
    case .roomStarted:
      state.withLock { if $0.names.insert(name).inserted { $0.counts[worker] += 1 } }
    case .roomFinished:
      state.withLock { if $0.names.remove(name) != nil { $0.counts[worker] -= 1 } }
    default: break
    }
  }

  func contains(_ name: String) -> Bool { state.withLock { $0.names.contains(name) } }

  /// Rooms on the worker that a room of that name is on, or would be.
  func count(beside name: String) -> Int {
    let worker = RoomPlacement.worker(of: name, among: workerCount)
    return state.withLock { $0.counts[worker] }
  }
}
