import Synchronization

/// A value that many follow: each stream begins with the value as it is, and ends with the broadcast.
package final class Broadcast<Value: Sendable>: Sendable {
  private struct State {
    var value: Value
    var followers: [UInt64: AsyncStream<Value>.Continuation] = [:]
    var count: UInt64 = 0
  }
  private let state: Mutex<State>
  /// What a follower that does not read may be behind; the oldest go.
  private let backlog: Int

  package init(_ value: Value, backlog: Int = 64) {
    state = Mutex(State(value: value))
    self.backlog = backlog
  }

  deinit { for follower in state.withLock({ $0.followers.values }) { follower.finish() } }

  package var value: Value { state.withLock { $0.value } }

  /// Sets the value and tells everybody, in the order of the calls.
  package func send(_ value: Value) {
    state.withLock { state in
      state.value = value
      for follower in state.followers.values { follower.yield(value) }
    }
  }

  package func stream() -> AsyncStream<Value> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Value.self, bufferingPolicy: .bufferingNewest(backlog))
    let id = state.withLock { state in
      state.count += 1
      state.followers[state.count] = continuation
      continuation.yield(state.value)
      return state.count
    }
    continuation.onTermination = { [weak self] _ in
      // Not under the lock that `send` holds: a follower may end because of a value.
      _ = self?.state.withLock { $0.followers.removeValue(forKey: id) }
    }
    return stream
  }
}
