import Synchronization

/// The sending half of a WebSocket of the server. Any thread may use it, at any time, also after its end.
public final class WebSocket: Sendable {
  private let queue: Mutex<SendQueue>
  private let wake: @Sendable (WebSocket) -> Void
  /// A number that no other socket of the process has.
  public let id: UInt64

  private static let count = Atomic<UInt64>(0)

  /// - Parameter wake: called after each change, outside of locks.
  init(queueByteLimit: Int, wake: @escaping @Sendable (WebSocket) -> Void) {
    queue = Mutex(SendQueue(byteLimit: queueByteLimit))
    self.wake = wake
    id = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Queues a binary message.
  /// - Returns: false when the socket is closing or gone, or when the queue's limit is passed: the peer is
  /// then too
  ///   slow and its connection is ended.
  @discardableResult
  public func send(binary bytes: [UInt8]) -> Bool { send(.binary(bytes)) }

  /// Queues a text message. Returns as `send(binary:)` does.
  @discardableResult
  public func send(text: String) -> Bool { send(.text(text)) }

  private func send(_ message: WebSocketMessage) -> Bool {
    let outcome = queue.withLock { $0.append(message) }
    if outcome != .ignored { wake(self) }
    return outcome == .queued
  }

  /// Sends what is queued, then a close frame, then ends. Only the first call counts.
  /// - Parameter code: 1000 (normal), 1001 (going away), 1008 (policy), 1011 (internal error), or 3000 to
  /// 4999.
  /// - Parameter reason: at most 123 bytes of UTF-8; what is longer is cut.
  public func close(code: UInt16 = 1_000, reason: String = "") {
    end(.init(code: code, reason: reason), discarding: false)
  }

  /// As `close`, but forgets what is queued: for a peer that reads too slowly. One that does not even read the close frame
  /// is cut off after a few seconds.
  public func abort(code: UInt16, reason: String = "") {
    end(.init(code: code, reason: reason), discarding: true)
  }

  private func end(_ request: SendQueue.Close, discarding: Bool) {
    let outcome = queue.withLock { $0.requestClose(request, discarding: discarding) }
    if outcome != .ignored { wake(self) }
  }

  /// Bytes queued and not yet handed to the network, an estimate for diagnosis.
  public var queuedByteCount: Int { queue.withLock { $0.byteCount } }

  func withQueue<R>(_ body: (inout SendQueue) -> R) -> R { queue.withLock { body(&$0) } }
}
