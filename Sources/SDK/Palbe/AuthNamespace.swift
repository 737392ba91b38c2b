import Foundation

/// `pb.auth`: who is signed in.
///
/// Tokens are kept sealed on this device and renewed by themselves. A person stays signed in across restarts until
/// they sign out, their session is revoked, or nobody used it for long.
public struct AuthNamespace: Sendable {
  let host: PalbaseHost

  /// Makes an account and signs it in.
  ///
  /// Throws `account_exists` or `weak_password` when the server says so.
  @discardableResult
  public func signUp(email: String, password: String) async throws -> CurrentUser {
    try await begin("sign-up", ["email": email, "password": password])
  }

  /// Signs in. Whoever was signed in is signed out. Throws `invalid_credentials` for a wrong address or password.
  @discardableResult
  public func signIn(email: String, password: String) async throws -> CurrentUser {
    try await begin("sign-in", ["email": email, "password": password])
  }

  /// Signs in with the token of an identity provider that the server trusts: an OpenID Connect id token.
  @discardableResult
  public func signIn(token: String) async throws -> CurrentUser {
    try await begin("token", ["id_token": token])
  }

  private func begin(_ route: String, _ body: [String: String]) async throws -> CurrentUser {
    let runtime = try host.runtime()
    let user = try await runtime.sessions.signIn(route, body)
    try runtime.devices.forgetRevoked(of: user.id)
    return user
  }

  /// Ends this session: at once on this device, on the server as soon as it can be reached. Stores of messages
  /// stay. Throws when the session cannot be removed from this device; the user is then still signed in.
  public func signOut() async throws { try await host.runtime().sessions.signOut() }

  /// Who is signed in; nil when nobody is, or without a configuration.
  public var currentUser: CurrentUser? {
    guard case .signedIn(let user) = state else { return nil }
    return user
  }

  /// Whether somebody is signed in.
  public var state: AuthState { host.runtimeIfConfigured()?.sessions.state.value ?? .signedOut(nil) }

  /// The state as it is, then each change. Ends at once without a configuration.
  ///
  ///     for await state in pb.auth.states { if case .signedOut(let reason) = state { … } }
  public var states: AsyncStream<AuthState> {
    host.runtimeIfConfigured()?.sessions.state.stream()
      ?? AsyncStream { continuation in
        continuation.yield(.signedOut(nil))
        continuation.finish()
      }
  }

  /// All sessions of the account, on all its devices.
  public func sessions() async throws -> [AuthSession] {
    struct Answer: Decodable { var sessions: [AuthSession] }
    let call = BackendCall("GET", "/v1/auth/sessions", access: .session)
    return try await host.runtime().client.send(call).json(as: Answer.self).sessions
  }

  /// Ends a session, such as that of a lost phone; this device's own is `signOut()`.
  public func revoke(_ sessionId: String) async throws {
    let runtime = try host.runtime()
    if sessionId == currentUser?.sessionId { return try await runtime.sessions.signOut() }
    try await runtime.client.send(
      BackendCall("DELETE", "/v1/auth/sessions/\(ServerURL.encode(sessionId))", access: .session))
  }

  /// Changes the password and ends all other sessions. Throws `invalid_credentials` for a wrong current one.
  public func changePassword(current: String, new: String) async throws {
    try await host.runtime().client.send(
      .post("/v1/auth/password", ["current": current, "new": new], access: .session))
  }
}
