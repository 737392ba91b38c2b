import Foundation
import PalbeUnits

/// Sends calls to one server and repeats them as `RetrySchedule` says. It knows nothing of sessions.
package struct HTTPClient: Sendable {
  package let server: ServerURL
  package let transport: any HTTPTransport
  package let time: Timebase

  package init(server: ServerURL, transport: any HTTPTransport, time: Timebase) {
    self.server = server
    self.transport = transport
    self.time = time
  }

  /// The answer with a status of 200 to 299; every other one is thrown.
  package func send(
    _ call: BackendCall, headers: [TransportRequest.Field] = []
  ) async throws -> BackendAnswer {
    let request = request(for: call, headers)
    var schedule = call.schedule
    let start = time.now()
    while true {
      switch try await transport.outcome(of: request) {
      case .success(let answer):
        return BackendAnswer(status: answer.status, headers: answer.headers, body: answer.body)
      case .failure(let outcome):
        guard
          let wait = schedule.wait(
            after: outcome, isRepeatable: call.isRepeatable, elapsed: time.now() - start,
            jitter: time.jittered)
        else {
          switch outcome {
          case .fault(let fault, _): throw BackendError.unreachable(fault)
          case .refused(let failure): throw BackendError.server(failure)
          }
        }
        try await time.sleep(wait)
      }
    }
  }

  private func request(for call: BackendCall, _ headers: [TransportRequest.Field]) -> TransportRequest {
    var request = TransportRequest(method: call.method, url: server.route(call.path, call.query))
    request.timeout = call.timeout
    request.headers =
      [.init("Accept", "application/json"), .init("User-Agent", Self.userAgent)] + headers
    if let body = call.body {
      request.body = .bytes(body)
      request.headers.append(.init("Content-Type", call.contentType))
    }
    if let key = call.idempotencyKey { request.headers.append(.init("Idempotency-Key", key)) }
    return request
  }

  #if canImport(Darwin)
    private static let userAgent = "palbe-swift/\(Release.version) (apple)"
  #else
    private static let userAgent = "palbe-swift/\(Release.version) (linux)"
  #endif
}
