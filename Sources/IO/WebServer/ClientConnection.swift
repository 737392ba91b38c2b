import CPalbeLinux
import CPalbeWebSockets
import PalbeUnits
import Synchronization

/// One connection of a client. The queue side is for any thread, the rest for the service thread.
final class ClientConnection: Sendable {
  typealias Outcome = Result<Void, WebSocketClientError>

  /// What other threads touch.
  private struct Shared: Sendable {
    var queue: SendQueue
    var waiter: CheckedContinuation<Outcome, Never>?
    /// Set before the waiter exists, when the time-out or the cancellation is first.
    var outcome: Outcome?
    var closure: WebSocketClosure?
    var isAbandoned = false
    /// Let go with the connection: it may hold the `WebSocketClient`, and that holds us.
    var handler: (any WebSocketHandler)?
  }

  let id: UInt
  let url: WebSocketURL
  let options: WebSocketClient.Options
  private let service: ClientService
  private let shared: Mutex<Shared>
  private static let count = Atomic<UInt>(0)

  init(
    url: WebSocketURL, options: WebSocketClient.Options, handler: any WebSocketHandler, service: ClientService
  ) {
    id = Self.count.wrappingAdd(1, ordering: .relaxed).newValue
    self.url = url
    self.options = options
    self.service = service
    shared = Mutex(Shared(queue: SendQueue(byteLimit: options.sendQueueByteCount), handler: handler))
  }

  var closure: WebSocketClosure? { shared.withLock { $0.closure } }
  var isAbandoned: Bool { shared.withLock { $0.isAbandoned || $0.queue.hasOverflowed } }

  // MARK: Any thread

  func start(_ waiter: CheckedContinuation<Outcome, Never>) {
    let early = shared.withLock { shared in
      if shared.outcome == nil { shared.waiter = waiter }
      return shared.outcome
    }
    if let early { waiter.resume(returning: early) } else { service.post(.connect(self)) }
  }

  /// Ends an attempt to connect; without effect once there is an outcome.
  func fail(_ error: WebSocketClientError) {
    guard settle(.failure(error)) else { return }
    abandon()
  }

  /// Gives the waiter its outcome; false when it has one.
  @discardableResult
  func settle(_ outcome: Outcome) -> Bool {
    let (isFirst, waiter) = shared.withLock { shared in
      guard shared.outcome == nil else { return (false, nil as CheckedContinuation<Outcome, Never>?) }
      shared.outcome = outcome
      defer { shared.waiter = nil }
      return (true, shared.waiter)
    }
    waiter?.resume(returning: outcome)
    return isFirst
  }

  func send(_ message: WebSocketMessage) -> Bool {
    let outcome = shared.withLock { $0.queue.append(message) }
    if outcome != .ignored { service.post(.flush(self)) }
    return outcome == .queued
  }

  func close(_ request: SendQueue.Close) {
    let outcome = shared.withLock { $0.queue.requestClose(request) }
    if outcome != .ignored { service.post(.flush(self)) }
  }

  /// Ends the connection without ceremony.
  func abandon() {
    shared.withLock { $0.isAbandoned = true }
    service.post(.flush(self))
  }

  // MARK: Service thread

  /// The caller's headers. One that would break out of its line is left out.
  var headerLines: String {
    options.headers.filter { field in
      !field.name.isEmpty && field.name.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 58 }
        && field.value.utf8.allSatisfy { $0 >= 32 }
    }.map { "\($0.name): \($0.value)\r\n" }.joined()
  }

  /// Nil once the connection is gone.
  var handler: (any WebSocketHandler)? { shared.withLock { $0.handler } }

  func withQueue<R: Sendable>(_ body: (inout SendQueue) -> R) -> R { shared.withLock { body(&$0.queue) } }

  /// The connection is gone.
  func end(_ closure: WebSocketClosure) {
    let handler = shared.withLock { shared -> (any WebSocketHandler)? in
      guard shared.closure == nil else { return nil }
      shared.closure = closure
      shared.queue.end()
      return shared.handler.take()
    }
    handler?.closed(closure)
  }
}
