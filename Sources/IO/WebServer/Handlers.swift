/// Decides what a `WebServer` answers. All calls come from its one service thread and must not block.
public protocol WebServerHandler: Sendable {
  /// Looks at a request whose body has not been read: an answer here refuses it, and no memory is given to
  /// its body. Nil reads on, up to `WebServerLimits.requestBodyByteCount`.
  func refuseBody(of request: HTTPRequest) -> HTTPResponse?

  /// Decides how a request's body is taken, before anything of it has been read. By default `refuseBody` refuses, and what
  /// it does not refuse is collected.
  ///
  /// - Parameters:
  ///   - byteCount: what the client says comes; never more does.
  ///   - responder: for a sink's answer; without effect otherwise.
  func body(of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder) -> HTTPBodyDecision

  /// Answers a plain request, its body complete, now or later. By default it sends `respond(to:)`.
  func respond(to request: HTTPRequest, with responder: HTTPResponder)

  /// Answers a plain request at once. By default everything is unknown: 404.
  func respond(to request: HTTPRequest) -> HTTPResponse

  /// Decides on a request to become a WebSocket, before anything is answered. `socket` may be kept: what is
  /// sent
  /// to it now goes out right after the acceptance, and is dropped with a rejection.
  func upgrade(_ request: HTTPRequest, socket: WebSocket) -> UpgradeDecision

  /// The answer to a request that the server refuses by itself, `request` without its body. Its status is the refusal's, and the
  /// refusal's headers are added where they are missing. By default the refusal's words as plain text.
  func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse
}

extension WebServerHandler {
  /// Reads every body.
  public func refuseBody(of request: HTTPRequest) -> HTTPResponse? { nil }

  /// Collects what is not refused.
  public func body(
    of request: HTTPRequest, byteCount: Int64, responder: HTTPResponder
  ) -> HTTPBodyDecision {
    refuseBody(of: request).map { .refuse($0) } ?? .collect
  }

  /// Sends `respond(to:)`.
  public func respond(to request: HTTPRequest, with responder: HTTPResponder) {
    responder.send(respond(to: request))
  }

  /// Knows no path.
  public func respond(to request: HTTPRequest) -> HTTPResponse { .text("not found", status: 404) }

  /// Plain text.
  public func refusal(_ refusal: RequestRefusal, of request: HTTPRequest) -> HTTPResponse {
    .text(refusal.reason, status: refusal.status)
  }
}

/// The answer to an upgrade request.
public enum UpgradeDecision: Sendable {
  /// Switch protocols; the handler hears what the socket receives.
  case accept(any WebSocketHandler)
  /// Stay HTTP and answer this: the client sees a true status and body.
  case reject(HTTPResponse)
}

/// Hears one WebSocket. The calls come one at a time from a service thread and must not block.
public protocol WebSocketHandler: Sendable {
  /// The handshake is done.
  func opened()
  /// A whole binary message.
  func received(binary: [UInt8])
  /// A whole text message, valid UTF-8.
  func received(text: String)
  /// The socket is gone; the last call, and the only one when the connection broke before `opened`.
  func closed(_ closure: WebSocketClosure)
}

/// How a WebSocket ended.
public struct WebSocketClosure: Hashable, Sendable {
  /// The peer's status code (RFC 6455 §7.4); 1005 when its close frame had none, 1006 when there was no
  /// close frame.
  public var code: UInt16
  /// The peer's reason.
  public var reason: String

  /// A code and a reason.
  public init(code: UInt16, reason: String = "") {
    self.code = code
    self.reason = reason
  }

  /// The connection ended without a close frame.
  public static let abnormal = WebSocketClosure(code: 1_006)

  /// From the payload of a close frame.
  init(payload: some Collection<UInt8>) {
    let bytes = Array(payload)
    guard bytes.count >= 2 else {
      self.init(code: 1_005)
      return
    }
    self.init(
      code: UInt16(bytes[0]) << 8 | UInt16(bytes[1]), reason: String(decoding: bytes[2...], as: UTF8.self))
  }
}

/// A message of a WebSocket.
public enum WebSocketMessage: Hashable, Sendable {
  case binary([UInt8])
  case text(String)

  var byteCount: Int {
    switch self {
    case .binary(let bytes): bytes.count
    case .text(let text): text.utf8.count
    }
  }
}
