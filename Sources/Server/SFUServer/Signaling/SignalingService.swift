import PalbeEventLoop
import PalbeSFUCore
import PalbeUnits
import PalbeWebServer
import Synchronization

/// Answers the signaling port: LiveKit's paths `/rtc/v1` and `/rtc`, and a health check.
///
/// | path | answer |
/// |---|---|
/// | `/` | 200 `OK` while every worker turns, else 406 |
/// | `/rtc/v1`, `/rtc` | the WebSocket, or the status of `JoinResolver`; 404 without an upgrade |
/// | `/rtc/v1/validate`, `/rtc/validate` | 200 `success`, or the status that the WebSocket would get |
/// | anything else | 404 |
final class SignalingService: WebServerHandler {
  /// A worker that has not turned for this long is stuck.
  static let healthLimit = TimeDelta.seconds(4)

  private let resolver: JoinResolver
  private let inboxes: [WorkerInbox]
  private let log: ServerLog
  private let isStopping = Atomic<Bool>(false)

  init(keys: [String: String], inboxes: [WorkerInbox], log: ServerLog) {
    resolver = JoinResolver(keys: keys)
    self.inboxes = inboxes
    self.log = log
  }

  /// From now on nobody joins.
  func stop() { isStopping.store(true, ordering: .relaxed) }

  func respond(to request: HTTPRequest) -> HTTPResponse {
    if request.method == "OPTIONS" { return preflight(request) }
    switch (request.method, request.path) {
    case ("GET", "/"), ("HEAD", "/"): return health()
    case ("GET", "/rtc/v1/validate"), ("HEAD", "/rtc/v1/validate"), ("GET", "/rtc/validate"),
      ("HEAD", "/rtc/validate"):
      do throws(JoinRefusal) {
        _ = try resolve(request)
        return answer("success")
      } catch {
        return refuse(error, request)
      }
    default: return answer("not found", status: 404)
    }
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    guard request.path == "/rtc/v1" || request.path == "/rtc" else {
      return .reject(answer("not found", status: 404))
    }
    do throws(JoinRefusal) {
      let details = try resolve(request)
      let inbox = inboxes[RoomPlacement.worker(of: details.grant.room, among: inboxes.count)]
      let connection = SignalingConnection(socket: socket, inbox: inbox)
      // Before the acceptance: a server that is too busy can still say so with a status.
      guard inbox.post(.join(connection, details)) else {
        throw JoinRefusal(status: 503, reason: "the server is overloaded")
      }
      return .accept(connection)
    } catch {
      return .reject(refuse(error, request))
    }
  }

  private func resolve(_ request: HTTPRequest) throws(JoinRefusal) -> JoinDetails {
    guard !isStopping.load(ordering: .relaxed) else {
      throw JoinRefusal(status: 503, reason: "the server is shutting down")
    }
    return try resolver.resolve(request, now: WallClock.unixNanoseconds() / 1_000_000_000)
  }

  private func refuse(_ refusal: JoinRefusal, _ request: HTTPRequest) -> HTTPResponse {
    log.write(
      .info, "join refused",
      [
        ("status", "\(refusal.status)"), ("reason", refusal.reason),
        ("from", request.remoteAddress.description),
      ])
    return answer(refusal.reason, status: refusal.status)
  }

  private func health() -> HTTPResponse {
    let now = MonotonicClock.now()
    let isWell = inboxes.allSatisfy { now - $0.lastTurn < Self.healthLimit }
    return isWell ? answer("OK") : answer("Not Ready", status: 406)
  }

  private func answer(_ text: String, status: Int = 200) -> HTTPResponse {
    .text(text, status: status, headers: [.init("access-control-allow-origin", "*")])
  }

  /// Any origin may ask with any header: the token is what counts. A browser does not take "*" for
  /// Authorization.
  private func preflight(_ request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(
      status: 204,
      headers: [
        .init("access-control-allow-origin", "*"),
        .init("access-control-allow-methods", "OPTIONS, HEAD, GET, POST, PATCH, DELETE"),
        .init(
          "access-control-allow-headers",
          request.header("access-control-request-headers") ?? "*, Authorization"),
        .init("access-control-max-age", "86400"),
      ])
  }

  static var limits: WebServerLimits {
    var limits = WebServerLimits()
    limits.additionalHeaderNames = ["access-control-request-headers"]
    // A session description has at most 256 KiB.
    limits.messageByteCount = 512 << 10
    // There is no request with a body.
    limits.requestBodyByteCount = 4_096
    return limits
  }
}
