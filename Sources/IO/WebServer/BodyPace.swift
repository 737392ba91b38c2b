import CPalbeWebSockets
import PalbeEventLoop
import PalbeUnits

/// Whether a request's body comes fast enough, so that nobody holds a connection with a byte now and then.
///
/// Each window has to bring its bytes; a fast beginning is no credit for the rest. While our side does not read, nothing is late.
struct BodyPace {
  /// The least bytes a second; 0 for none.
  let rate: Int
  /// Over which the rate is looked at.
  let window: TimeDelta
  /// When all of it must be there; nil for a body of any length.
  let deadline: Instant?
  private var windowBegan: Instant
  private var count = 0
  private var isPaused = false

  /// A body that begins.
  /// - Parameter time: for all of it; nil as long as it takes.
  init(rate: Int, window: TimeDelta, time: TimeDelta?, at now: Instant) {
    self.rate = rate
    self.window = window
    deadline = time.map { now + $0 }
    windowBegan = now
  }

  mutating func received(_ byteCount: Int) { count += byteCount }

  mutating func pause() { isPaused = true }

  mutating func resume(at now: Instant) {
    isPaused = false
    windowBegan = now
    count = 0
  }

  /// Asked now and then.
  mutating func isTooSlow(at now: Instant) -> Bool {
    if let deadline, deadline <= now { return true }
    let span = now - windowBegan
    guard !isPaused, span >= window else { return false }
    defer {
      windowBegan = now
      count = 0
    }
    return Double(count) < Double(rate) * span.inSeconds
  }
}

extension ServerService {
  /// Before the library's own time is over, which only closes.
  private var paceInterval: Int64 { limits.requestTimeout.nanoseconds / 2_000 }

  /// A piece of a body has come, and others are to come or not.
  func paced(_ identity: OpaquePointer, _ connection: ServerConnection, _ byteCount: Int) {
    connection.bodyRemaining -= Int64(byteCount)
    // An answer that is there needs the timer.
    guard connection.answer == nil else { return }
    guard connection.bodyRemaining > 0 else {
      if connection.pace.take() != nil { palbe_lws_call_after(identity, -1) }
      return
    }
    if connection.pace == nil {
      // Most bodies come in one piece and need no clock.
      let isStreamed = connection.upload != nil
      connection.pace = BodyPace(
        rate: limits.bodyRate, window: isStreamed ? limits.streamTimeout : limits.requestTimeout,
        time: isStreamed ? nil : limits.bodyTimeout, at: MonotonicClock.now())
      palbe_lws_call_after(identity, paceInterval)
    }
    connection.pace?.received(byteCount)
  }

  /// The connection's timer in the middle of a body.
  func checkPace(_ identity: OpaquePointer, _ connection: ServerConnection) -> Int32 {
    guard connection.pace?.isTooSlow(at: MonotonicClock.now()) == true else {
      if connection.upload?.isPaused != true {
        palbe_lws_await_body(identity, Int32(clamping: limits.requestTimeout.wholeSeconds))
      }
      palbe_lws_call_after(identity, paceInterval)
      return 0
    }
    connection.pace = nil
    guard let response = tooSlow(connection) else { return -1 }
    return write(identity, response)
  }

  /// The answer to a body that is given up, or nil when there is another one.
  func tooSlow(_ connection: ServerConnection) -> HTTPResponse? {
    connection.mayStayOpen = false
    if let request = takeCollected(connection) { return refusal(.tooSlow, of: request) }
    guard connection.upload?.isComplete == false, connection.answer == nil else { return nil }
    defer { forgetUpload(connection) }
    return connection.responder?.expire(\.tooSlow)
  }

  /// The request whose body was being collected, without it.
  func takeCollected(_ connection: ServerConnection) -> HTTPRequest? {
    guard var request = connection.request.take() else { return nil }
    bodiesByteCount -= request.body.count
    request.body = []
    return request
  }
}
