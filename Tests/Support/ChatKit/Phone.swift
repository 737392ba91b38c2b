import PalbeChatCore
import PalbeMLS
import PalbeUnits

/// A device of a user: an engine over a disk, and the disk outlives it.
package final class Phone {
  package let user: UserID
  /// For reports, such as `anna.1`.
  package let name: String
  package let storage: CrashingStorage
  let configuration: EngineConfiguration
  /// Nil while the process is not running.
  var engine: ChatEngine?
  /// Counts the processes.
  var life = 0
  /// False: nothing gets through, in either direction.
  var isReachable = true
  var connection: UInt64?
  /// Events on the socket keep their order.
  var socketTime: Instant = .zero
  /// What the engine told, since the world was made.
  package internal(set) var events: [EngineEvent] = []
  /// The epochs in which the device was a member, by MLS' name of the group.
  var epochs: [[UInt8]: Set<UInt64>] = [:]
  /// Chats that the device was out of at some time.
  var wasOut: Set<ChatID> = []
  var nextCommand: UInt64 = 1
  package internal(set) var crashes = 0

  init(user: UserID, name: String, storage: CrashingStorage, configuration: EngineConfiguration) {
    (self.user, self.name, self.storage, self.configuration) = (user, name, storage, configuration)
  }

  /// Whether the process runs.
  package var isRunning: Bool { engine != nil }

  /// Nothing is asked, and nothing waits.
  var isQuiet: Bool { engine?.isQuiet ?? true }
}
