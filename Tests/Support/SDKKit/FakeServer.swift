import Foundation
import Palbase
import PalbeUnits
import Synchronization

/// The routes that the SDK's ground uses, after the wire of the delivery server, in memory: accounts with rotating
/// refresh tokens and theft detection, and push tokens.
public final class FakeServer: Sendable {
  /// A request as the server sees it, header names in lower case.
  public struct Request: Sendable {
    public var method: String
    public var path: String
    public var headers: [String: String]
    public var body: [UInt8]

    public init(method: String, path: String, headers: [String: String], body: [UInt8]) {
      self.method = method
      self.path = path
      self.headers = headers
      self.body = body
    }
  }

  struct Session {
    var id: String
    var user: String
    var accessTokens: [String: Int64] = [:]
    var refreshToken: String
    /// The one before, and when it was used.
    var previous: (token: String, at: Int64)?
  }

  struct State {
    var passwords: [String: String] = [:]
    var users: [String: String] = [:]
    var sessions: [String: Session] = [:]
    var answers: [String: TransportAnswer] = [:]
    var usedRefreshTokens: [String] = []
    var requests: [Request] = []
    var pushTokens: [String: String] = [:]
    var devices: Set<String> = []
    var count = 0
    let accessLifetime = 600
  }
  let state = Mutex(State())
  private let milliseconds: @Sendable () -> Int64

  /// - Parameter milliseconds: the server's clock.
  public init(milliseconds: @escaping @Sendable () -> Int64) { self.milliseconds = milliseconds }

  public var requests: [Request] { state.withLock { $0.requests } }
  /// How often a refresh route gave new tokens.
  public var refreshCount: Int { state.withLock { $0.usedRefreshTokens.count } }
  /// Every token that was taken, in order.
  public var usedRefreshTokens: [String] { state.withLock { $0.usedRefreshTokens } }
  public var sessionCount: Int { state.withLock { $0.sessions.count } }
  /// Platform and token by device.
  public var pushTokens: [String: String] { state.withLock { $0.pushTokens } }

  /// Ends all sessions.
  public func revokeAll() { state.withLock { $0.sessions = [:] } }
  /// Access tokens are over before their time.
  public func forgetAccessTokens() {
    state.withLock { state in for id in state.sessions.keys { state.sessions[id]!.accessTokens = [:] } }
  }
  /// Knows a device token.
  public func enrol(_ deviceToken: String) { _ = state.withLock { $0.devices.insert(deviceToken) } }
  public func forgetDevices() { state.withLock { $0.devices = [] } }

  package func answer(_ request: Request) -> TransportAnswer {
    state.withLock { state in
      state.requests.append(request)
      // As the server: the first answer is the answer.
      let key = request.headers["idempotency-key"].map { "\($0) \(request.path)" }
      if let key, let known = state.answers[key] { return known }
      let answer = route(request, &state)
      if let key, answer.status < 500, answer.status != 429 { state.answers[key] = answer }
      return answer
    }
  }

