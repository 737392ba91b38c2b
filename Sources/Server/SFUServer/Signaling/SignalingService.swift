import PalbeEventLoop
import PalbeLiveKit
import PalbeSFUCore
import PalbeServerObservation
import PalbeUnits
import PalbeWebServer
import Synchronization

/// Answers the signaling port.
///
/// | path | answer |
/// |---|---|
/// | `/` | 200 `OK` while every worker turns, else 406 |
/// | `/ready` | the same, and 406 while the server drains |
/// | `/rtc/v1`, `/rtc` | the WebSocket, or the status of `JoinResolver`; 404 without an upgrade |
/// | `/rtc/v1/validate`, `/rtc/validate` | 200 `success`, or the status that the WebSocket would get |
/// | `/twirp/livekit.RoomService/…` | `RoomService` |
/// | anything else | 404 |
final class SignalingService: WebServerHandler {
  /// A worker that has not turned for this long is stuck.
  static let healthLimit = TimeDelta.seconds(4)

  /// Whom the server still takes in.
  private enum Phase: UInt8 {
    case running
    /// Those who join a room that is there.
    case draining
    case stopping
  }

  private let access: LiveAccess
  private let roomService: RoomService
  private let inboxes: [WorkerInbox]
  private let rooms: LiveRooms
  private let log: ServerLog
  /// Strangers are refused without end: they must not fill the log.
  private let budget = Mutex(LogBudget())
  private let phase = Atomic<UInt8>(Phase.running.rawValue)

  init(access: LiveAccess, inboxes: [WorkerInbox], rooms: LiveRooms, log: ServerLog) {
    self.access = access
    roomService = RoomService(access: access, inboxes: inboxes, rooms: rooms)
    self.inboxes = inboxes
    self.rooms = rooms
    self.log = log
  }

  /// From now on no room begins.
  func drain() { phase.max(Phase.draining.rawValue, ordering: .relaxed) }

  /// From now on nobody joins.
  func stop() { phase.store(Phase.stopping.rawValue, ordering: .relaxed) }

  /// Rooms may begin.
  var isRunning: Bool { phase.load(ordering: .relaxed) == Phase.running.rawValue }

  func refuseBody(of request: HTTPRequest) -> HTTPResponse? {
    RoomService.serves(request.path) ? roomService.refuseBody(of: request) : answer("not found", status: 404)
  }

