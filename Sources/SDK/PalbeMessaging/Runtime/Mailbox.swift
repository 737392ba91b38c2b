import PalbeChatCore
import Synchronization

/// What waits for the shell's next turn.
enum MailItem: Sendable {
  case input(EngineInput)
  case call(ShellCall)
  /// Only time has passed.
  case tick
}

/// Something that a caller wants of the engine, in the turn's batch.
struct ShellCall: Sendable {
  /// Runs in the batch; what it gives runs when all of the batch is durable.
  let run: @Sendable (isolated MessagingShell) -> (@Sendable () -> Void)?
  /// Runs in place of both where there is no engine, or of the second where the batch failed.
  let refuse: @Sendable (any Error) -> Void
}

/// Collects what comes between two turns, from any thread.
final class Mailbox: Sendable {
  private struct State {
    var items: [MailItem] = []
    var isTurnDue = false
  }
  private let state = Mutex(State())

  /// Adds an item; true when the caller has to see to a turn.
  func put(_ item: MailItem) -> Bool {
    state.withLock { state in
      state.items.append(item)
      defer { state.isTurnDue = true }
      return !state.isTurnDue
    }
  }

  /// All items, oldest first.
  func take() -> [MailItem] {
    state.withLock { state in
      state.isTurnDue = false
      let items = state.items
      state.items = []
      return items
    }
  }
}