  private func route(_ request: Request, _ state: inout State) -> TransportAnswer {
    let body = (try? JSONSerialization.jsonObject(with: Data(request.body))) as? [String: String] ?? [:]
    switch (request.method, request.path) {
    case ("POST", "/v1/auth/sign-up"):
      guard let email = body["email"], let password = body["password"] else {
        return refuse(400, "invalid_request")
      }
      guard state.passwords[email] == nil else { return refuse(409, "account_exists") }
      guard password.count >= 8 else { return refuse(422, "weak_password") }
      state.passwords[email] = password
      state.users[email] = "usr_\(email)"
      return begin("usr_\(email)", isNew: true, &state)
    case ("POST", "/v1/auth/sign-in"):
      guard let email = body["email"], state.passwords[email] == body["password"],
        let user = state.users[email]
      else { return refuse(401, "invalid_credentials") }
      return begin(user, isNew: false, &state)
    case ("POST", "/v1/auth/token"):
      guard let token = body["id_token"] else { return refuse(400, "invalid_request") }
      return begin("usr_\(token)", isNew: false, &state)
    case ("POST", "/v1/auth/refresh"): return refresh(body["refresh_token"] ?? "", &state)
    case ("GET", "/v1/echo"):
      guard session(request, state) != nil else { return refuse(401, "session_expired") }
      return TransportAnswer(status: 200, body: Array(#"{"ok":true}"#.utf8))
    case ("POST", "/v1/auth/sign-out"):
      guard let session = session(request, state) else { return refuse(401, "session_expired") }
      state.sessions[session.id] = nil
      return TransportAnswer(status: 204)
    case ("GET", "/v1/auth/sessions"):
      guard let session = session(request, state) else { return refuse(401, "session_expired") }
      let own = state.sessions.values.filter { $0.user == session.user }.map {
        ["id": $0.id, "created_at_ms": 1, "last_used_at_ms": 2, "is_current": $0.id == session.id]
          as [String: Any]
      }
      return TransportAnswer(
        status: 200, body: [UInt8](try! JSONSerialization.data(withJSONObject: ["sessions": own])))
    case ("POST", "/v1/auth/password"):
      guard let session = session(request, state) else { return refuse(401, "session_expired") }
      guard let email = state.users.first(where: { $0.value == session.user })?.key,
        state.passwords[email] == body["current"]
      else { return refuse(401, "invalid_credentials") }
      state.passwords[email] = body["new"]
      state.sessions = state.sessions.filter { $0.key == session.id || $0.value.user != session.user }
      return TransportAnswer(status: 204)
    case ("DELETE", let path) where path.hasPrefix("/v1/auth/sessions/"):
      guard session(request, state) != nil else { return refuse(401, "session_expired") }
      state.sessions[String(path.dropFirst(18))] = nil
      return TransportAnswer(status: 204)
    case ("PUT", let path) where path.hasPrefix("/v1/devices/") && path.hasSuffix("/push-token"):
      guard session(request, state) != nil else { return refuse(401, "session_expired") }
      guard let device = request.headers["palbe-device"], state.devices.contains(device) else {
        return refuse(412, "device_not_enrolled")
      }
      // The path names the device that asks.
      guard !device.hasPrefix("device token ") || path.contains("/\(device.dropFirst(13))/") else {
        return refuse(403, "forbidden")
      }
      state.pushTokens["\(path.split(separator: "/")[2]) \(body["platform"] ?? "")"] = body["token"]
      return TransportAnswer(status: 204)
    default: return refuse(404, "not_found")
    }
  }

  private func begin(_ user: String, isNew: Bool, _ state: inout State) -> TransportAnswer {
    state.count += 1
    let id = "ses_\(state.count)"
    state.sessions[id] = Session(id: id, user: user, refreshToken: "")
    return tokens(id, isNew: isNew, &state)
  }

  private func tokens(_ id: String, isNew: Bool, _ state: inout State) -> TransportAnswer {
    state.count += 1
    let (access, refresh) = ("at-\(state.count)", "rt-\(state.count)")
    state.sessions[id]!.refreshToken = refresh
    state.sessions[id]!.accessTokens[access] = milliseconds() + Int64(state.accessLifetime) * 1_000
    let answer: [String: Any] = [
      "user_id": state.sessions[id]!.user, "session_id": id, "access_token": access,
      "access_expires_in": state.accessLifetime, "refresh_token": refresh, "refresh_expires_in": 2_592_000,
      "is_new_user": isNew,
    ]
    return TransportAnswer(
      status: 200, body: [UInt8](try! JSONSerialization.data(withJSONObject: answer)))
  }

  private func refresh(_ token: String, _ state: inout State) -> TransportAnswer {
    if let id = state.sessions.first(where: { $0.value.refreshToken == token })?.key {
      state.sessions[id]!.previous = (token, milliseconds())
      state.usedRefreshTokens.append(token)
      return tokens(id, isNew: false, &state)
    }
    guard let (id, session) = state.sessions.first(where: { $0.value.previous?.token == token }) else {
      return refuse(401, state.usedRefreshTokens.contains(token) ? "refresh_token_reused" : "session_expired")
    }
    if milliseconds() - session.previous!.at <= 30_000 { return tokens(id, isNew: false, &state) }
    state.sessions[id] = nil
    return refuse(401, "refresh_token_reused")
  }

  private func session(_ request: Request, _ state: borrowing State) -> Session? {
    guard let token = request.headers["authorization"]?.dropFirst("Bearer ".count) else { return nil }
    let now = milliseconds()
    return state.sessions.values.first { $0.accessTokens[String(token)].map { $0 > now } == true }
  }

  private func refuse(_ status: Int, _ code: String) -> TransportAnswer {
    TransportAnswer(
      status: status, headers: ["request-id": "r-\(code)"],
      body: Array(#"{"code":"\#(code)","status":\#(status),"message":"no","request_id":"r-\#(code)"}"#.utf8))
  }
}

/// Carries requests to a `FakeServer` without a socket, and loses what a test wants to be lost.
public final class FakeTransport: HTTPTransport {
  /// What happens to one exchange.
  package enum Accident: Sendable {
    /// The request does not arrive.
    case requestLost
    /// The request arrives, its answer does not.
    case answerLost
    /// Something in between answers.
    case answered(TransportAnswer)
  }

  public let server: FakeServer
  private let accidents = Mutex<[Accident]>([])
  private let log = Mutex<[TransportRequest]>([])

  public init(server: FakeServer) { self.server = server }

  /// What happens to the next exchanges, in order; then all is well.
  package func prepare(_ accidents: Accident...) { self.accidents.withLock { $0 += accidents } }

  /// Everything that was sent.
  package var sent: [TransportRequest] { log.withLock { $0 } }

  package func send(_ request: TransportRequest) async throws(TransportFault) -> TransportAnswer {
    await Task.yield()
    log.withLock { $0.append(request) }
    let accident = accidents.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    switch accident {
    case .requestLost: throw .failed(.noConnection, mayHaveArrived: false)
    case .answered(let answer): return answer
    case .answerLost, nil: break
    }
    var body: [UInt8] = []
    if case .bytes(let bytes) = request.body { body = bytes }
    let path = String(request.url.dropFirst("https://palbe.test".count).prefix { $0 != "?" })
    let answer = server.answer(
      .init(
        method: request.method, path: path,
        headers: Dictionary(request.headers.map { ($0.name.lowercased(), $0.value) }) { $1 }, body: body))
    if case .answerLost = accident { throw .failed(.connectionLost, mayHaveArrived: true) }
    return answer
  }
}
