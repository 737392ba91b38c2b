import PalbeAccountsCore
import PalbeBackendCore

/// Who knows whether an access token holds.
package protocol SessionVerifier: Sendable {
  /// The token's session; throws `notSignedIn` for what is no token of this server, `sessionExpired` for one that is over or
  /// revoked. Cheap, on any thread.
  func session(token: String) throws(BackendFailure) -> VerifiedSession
}

/// Knows no session: for a server that has no accounts.
package struct NoSessions: SessionVerifier {
  package init() {}
  package func session(token: String) throws(BackendFailure) -> VerifiedSession { throw .notSignedIn }
}