  func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    if request.method == "OPTIONS" { return responder.send(preflight(request)) }
    if RoomService.serves(request.path) {
      return roomService.respond(to: request, with: responder, acceptsRooms: isRunning)
    }
    guard request.method == "GET" || request.method == "HEAD" else {
      return responder.send(answer("not found", status: 404))
    }
    switch request.path {
    case "/": responder.send(health(isReady: true))
    case "/ready": responder.send(health(isReady: isRunning))
    case "/rtc/v1/validate", "/rtc/validate": responder.send(validate(request))
    default: responder.send(answer("not found", status: 404))
    }
  }

  private func validate(_ request: HTTPRequest) -> HTTPResponse {
    do throws(JoinRefusal) {
      _ = try resolve(request)
      return answer("success")
    } catch {
      return refuse(error, request)
    }
  }

  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    guard request.path == "/rtc/v1" || request.path == "/rtc" else {
      return .reject(answer("not found", status: 404))
    }
    do throws(JoinRefusal) {
      let (details, inbox) = try resolve(request)
      let connection = SignalingConnection(socket: socket, inbox: inbox)
      // Before the acceptance: a server that is too busy can still say so with a status.
      guard inbox.post(.join(connection, details)) else { throw Self.overload }
      return .accept(connection)
    } catch {
      return .reject(refuse(error, request))
    }
  }

  private static let overload = JoinRefusal.unavailable("the server is overloaded")

  /// How somebody joins, and whose room it is. Whoever asks first whether it may hears the same (field fault 18).
  private func resolve(_ request: HTTPRequest) throws(JoinRefusal) -> (JoinDetails, WorkerInbox) {
    let details = try admitted(request)
    let inbox = inboxes[RoomPlacement.worker(of: details.grant.room, among: inboxes.count)]
    guard inbox.hasRoom else { throw Self.overload }
    return (details, inbox)
  }

  private func admitted(_ request: HTTPRequest) throws(JoinRefusal) -> JoinDetails {
    guard phase.load(ordering: .relaxed) < Phase.stopping.rawValue else {
      throw .unavailable("the server is shutting down")
    }
    let details = try access.resolver.resolve(request, now: WallClock.unixSeconds)
    // Who resumes is told by the worker that its session is gone (field fault 16).
    guard !details.request.reconnect, !rooms.contains(details.grant.room) else { return details }
    guard isRunning else { throw .unavailable("the server is shutting down") }
    guard access.createsRooms else {
      // A browser client looks for these words (livekit-protocol.md 1.0, fact 2).
      throw JoinRefusal(status: 404, reason: "requested room does not exist")
    }
    guard rooms.count(beside: details.grant.room) < access.maxRooms else {
      throw .unavailable("the server has as many rooms as it may")
    }
    return details
  }

  private func refuse(_ refusal: JoinRefusal, _ request: HTTPRequest) -> HTTPResponse {
    switch budget.withLock({ $0.take(at: MonotonicClock.now()) }) {
    case .suppress: return answer(refusal.reason, status: refusal.status)
    case .write: break
    case .writeAfter(let count): log.write(.warning, "log lines suppressed", [("count", "\(count)")])
    }
    log.write(
      .info, "join refused",
      [
        ("status", "\(refusal.status)"), ("reason", refusal.reason),
        ("from", request.remoteAddress.description),
      ])
    return answer(refusal.reason, status: refusal.status)
  }

  private func health(isReady: Bool) -> HTTPResponse {
    let now = MonotonicClock.now()
    let isWell = inboxes.allSatisfy { now - $0.lastTurn < Self.healthLimit }
    return isWell && isReady ? answer("OK") : answer("Not Ready", status: 406)
  }

  private func answer(_ text: String, status: Int = 200) -> HTTPResponse {
    .text(text, status: status)
  }

  /// Any origin may ask with any header: the token is what counts. A browser does not take "*" for
  /// Authorization.
  private func preflight(_ request: HTTPRequest) -> HTTPResponse {
    HTTPResponse(
      status: 204,
      headers: [
        .init("access-control-allow-methods", "OPTIONS, HEAD, GET, POST, PATCH, DELETE"),
        .init(
          "access-control-allow-headers",
          request.header("access-control-request-headers") ?? "*, Authorization"),
        .init("access-control-max-age", "86400"),
      ])
  }

  static func limits(_ configured: SFUServer.Configuration.Limits) -> WebServerLimits {
    var limits = WebServerLimits()
    limits.connectionCount = configured.connections
    // Some 50 KiB each, with TLS.
    limits.freshConnectionCount = 1_024
    limits.perAddress.connectionCount = configured.connectionsPerAddress
    limits.perAddress.connectionsPerSecond = configured.newConnectionsPerAddress
    limits.perAddress.connectionBurst = configured.newConnectionsPerAddress * 10
    limits.perAddress.requestsPerSecond = configured.requestsPerAddress
    limits.perAddress.requestBurst = configured.requestsPerAddress * 10
    limits.additionalHeaderNames = ["access-control-request-headers"]
    // Refusals too: a browser shows a script nothing without it.
    limits.commonHeaders = [.init("access-control-allow-origin", "*")]
    // A session description has at most 256 KiB, metadata 512.
    limits.messageByteCount = 1 << 20
    // Twice what a room's participants may have in metadata, which one message tells who joins.
    limits.sendQueueByteCount = 16 << 20
    limits.requestBodyByteCount = LiveKit.RoomServiceLimits().body
    return limits
  }
}
