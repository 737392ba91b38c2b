import PalbeLiveKit
import PalbeSFUCore
import Synchronization

/// The names of the rooms that are there, for who has no worker's ear: as many as the workers allow.
final class LiveRooms: Sendable {
  private let names = Mutex<Set<String>>([])

  /// A worker's news; on its thread.
  func take(_ notice: RoomNotice) {
    switch notice.event {
    case .roomStarted: _ = names.withLock { $0.insert(notice.room.name) }
    case .roomFinished: _ = names.withLock { $0.remove(notice.room.name) }
    default: break
    }
  }

  func contains(_ name: String) -> Bool { names.withLock { $0.contains(name) } }
}
