import Synchronization

/// What waits for one subscriber. Bounded: who does not read is told that something is missing.
final class ItemBuffer: Sendable {
  private struct State {
    var items: [RealtimeItem] = []
    var waiter: CheckedContinuation<RealtimeItem?, Never>?
    var isEnded = false
  }
  private let state = Mutex(State())
  static let limit = 1_024

  /// Takes an item; the one that ends is the last.
  func push(_ item: RealtimeItem) {
    let waiter = state.withLock { state -> CheckedContinuation<RealtimeItem?, Never>? in
      guard !state.isEnded else { return nil }
      if case .ended = item { state.isEnded = true }
      if let waiter = state.waiter.take() { return waiter }
      if state.items.count >= Self.limit { state.items = [.missed] }
      state.items.append(item)
      return nil
    }
    waiter?.resume(returning: item)
  }

  /// The next item; nil after the last, and when the task is cancelled.
  func next() async -> RealtimeItem? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (item, isOver) = state.withLock { state -> (RealtimeItem?, Bool) in
          if !state.items.isEmpty { return (state.items.removeFirst(), false) }
          // One reader only; a second one is told that there is nothing.
          guard !state.isEnded, state.waiter == nil, !Task.isCancelled else { return (nil, true) }
          state.waiter = continuation
          return (nil, false)
        }
        if item != nil || isOver { continuation.resume(returning: item) }
      }
    } onCancel: {
      finish()
    }
  }

  /// No more items, not even those that wait.
  func finish() {
    let waiter = state.withLock { state in
      state.isEnded = true
      state.items = []
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }
}
