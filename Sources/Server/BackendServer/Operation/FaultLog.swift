import PalbeBackendCore
import PalbeEventLoop
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// What the medium of the data refuses: each fault of each store is counted, and told in the log as it recurs.
///
///     faults.note(.full, of: .messages)
package final class FaultLog: Sendable {
  /// What the faults are about.
  enum Store: String, CaseIterable { case messages, accounts, attachments }

  private struct Kind: Hashable {
    let store: Store
    let fault: StoreFault
  }

  private struct Entry {
    var total: UInt64 = 0
    var recurrence = Recurrence()

    mutating func note(at now: Instant) -> UInt64? {
      total += 1
      return recurrence.note(at: now)
    }
  }

  private let log: ServerLog
  private let entries = Mutex<[Kind: Entry]>([:])

  package init(_ log: ServerLog) { self.log = log }

  /// Any thread; does not block.
  func note(_ fault: StoreFault, of store: Store, at now: Instant = MonotonicClock.now()) {
    let kind = Kind(store: store, fault: fault)
    guard let count = entries.withLock({ $0[kind, default: Entry()].note(at: now) }) else { return }
    log.write(
      .warning, "store fault",
      [("store", store.rawValue), ("fault", "\(fault)"), ("reason", fault.words), ("count", "\(count)")])
  }

  /// How often each came.
  func write(into text: inout Exposition) {
    let entries = entries.withLock { $0 }
    text.family("palbe_server_store_faults_total", .counter, "Work that a store's medium has refused.") {
      for store in Store.allCases {
        for fault in StoreFault.allCases where fault != .overloaded {
          let total = entries[Kind(store: store, fault: fault)]?.total ?? 0
          $0.sample([("store", store.rawValue), ("fault", "\(fault)")], value: total)
        }
      }
    }
  }
}

extension StoreFault {
  /// For an operator.
  var words: String {
    switch self {
    case .full: "there is no room on the disk"
    case .busy: "another process has locked it"
    case .corrupted: "it is damaged; palbe-server check tells where when the server is down"
    case .displaced: "its file was moved, replaced or deleted; put it back, or restart the server"
    case .failed: "the disk refuses it"
    case .overloaded: "too much waits"
    }
  }
}
