import Synchronization

/// Answers one plain request, at once or later, from any thread.
///
///     func respond(to request: HTTPRequest, with responder: HTTPResponder) {
///       worker.ask(question) { responder.send(.text($0)) }
///     }
///
/// Only the first answer counts. A client that is gone is not noticed: its answer is dropped. When none
/// comes within `WebServerLimits.responseTimeout`, or the last reference goes without one, `late` is sent.
public final class HTTPResponder: Sendable {
  /// Where an answer stands.
  private enum State: Sendable {
    /// The handler has not returned.
    case open
    /// The handler has answered before it returned.
    case answered(HTTPResponse)
    /// The handler has returned without an answer.
    case deferred
    case done
  }

  /// Given in time to the service thread.
  private let state = Mutex(State.open)
  private let lateAnswer = Mutex(HTTPResponse.text("no answer came in time", status: 503))
  private let slowAnswer = Mutex(HTTPResponse.text(RequestRefusal.tooSlow.reason, status: 408))
  private let observer = Mutex<(@Sendable (Int) -> Void)?>(nil)
  private let deliver: @Sendable (HTTPResponse) -> Void
  private let resume: @Sendable () -> Void

  /// - Parameters:
  ///   - deliver: takes an answer that was not there when the handler returned; on any thread.
  ///   - resume: lets the body's reading go on.
  init(
    deliver: @escaping @Sendable (HTTPResponse) -> Void, resume: @escaping @Sendable () -> Void = {}
  ) {
    self.deliver = deliver
    self.resume = resume
  }

  /// For tests of handlers: `deliver` gets the answer.
  public static func forTests(deliver: @escaping @Sendable (HTTPResponse) -> Void) -> HTTPResponder {
    let responder = HTTPResponder(deliver: deliver)
    responder.state.withLock { $0 = .deferred }
    return responder
  }

  deinit {
    guard case .deferred = state.withLock({ $0 }) else { return }
    let late = late
    tell(late)
    deliver(late)
  }

  /// What is sent when no answer comes.
  public var late: HTTPResponse {
    get { lateAnswer.withLock { $0 } }
    set { lateAnswer.withLock { $0 = newValue } }
  }

  /// What is sent when a body that goes to a sink does not come in time; its status is 408.
  public var tooSlow: HTTPResponse {
    get { slowAnswer.withLock { $0 } }
    set { slowAnswer.withLock { $0 = newValue } }
  }

  /// Is told the answer's status when there is one, also that of `late`: for logs and metrics. Set it before the answer.
  public func whenAnswered(_ body: @escaping @Sendable (Int) -> Void) { observer.withLock { $0 = body } }

  private func tell(_ response: HTTPResponse) { observer.withLock { $0.take() }?(response.status) }

  /// Answers; without effect after the first time.
  public func send(_ response: HTTPResponse) {
    let (isFirst, isLater) = state.withLock { state in
      switch state {
      case .open:
        state = .answered(response)
        return (true, false)
      case .deferred:
        state = .done
        return (true, true)
      case .answered, .done: return (false, false)
      }
    }
    if isFirst { tell(response) }
    if isLater { deliver(response) }
  }

  /// Reads on, after an `HTTPBodySink` had said to wait; on any thread.
  public func resumeBody() { resume() }

  // MARK: The service thread

  /// The handler has returned: its answer, or nil when that comes later.
  func takeOrDefer() -> HTTPResponse? {
    state.withLock { state in
      if case .answered(let response) = state {
        state = .done
        return response
      }
      if case .open = state { state = .deferred }
      return nil
    }
  }

  /// The time is over; nil when an answer is already on its way.
  func expire(_ answer: KeyPath<HTTPResponder, HTTPResponse> = \.late) -> HTTPResponse? {
    let isFirst = state.withLock { state in
      guard case .deferred = state else { return false }
      state = .done
      return true
    }
    guard isFirst else { return nil }
    let late = self[keyPath: answer]
    tell(late)
    return late
  }
}
