import Glibc
import Synchronization

/// What another thread says once, for one that may wait.
final class Awaited<Value: Sendable>: Sendable {
  private let state = Mutex<Value?>(nil)

  func set(_ value: Value) { state.withLock { $0 = .some(value) } }

  /// Looks every two milliseconds: for what takes much longer.
  func wait() -> Value {
    while true {
      if let value = state.withLock({ $0 }) { return value }
      usleep(2_000)
    }
  }
}
