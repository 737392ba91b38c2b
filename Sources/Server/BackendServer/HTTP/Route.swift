import PalbeAccountsCore
import PalbeBackendCore
import PalbeUnits
import PalbeWebServer

/// One line of the table from which requests are dispatched and the OpenAPI document is made.
struct Route: Sendable {
  /// What a caller must show.
  enum Access: Sendable {
    /// Nothing.
    case open
    /// An access token.
    case session
    /// An access token and a device token.
    case device
  }

  /// What is made of an `Idempotency-Key`.
  enum Idempotency: Sendable { case ignored, optional, required }

  /// What the body is.
  enum Body: Sendable {
    case none
    case json(Shape.Record)
    /// JSON, or the bytes of one member as `application/octet-stream` with the other members in the query.
    case jsonOrBytes(Shape.Record, member: String)
  }

  /// Who serves it.
  enum Service: Sendable {
    /// The backend: a request, and its answer as JSON; nil is 204.
    case backend(
      @Sendable (RouteInput) throws(APIError) -> BackendRequest,
      @Sendable (BackendResponse, RouteInput) throws(APIError) -> JSONText?)
    /// The shell itself.
    case shell(@Sendable (RouteInput) throws(APIError) -> HTTPResponse)
    /// Another part of the server, which answers now or later.
    case later(@Sendable (RouteInput, @escaping Answer) -> Void)
    /// Somebody who was asked before this table; it stands here to be described.
    case elsewhere
  }

  /// Takes an answer, on any thread; nil is 204.
  typealias Answer = @Sendable (Result<JSONText?, APIError>) -> Void

  let method: String
  /// With `{group}` and so on for what changes.
  let pattern: String
  /// Its name in the OpenAPI document, `sendMessage`.
  let name: String
  let summary: String
  let access: Access
  let idempotency: Idempotency
  let query: [Shape.Field]
  let body: Body
  /// The most bytes of a body.
  let bodyByteCount: Int
  /// The answer; nil is 204.
  let answer: Shape.Record?
  /// Refusals besides those that every route of its access has.
  let codes: [String]
  let service: Service

  /// The parts of `pattern`.
  let segments: [Substring]

  init(
    _ method: String, _ pattern: String, _ name: String, _ summary: String, access: Access = .device,
    idempotency: Idempotency = .ignored, query: [Shape.Field] = [], body: Body = .none,
    bodyByteCount: Int = 64 << 10, answer: Shape.Record? = nil, codes: [String] = [], service: Service
  ) {
    self.method = method
    self.pattern = pattern
    self.name = name
    self.summary = summary
    self.access = access
    self.idempotency = idempotency
    self.query = query
    self.body = body
    self.bodyByteCount = bodyByteCount
    self.answer = answer
    self.codes = codes
    self.service = service
    segments = pattern.split(separator: "/", omittingEmptySubsequences: true)
  }

  /// The shapes of what stands in paths, by name.
  static let pathShapes: [String: Shape] = [
    "user": .id(UserIdentifierKind.prefix), "device": .id(DeviceIdentifierKind.prefix),
    "group": .id(GroupIdentifierKind.prefix),
    "blob": .id(BlobIdentifierKind.prefix), "session": .id(SessionKind.prefix),
  ]

  /// The names that stand in the pattern, in order.
  var parameters: [String] { segments.filter { $0.first == "{" }.map { String($0.dropFirst().dropLast()) } }

  /// What stands in a path for the pattern's names; nil when it is another path.
  func match(_ path: [Substring]) -> [String: String]? {
    guard path.count == segments.count else { return nil }
    var found: [String: String] = [:]
    for (part, segment) in zip(path, segments) {
      if segment.first == "{" {
        found[String(segment.dropFirst().dropLast())] = String(part)
      } else if part != segment {
        return nil
      }
    }
    return found
  }
}

/// JSON that is written.
struct JSONText: Sendable { let bytes: [UInt8] }

/// A request that has the form of its route.
struct RouteInput: Sendable {
  /// Who asks; nil on an open route.
  var caller: Caller?
  /// The caller's session; nil on an open route.
  var session: VerifiedSession?
  /// Where it comes from, which may be a proxy.
  var address = SocketAddress(ipv4: 0, 0, 0, 0, port: 0)
  /// What the client calls itself.
  var userAgent = ""
  /// The answer's `Request-Id`.
  var requestID = ""
  var path: JSONObject
  var query: JSONObject
  var body: JSONObject

  /// An identifier that the pattern has: it was checked when the path was matched.
  func id<Kind>(_ name: String) throws(APIError) -> Identifier<Kind> {
    guard let id: Identifier<Kind> = path.id(name) else { throw .invalid(name, "not an identifier") }
    return id
  }
}

/// All routes.
struct RouteTable: Sendable {
  let routes: [Route]

  /// What a path leads to.
  enum Match {
    case route(Route, [String: String])
    /// Another method is needed: these.
    case methods([String])
    case nothing

    /// The route's name; "none" for what is none.
    var name: String { if case .route(let route, _) = self { route.name } else { "none" } }
  }

  func match(_ method: String, _ path: String) -> Match {
    let parts = Array(path.split(separator: "/", omittingEmptySubsequences: false).dropFirst())
    var methods: [String] = []
    for route in routes {
      guard let found = route.match(parts) else { continue }
      if route.method == method { return .route(route, found) }
      methods.append(route.method)
    }
    return methods.isEmpty ? .nothing : .methods(methods)
  }
}
