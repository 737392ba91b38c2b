import PalbeSFUCore
import PalbeServerObservation

extension ServerLog {
  /// Writes what a worker's core tells.
  func write(_ record: SFULogRecord, worker: Int) {
    let level: Level =
      switch record.level {
      case .debug: .debug
      case .info: .info
      case .warning: .warning
      }
    write(level, record.message, record.fields + [("worker", "\(worker)")])
  }
}
