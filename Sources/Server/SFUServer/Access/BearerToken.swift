import PalbeWebServer

extension AccessToken {
  /// The token of a request, verified: a Bearer in the `Authorization` header if there is one, else the query
  /// item `access_token`.
  ///
  /// - Parameter now: seconds since 1970.
  /// - Throws: why there is none, for the client.
  init(of request: HTTPRequest, keys: [String: String], now: Int64) throws(JoinRefusal) {
    let text: Substring
    if let header = request.header("authorization") {
      guard header.hasPrefix("Bearer ") else { throw .unauthorized("the Authorization header is no Bearer") }
      text = header.dropFirst("Bearer ".count)
    } else {
      text = (request.query("access_token") ?? "")[...]
    }
    guard !text.isEmpty else { throw .unauthorized("no access token") }
    do throws(AccessTokenError) {
      try self.init(verifying: String(text), keys: keys, now: now)
    } catch {
      throw .unauthorized(error.description)
    }
  }
}
