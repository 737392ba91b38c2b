/// Why the web server itself refuses a request, before its handler is asked or while its body is read.
public enum RequestRefusal: Hashable, Sendable {
  /// 400: a content-length that is no number.
  case malformedLength
  /// 400: a request with a body did not wait for the answer before it, and where its body begins is lost.
  case bodyTooEarly
  /// 400: bytes that are no request, or one that others may read otherwise: white space before a colon.
  case malformed
  /// 400: an upgrade without what RFC 6455 §4.2.1 asks for.
  case malformedUpgrade
  /// 408: a head or a body that does not come in time.
  case tooSlow
  /// 411: a body of unknown length.
  case lengthRequired
  /// 413: more bytes than a body may have.
  case bodyTooLarge(limit: Int)
  /// 426: an upgrade to something else than WebSocket.
  case unknownUpgrade
  /// 426: another version of WebSocket than 13.
  case webSocketVersion
  /// 429: more requests of one address than it may send.
  case tooManyRequests
  /// 431: a longer head than `WebServerLimits.requestHeadByteCount`.
  case headTooLarge(limit: Int)
  /// 503: the bodies that are being read are too many.
  case tooManyBodies

  /// The status that the answer has to have.
  public var status: Int {
    switch self {
    case .malformed, .malformedLength, .bodyTooEarly, .malformedUpgrade: 400
    case .tooSlow: 408
    case .lengthRequired: 411
    case .bodyTooLarge: 413
    case .unknownUpgrade, .webSocketVersion: 426
    case .tooManyRequests: 429
    case .headTooLarge: 431
    case .tooManyBodies: 503
    }
  }

  /// In words for a developer.
  public var reason: String {
    switch self {
    case .malformed: "malformed request"
    case .malformedLength: "malformed content-length"
    case .bodyTooEarly: "a request with a body must wait for the answer to the one before it"
    case .malformedUpgrade: "malformed websocket upgrade"
    case .tooSlow: "the request came too slowly"
    case .lengthRequired: "a body needs a content-length"
    case .bodyTooLarge: "the body is too long"
    case .unknownUpgrade: "only websocket upgrades"
    case .webSocketVersion: "websocket version 13 is needed"
    case .tooManyRequests: "too many requests"
    case .headTooLarge: "the request line and the headers are too long"
    case .tooManyBodies: "the server reads too many bodies at once"
    }
  }

  /// Headers that the answer has in any case.
  public var headers: [HTTPRequest.Field] {
    switch self {
    case .webSocketVersion: [.init("sec-websocket-version", "13")]
    case .tooManyRequests: [.init("retry-after", "1")]
    default: []
    }
  }
}

extension ServerService {
  /// Refuses in the handler's words. The connection ends: what follows on it may be the rest of a body.
  func refuse(_ identity: OpaquePointer, _ refusal: RequestRefusal, _ request: HTTPRequest) -> Int32 {
    guard let connection = connections[identity] else { return -1 }
    connection.mayStayOpen = false
    connection.omitsBody = request.method == "HEAD"
    return write(identity, self.refusal(refusal, of: request))
  }

  /// The handler's words, with what they must have.
  func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse {
    var response = handler.refusal(refusal, of: request)
    response.status = refusal.status
    let own = Set(response.headers.map(\.name))
    response.headers += refusal.headers.filter { !own.contains($0.name) }
    return response
  }
}
