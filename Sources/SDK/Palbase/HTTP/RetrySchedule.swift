package import PalbeUnits

/// Decides whether and when a request goes out again. A value: no clock, no waiting.
package struct RetrySchedule: Sendable {
  /// Requests at most, the first among them.
  package var attemptLimit = 4
  /// The wait before the second attempt; it doubles.
  package var firstWait = TimeDelta.milliseconds(400)
  /// A wait is never longer than this. A server that asks for more gets no further attempt: its answer, with
  /// `retryAfter`, goes to the caller.
  package var longestWait = TimeDelta.seconds(20)
  /// So long after the first attempt began, no further one begins: somebody waits for the answer.
  package var patience = TimeDelta.seconds(40)
  private var attempts = 0

  package init() {}

  /// What became of an attempt that did not succeed.
  package enum Outcome: Error {
    case fault(NetworkFault, mayHaveArrived: Bool)
    case refused(ServerFailure)
  }

  /// The wait before the next attempt, nil when this was the last.
  /// - Parameters:
  ///   - isRepeatable: the request may arrive twice: it is idempotent, or has an idempotency key.
  ///   - elapsed: since the first attempt began.
  package mutating func wait(
    after outcome: Outcome, isRepeatable: Bool, elapsed: TimeDelta, jitter: (TimeDelta) -> TimeDelta
  ) -> TimeDelta? {
    attempts += 1
    guard attempts < attemptLimit, Self.mayPass(outcome, isRepeatable) else { return nil }
    let doubled = firstWait * (1 << min(attempts - 1, 16))
    var wait = jitter(min(doubled, longestWait))
    if case .refused(let failure) = outcome, let asked = failure.retryAfter {
      let (seconds, attoseconds) = asked.components
      let wanted = TimeDelta.seconds(Double(seconds) + Double(attoseconds) * 1e-18)
      guard wanted <= longestWait else { return nil }
      wait = max(wait, wanted)
    }
    return elapsed + wait < patience ? wait : nil
  }

  private static func mayPass(_ outcome: Outcome, _ isRepeatable: Bool) -> Bool {
    switch outcome {
    case .fault(let fault, let mayHaveArrived):
      guard isRepeatable || !mayHaveArrived else { return false }
      return switch fault {
      case .noConnection, .unknownHost, .timedOut, .connectionLost, .other: true
      case .notTrusted, .answerTooLarge, .file: false
      }
    case .refused(let failure):
      // A rate limit is looked at before anything is done, so nothing was.
      if failure.status == 429 { return true }
      return isRepeatable && [408, 502, 503, 504].contains(failure.status)
    }
  }
}

extension HTTPTransport {
  /// An answer of 200 to 299, else what a schedule wants to know. Throws `CancellationError` alone.
  func outcome(
    of request: TransportRequest
  ) async throws -> Result<TransportAnswer, RetrySchedule.Outcome> {
    do throws(TransportFault) {
      let answer = try await send(request)
      if (200..<300).contains(answer.status) { return .success(answer) }
      return .failure(
        .refused(ServerFailure(status: answer.status, headers: answer.headers, body: answer.body)))
    } catch {
      switch error {
      case .cancelled: throw CancellationError()
      case .failed(let fault, let mayHaveArrived):
        return .failure(.fault(fault, mayHaveArrived: mayHaveArrived))
      }
    }
  }
}
