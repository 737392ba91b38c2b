import PalbeCrypto
public import PalbeWebServer
import PalbeWire

/// `/metrics` on a port of its own: what is asked there, and who may.
public struct MetricsPage: Sendable, Equatable {
  /// Who may ask; everybody when both are empty.
  public var username: String
  public var password: String

  /// A page for whoever gives this name and password.
  public init(username: String = "", password: String = "") {
    self.username = username
    self.password = password
  }

  /// What the page's server allows.
  public static var limits: WebServerLimits {
    var limits = WebServerLimits()
    limits.connectionCount = 64
    limits.requestHeadByteCount = 8_192
    limits.requestBodyByteCount = 0
    return limits
  }

  /// The answer to who asks for something else or may not ask; nil where the metrics are the answer.
  public func refusal(of request: HTTPRequest) -> HTTPResponse? {
    guard request.path == "/metrics", request.method == "GET" || request.method == "HEAD" else {
      return .text("not found", status: 404)
    }
    guard isAllowed(request) else {
      return .text(
        "unauthorized", status: 401,
        headers: [.init("www-authenticate", "Basic realm=\"metrics\", charset=\"UTF-8\"")])
    }
    return nil
  }

  /// The answer.
  public func answer(_ exposition: Exposition) -> HTTPResponse {
    HTTPResponse(
      status: 200, headers: [.init("content-type", Exposition.contentType)], body: Array(exposition.text.utf8)
    )
  }

  /// RFC 7617.
  private func isAllowed(_ request: HTTPRequest) -> Bool {
    guard !username.isEmpty || !password.isEmpty else { return true }
    guard let header = request.header("authorization"), header.hasPrefix("Basic "),
      let given = Base64.decode(String(header.dropFirst(6)), alphabet: .standard)
    else { return false }
    let expected = [UInt8]("\(username):\(password)".utf8)
    return ConstantTime.equal(SHA256.hash(given.span).span, SHA256.hash(expected.span).span)
  }
}
