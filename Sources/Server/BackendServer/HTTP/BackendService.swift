import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeUnits
import PalbeWebServer
import PalbeWire
import Synchronization

/// What the web server answers: routes, errors, and the realtime socket.
///
/// Its calls come from the web server's thread. What the head of a request tells (path, method, tokens, length) is checked
/// before memory is given to its body.
package final class BackendService: WebServerHandler {
  /// A part of the server that answers some requests by itself.
  package protocol Part: Sendable {
    /// True when the request is its own; it then answers, now or later.
    func respond(to request: HTTPRequest, with responder: HTTPResponder) -> Bool
    /// Whether a path is its own.
    func owns(_ request: HTTPRequest) -> Bool
    /// How the body of a request of its own is taken.
    func body(of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder) -> HTTPBodyDecision
    /// Its name in metrics.
    var name: String { get }
  }

  private let table: RouteTable
  private let loop: BackendLoop
  private let verifier: any SessionVerifier
  private let tokens: DeviceTokens
  private let hub: RealtimeHub
  private let parts: [any Part]
  private let metrics: RequestMetrics
  private let requestIDs = RequestIDs()
  private let isDraining = Atomic<Bool>(false)
  /// Bytes of a message, as the backend takes it: a longer one is refused before it is read.
  private let messageByteCount: Atomic<Int>

  init(
    table: RouteTable, loop: BackendLoop, limits: BackendLimits, verifier: any SessionVerifier,
    tokens: DeviceTokens, hub: RealtimeHub, parts: [any Part], metrics: RequestMetrics
  ) {
    messageByteCount = Atomic(limits.messageByteCount)
    self.metrics = metrics
    self.table = table
    self.loop = loop
    self.verifier = verifier
    self.tokens = tokens
    self.hub = hub
    self.parts = parts
  }

  /// What the backend takes from now on.
  func setLimits(_ limits: BackendLimits) {
    messageByteCount.store(limits.messageByteCount, ordering: .relaxed)
  }

  /// From now on new requests are refused with 503, and sockets end; what waits is still answered.
  package func drain() {
    isDraining.store(true, ordering: .relaxed)
    loop.drain()
    hub.drain()
  }

  // MARK: Requests

  /// A request that may be read.
  private struct Admitted {
    let route: Route
    var path = JSONObject()
    var caller: Caller?
    var session: VerifiedSession?
    /// Of a session, to be looked at again when an answer was long in coming.
    var token: String?
  }

  package func body(
    of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder
  ) -> HTTPBodyDecision {
    do throws(APIError) {
      guard let part = parts.first(where: { $0.owns(request) }) else {
        _ = try admit(request, table.match(request.method, request.path))
        return .collect
      }
      guard !isDraining.load(ordering: .relaxed) else { throw APIError(.unavailable(.overloaded)) }
      let (request, requestID) = requestIDs.named(request)
      let decision = part.body(of: request, byteCount: byteCount, responder: responder)
      switch decision {
      case .collect: break
      case .refuse(let refusal): metrics.refused(part.name, refusal.status, requestID)
      case .stream: begin(responder, requestID).route = part.name
      }
      return decision
    } catch { return .refuse(refused(request, as: routeName(request), error)) }
  }

  /// What the web server refuses by itself is a refusal like all others.
  package func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse {
    // Of whom there are too many, not even the path is looked at.
    refused(
      request, as: refusal == .tooManyRequests ? "none" : routeName(request), APIError(refusal))
  }

  private func routeName(_ request: HTTPRequest) -> String {
    parts.first { $0.owns(request) }?.name ?? table.match(request.method, request.path).name
  }

  /// Counts and answers a request whose body was not read.
  private func refused(_ request: HTTPRequest, as name: String, _ error: APIError) -> HTTPResponse {
    let requestID = requestIDs.named(request).id
    metrics.refused(name, error.status, requestID)
    return response(error, requestID)
  }

  /// From now on the request is counted, and refused when no answer comes.
  private func begin(_ responder: HTTPResponder, _ requestID: String) -> RequestMetrics.Trace {
    responder.late = response(APIError(.unavailable(.busy)), requestID)
    responder.tooSlow = response(APIError(RequestRefusal.tooSlow), requestID)
    return metrics.begin(responder, requestID)
  }

  package func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    let (request, requestID) = requestIDs.named(request)
    let trace = begin(responder, requestID)
    do throws(APIError) {
      for part in parts where part.owns(request) {
        trace.route = part.name
        guard !isDraining.load(ordering: .relaxed) else { throw APIError(.unavailable(.overloaded)) }
        if part.respond(to: request, with: responder) { return }
      }
      let match = table.match(request.method, request.path)
      trace.route = match.name
      let admitted = try admit(request, match)
      let input = RouteInput(
        caller: admitted.caller, session: admitted.session, address: request.remoteAddress,
        userAgent: request.header("user-agent") ?? "", requestID: requestID, path: admitted.path,
        query: try values(request, of: admitted.route.query),
        body: try body(request, admitted.route))
      switch admitted.route.service {
      case .elsewhere: throw .notFound
      case .shell(let make):
        var response = try make(input)
        response.headers.append(.init("request-id", requestID))
        responder.send(response)
      case .later(let serve):
        serve(input) { [self] result in
          switch result {
          case .success(let text): responder.send(response(text, requestID))
          case .failure(let error): responder.send(response(error, requestID))
          }
        }
      case .backend(let ask, let write):
        guard let caller = admitted.caller else { throw APIError(.notSignedIn) }
        let key = try idempotencyKey(request, admitted.route)
        let call = BackendCall(try ask(input), from: caller, idempotencyKey: key)
        let patience = input.query.integer("wait").flatMap { wait in
          wait > 0 ? LoopPatience(atMost: .seconds(Int(wait))) : nil
        }
        loop.ask(call, patience: patience) { [self] result in
          do throws(APIError) {
            if patience != nil, let token = admitted.token { try checkSession(token) }
            tell(call, result, admitted.session)
            responder.send(try self.response(to: result, input, write, requestID))
          } catch {
            responder.send(response(error, requestID))
          }
        }
      }
    } catch {
      responder.send(response(error, requestID))
    }
  }

  private func response(
    to result: Result<BackendResponse, BackendFailure>, _ input: RouteInput,
    _ write: @Sendable (BackendResponse, RouteInput) throws(APIError) -> JSONText?, _ requestID: String
  ) throws(APIError) -> HTTPResponse {
    let text: JSONText?
    switch result {
    case .success(let response): text = try write(response, input)
    case .failure(let failure): throw APIError(failure)
    }
    return response(text, requestID)
  }

  /// The verifier of sessions hears which device has which.
  private func tell(
    _ call: BackendCall, _ result: Result<BackendResponse, BackendFailure>, _ session: VerifiedSession?
  ) {
    switch (call.request, result) {
    case (.enrolDevice, .success(.enrolled(let device))):
      if let session { verifier.enrolled(device, with: session.session) }
    case (.revokeDevice(let device), .success): verifier.revoked(device)
    default: break
    }
  }

  private func response(_ text: JSONText?, _ requestID: String) -> HTTPResponse {
    let id = HTTPRequest.Field("request-id", requestID)
    guard let text else { return HTTPResponse(status: 204, headers: [id]) }
    return HTTPResponse(
      status: 200, headers: [.init("content-type", "application/json"), id], body: text.bytes)
  }

  private func response(_ error: APIError, _ requestID: String) -> HTTPResponse {
    var response = error.response(requestID: requestID)
    if error.status == 401 {
      response.headers.append(.init("www-authenticate", "Bearer"))
    }
    if error.status == 405, case .text(let methods)? = error.details.first?.value {
      response.headers.append(.init("allow", methods))
    }
    return response
  }

  /// Everything that the head tells.
  private func admit(_ request: HTTPRequest, _ match: RouteTable.Match) throws(APIError) -> Admitted {
    let (route, found): (Route, [String: String])
    switch match {
    case .route(let matched, let names): (route, found) = (matched, names)
    case .methods(let methods):
      throw APIError(
        "method_not_allowed", 405, "this path has other methods",
        details: [.init(name: "allow", value: .text(methods.joined(separator: ", ")))])
    case .nothing: throw .notFound
    }
    guard !isDraining.load(ordering: .relaxed) else { throw APIError(.unavailable(.overloaded)) }
    var admitted = Admitted(route: route)
    if route.access != .open {
      let token = try bearer(request)
      let session = try session(token)
      admitted.token = token
      admitted.session = session
      admitted.caller = Caller(user: session.user, device: nil)
      if route.access == .device {
        admitted.caller = Caller(
          user: session.user, device: try device(request.header("palbe-device"), of: session.user))
      }
    }
    if let length = request.header("content-length").flatMap({ Int($0) }) {
      let limit = partByteCount(of: route)
      // The type tells only for the few that lie between the two.
      guard length <= limit || length <= route.bodyByteCount && type(of: request) != Self.bytesType else {
        throw APIError(.messageTooLarge(limit: limit))
      }
    }
    var path: [String: JSONValue] = [:]
    for (name, text) in found {
      guard let value = Route.pathShapes[name]?.value(of: text) else {
        throw .invalid(name, "the path does not have an identifier where it needs one")
      }
      path[name] = value
    }
    admitted.path = JSONObject(path)
    return admitted
  }

  private func session(_ token: String) throws(APIError) -> VerifiedSession {
    do throws(BackendFailure) { return try verifier.session(token: token) } catch { throw APIError(error) }
  }

  private func checkSession(_ token: String) throws(APIError) { _ = try session(token) }

  private func bearer(_ request: HTTPRequest) throws(APIError) -> String {
    guard let field = request.header("authorization"), field.utf8.count > 7,
      field.prefix(7).lowercased() == "bearer "
    else { throw APIError(.notSignedIn) }
    return String(field.dropFirst(7))
  }

  private func device(_ token: String?, of user: UserID) throws(APIError) -> DeviceID {
    guard let token, let device = tokens.device(token, of: user) else {
      throw APIError(.deviceNotEnrolled)
    }
    return device
  }

  // MARK: Parts of a request

  private func values(_ request: HTTPRequest, of fields: [Shape.Field]) throws(APIError) -> JSONObject {
    var values: [String: JSONValue] = [:]
    for field in fields {
      guard let text = request.query(field.name) else {
        guard !field.isRequired else { throw .invalid(field.name, "the query needs \(field.name)") }
        continue
      }
      guard let value = field.shape.value(of: text) else {
        throw .invalid(field.name, "the query's \(field.name) is to be \(field.shape.expectation)")
      }
      values[field.name] = value
    }
    return JSONObject(values)
  }

  private func body(_ request: HTTPRequest, _ route: Route) throws(APIError) -> JSONObject {
    switch route.body {
    case .none: return JSONObject()
    case .json(let record):
      try check(request, ["application/json"])
      return try record.read(request.body, limit: route.bodyByteCount)
    case .jsonOrBytes(let record, let member):
      let limit = partByteCount(of: route)
      guard try check(request, ["application/json", Self.bytesType]) == 1 else {
        do throws(APIError) { return try record.read(request.body, limit: route.bodyByteCount) } catch {
          // What is too long for the whole is so for its part.
          throw error.code == "message_too_large" ? APIError(.messageTooLarge(limit: limit)) : error
        }
      }
      var object = try values(request, of: record.fields.filter { $0.name != member })
      guard request.body.count <= limit else { throw APIError(.messageTooLarge(limit: limit)) }
      guard !request.body.isEmpty else { throw .invalid(member, "the body is empty") }
      object.set(member, .bytes(request.body))
      return object
    }
  }

  private static let bytesType = "application/octet-stream"

  /// The most bytes that a body is refused for by name: those of a message, in whatever it is wrapped, else the whole's.
  private func partByteCount(of route: Route) -> Int {
    if case .jsonOrBytes = route.body {
      messageByteCount.load(ordering: .relaxed)
    } else {
      route.bodyByteCount
    }
  }

  private func type(of request: HTTPRequest) -> String? {
    request.header("content-type")?.split(separator: ";").first.map {
      $0.lowercased().filter { $0 != " " && $0 != "\t" }
    }
  }

  /// The place of the body's type among those that a route takes.
  @discardableResult
  private func check(_ request: HTTPRequest, _ types: [String]) throws(APIError) -> Int {
    guard let type = type(of: request), let place = types.firstIndex(of: type) else {
      throw APIError(
        "unsupported_media_type", 415, "the body's type is to be \(types.joined(separator: " or "))",
        details: [.init(name: "field", value: .text("Content-Type"))])
    }
    return place
  }

  private func idempotencyKey(
    _ request: HTTPRequest, _ route: Route
  ) throws(APIError) -> IdempotencyKey? {
    guard route.idempotency != .ignored else { return nil }
    guard let text = request.header("idempotency-key") else {
      guard route.idempotency != .required else {
        throw .invalid("Idempotency-Key", "this route needs the header Idempotency-Key")
      }
      return nil
    }
    let key = Array(text.utf8)
    guard (1...64).contains(key.count), key.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw .invalid("Idempotency-Key", "a key has 1 to 64 visible ASCII characters")
    }
    var hash = SHA256()
    func add(_ text: String) {
      let bytes = Array(text.utf8)
      hash.update(Self.count(bytes.count) + bytes)
    }
    add(request.method)
    add(request.path)
    for item in request.query {
      add(item.name)
      add(item.value)
    }
    hash.update(Self.count(.max))
    hash.update(request.body)
    return IdempotencyKey(key: key, digest: hash.finalize())
  }

  private static func count(_ value: Int) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  // MARK: The socket

  package func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision {
    let requestID = requestIDs.named(request).id
    do throws(APIError) {
      guard request.path == "/v1/realtime" else { throw .notFound }
      guard !isDraining.load(ordering: .relaxed) else { throw APIError(.unavailable(.overloaded)) }
      // Browsers cannot send headers with it.
      let token: String
      if request.header("authorization") != nil {
        token = try bearer(request)
      } else if let shown = request.query("access_token") {
        token = shown
      } else {
        throw APIError(.notSignedIn)
      }
      let session = try session(token)
      let device = try device(
        request.header("palbe-device") ?? request.query("device_token"), of: session.user)
      let connection = hub.open(socket, session: session, device: device)
      // The session may have ended between the look at it and the hub's knowing the socket.
      do throws(APIError) { try checkSession(token) } catch {
        hub.closed(connection)
        throw error
      }
      return .accept(connection)
    } catch {
      return .reject(response(error, requestID))
    }
  }
}

extension BackendService.Part {
  /// In memory.
  package func body(of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder) -> HTTPBodyDecision {
    .collect
  }
}
