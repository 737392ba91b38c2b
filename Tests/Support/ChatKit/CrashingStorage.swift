import PalbeChatCore
import PalbeMLS
import PalbeUnits
import Synchronization

/// Every kind of transaction that a run has made, and after or before which of them the process ended.
package final class CrashRegistry: Sendable {
  private struct State {
    var seen: Set<String> = []
    var hit: Set<String> = []
  }
  private let state = Mutex(State())

  /// A registry without an entry.
  package init() {}

  func see(_ label: String) { state.withLock { _ = $0.seen.insert(label) } }
  func hit(_ point: String) { state.withLock { _ = $0.hit.insert(point) } }

  /// Kinds of transactions, such as `group+outbox`.
  package var seen: Set<String> { state.withLock { $0.seen } }
  /// Points where a process ended: a kind and `before` or `after`.
  package var hit: Set<String> { state.withLock { $0.hit } }
}

/// A disk that survives its process: at a point that was armed the transaction fails, with nothing of it there or with all.
package final class CrashingStorage: MLSStorage {
  /// When the process ends.
  package enum Moment: String, Sendable, CaseIterable {
    case before
    case after
  }

  struct Trap {
    /// Nil: any.
    var label: String?
    var moment: Moment
    /// Transactions of the label that pass before.
    var passes: Int
  }

  private let disk = InMemoryMLSStorage()
  private let registry: CrashRegistry
  private let trap = Mutex<Trap?>(nil)
  /// One that stays until the process comes there, whatever else is armed.
  private let lasting = Mutex<CrashPoint?>(nil)
  private let usage = Mutex(Usage())

  /// What was asked of the disk.
  package struct Usage: Sendable {
    package var reads: [MLSRecordKey] = []
    package var transactions = 0
    /// Written or erased.
    package var records: [MLSRecordKey] = []
  }

  /// What was asked since this was called last.
  package func takeUsage() -> Usage {
    usage.withLock { usage in
      defer { usage = Usage() }
      return usage
    }
  }

  package init(registry: CrashRegistry) { self.registry = registry }

  /// The next transaction of a kind, after some that pass, ends the process.
  package func arm(_ label: String?, _ moment: Moment, passes: Int = 0) {
    trap.withLock { $0 = Trap(label: label, moment: moment, passes: passes) }
  }
  /// The first transaction of the point's kind ends the process, whenever it comes: rare ones take waiting for.
  package func arm(lasting point: CrashPoint) { lasting.withLock { $0 = point } }
  /// Nothing is armed any more.
  package func disarm() {
    trap.withLock { $0 = nil }
    lasting.withLock { $0 = nil }
  }

  package func read(_ key: MLSRecordKey) throws(MLSStorageError) -> MLSRecord? {
    usage.withLock { $0.reads.append(key) }
    return disk.read(key)
  }
  package func keys(under prefix: MLSRecordKey) throws(MLSStorageError) -> [MLSRecordKey] {
    disk.keys(under: prefix)
  }
  package func groups() throws(MLSStorageError) -> [[UInt8]] { disk.groups() }

  package func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    let label = Self.label(of: transaction)
    registry.see(label)
    usage.withLock {
      $0.transactions += 1
      $0.records += Array(transaction.changes.keys)
    }
    let waited: Moment? = lasting.withLock { point in
      guard let armed = point, armed.kind == label else { return nil }
      point = nil
      return armed.moment
    }
    let moment: Moment? =
      waited
      ?? trap.withLock { trap in
        guard var armed = trap, armed.label == nil || armed.label == label else { return nil }
        guard armed.passes == 0 else {
          armed.passes -= 1
          trap = armed
          return nil
        }
        trap = nil
        return armed.moment
      }
    guard let moment else { return try disk.apply(transaction) }
    registry.hit("\(label) \(moment.rawValue)")
    if moment == .after { try disk.apply(transaction) }
    throw .unusable
  }

  /// Secrets of epochs of a chat that ended (record kind 5).
  func keepsSecrets(of chat: ChatID) -> Bool {
    !disk.keys(under: .application([5] + chat.bytes, in: nil)).isEmpty
  }

  /// What a transaction is about, by the records it touches.
  static func label(of transaction: MLSTransaction) -> String {
    var parts: Set<String> = []
    for key in Array(transaction.changes.keys) + transaction.erasedPrefixes {
      guard key.isApplication, key.name.count > 1 else {
        parts.insert(key.group == nil ? "keys" : "group")
        continue
      }
      switch key.name[1] {
      case 1: parts.insert("device")
      case 2: parts.insert("head")
      case 3: parts.insert("outbox")
      case 4: parts.insert("operation")
      case 5: parts.insert("secrets")
      case 6: parts.insert("progress")
      case UInt8(ascii: "T"): parts.insert("transcript")
      default: parts.insert("other")
      }
    }
    // What goes with everything tells nothing.
    let telling = parts.subtracting(["head", "keys", "progress"])
    return (telling.isEmpty ? parts : telling).sorted().joined(separator: "+")
  }
}
