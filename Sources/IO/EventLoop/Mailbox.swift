import Synchronization

/// Carries messages from many threads to the one that owns a `Poller`; bounded, so that a slow owner is
/// noticed.
///
/// The owner watches `wakeUp.fileDescriptor` and calls `drain` when it is readable.
public final class Mailbox<Message: Sendable>: Sendable {
  private struct State {
    var messages: [Message] = []
    var isClosed = false
  }

  /// Places that are kept for later. What a crowd at once has taken beyond is given back when it is drained.
  private static var keptCount: Int { 256 }

  /// Readable while messages may wait.
  public let wakeUp: WakeUp
  /// The most messages that wait at once.
  public let capacity: Int
  private let state = Mutex(State())

  /// Fails when the process has no descriptor left.
  public init(capacity: Int) throws(SystemError) {
    wakeUp = try WakeUp()
    self.capacity = capacity
  }

  /// Leaves a message and wakes the owner.
  /// - Returns: false when the mailbox is full or closed; the message is then dropped.
  @discardableResult
  public func send(_ message: Message) -> Bool {
    let (accepted, mustWake) = state.withLock { state in
      guard !state.isClosed, state.messages.count < capacity else { return (false, false) }
      state.messages.append(message)
      return (true, state.messages.count == 1)
    }
    if mustWake { wakeUp.wake() }
    return accepted
  }

  /// False when a message would be refused.
  public var hasRoom: Bool { state.withLock { !$0.isClosed && $0.messages.count < capacity } }

  /// Replaces `messages` by all that wait, oldest first. Handing in the same array each time keeps its
  /// storage, up to 256 messages.
  public func drain(into messages: inout [Message]) {
    messages.removeAll(keepingCapacity: messages.capacity <= Self.keptCount)
    wakeUp.drain()
    state.withLock { swap(&$0.messages, &messages) }
  }

  /// Refuses further messages. What waits can still be drained.
  public func close() {
    state.withLock { $0.isClosed = true }
    wakeUp.wake()
  }
}
