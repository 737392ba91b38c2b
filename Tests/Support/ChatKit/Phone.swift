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
  /// Known from the first process on.
  var device: DeviceName?
  /// Counts the processes.
  var life = 0
  /// By how much its clock is ahead of the others'.
  var clock = TimeDelta.zero
  /// False: nothing gets through, in either direction.
  var isReachable = true
  var connection: UInt64?
  /// Events on the socket keep their order.
  var socketTime: Instant = .zero
  /// What the engine told, since the world was made.
  package internal(set) var events: [EngineEvent] = []
  /// Its user took it off the account.
  package internal(set) var isRevoked = false
  /// Chats that the device was out of at some time: how many messages the server had taken when it was last.
  var unsure: [ChatID: Int] = [:]
  /// Chats that it is out of now.
  var isOut: Set<ChatID> = []
  /// What its user took away here alone.
  var hidden: Set<ClientMessageID> = []
  /// Messages that failed at some time.
  private(set) var failed: Set<ClientMessageID> = []
  /// The rows as somebody has them who followed what the engine told.
  private(set) var mirror: [ChatID: [ClientMessageID: Row]] = [:]
  /// What its shell keeps the bytes of files under.
  package internal(set) var spools: Set<String> = []
  var nextCommand: UInt64 = 1
  /// What it last handed to the network for a group.
  var lastSent: (group: GroupID, message: ServerMessage)?
  package internal(set) var crashes = 0

  init(user: UserID, name: String, storage: CrashingStorage, configuration: EngineConfiguration) {
    (self.user, self.name, self.storage, self.configuration) = (user, name, storage, configuration)
  }

  /// Whether the process runs.
  package var isRunning: Bool { engine != nil }

  /// Nothing is asked, and nothing waits.
  var isQuiet: Bool { engine?.isQuiet ?? true }

  // MARK: Beside the engine

  private func stored(_ chat: ChatID) -> Transcript? {
    guard let device else { return nil }
    return try? Transcript.load(chat.bytes, me: device, from: storage)
  }

  /// What was made here and the server has not answered for, by the storage.
  func unconfirmed(_ chat: ChatID) -> [Envelope] { stored(chat)?.unconfirmed ?? [] }

  /// Whether a row is there, by the storage.
  func isShown(_ id: ClientMessageID, in chat: ChatID) -> Bool { (try? stored(chat)?.row(id)) != nil }

  /// A process begins: whoever shows chats reads them.
  func beginMirror() {
    mirror = [:]
    for chat in engine?.allChats ?? [] {
      guard var transcript = stored(chat), let page = try? transcript.page(limit: 10_000) else { continue }
      mirror[chat] = Dictionary(page.rows.map { ($0.id, $0) }) { first, _ in first }
    }
  }

  /// Where the rows are not those that somebody has who followed.
  func strayed(from rows: [Row], in chat: ChatID) -> [String] {
    let told = mirror[chat] ?? [:]
    guard told.count == rows.count else {
      return ["\(told.count) rows were told of, there are \(rows.count)"]
    }
    return rows.compactMap { row in
      // An answer's quote follows its parent without a word.
      var mirrored = told[row.id]
      mirrored?.reply = row.reply
      return mirrored == row ? nil : "a row was told otherwise: \(mirrored.map { "\($0)" } ?? "-") is \(row)"
    }
  }

  /// Follows what the engine tells; what cannot be followed.
  func follow(_ changes: [TranscriptChange], in chat: ChatID) -> [String] {
    var problems: [String] = []
    for change in changes {
      if case .updated(let row) = change, case .failed = row.delivery { failed.insert(row.id) }
      switch change {
      case .inserted(let row):
        if mirror[chat, default: [:]].updateValue(row, forKey: row.id) != nil {
          problems.append("a row was told as new twice")
        }
      case .updated(let row):
        if mirror[chat, default: [:]].updateValue(row, forKey: row.id) == nil {
          problems.append("a row changed that was never told")
        }
      case .removed(let id):
        if mirror[chat, default: [:]].removeValue(forKey: id) == nil {
          problems.append("a row went that was never told")
        }
      case .elevated: break
      }
    }
    return problems
  }
}
