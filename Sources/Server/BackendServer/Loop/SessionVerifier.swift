import PalbeAccountsCore
import PalbeBackendCore
import PalbeUnits

/// Who knows whether an access token holds.
package protocol SessionVerifier: Sendable {
  /// The token's session; throws `notSignedIn` for what is no token of this server, `sessionExpired` for one that is over or
  /// revoked. Cheap, on any thread.
  func session(token: String) throws(BackendFailure) -> VerifiedSession

  /// A device was enrolled with a session. By default nobody wants to know.
  func enrolled(_ device: DeviceID, with session: SessionID)

  /// A device is no longer its user's, and its sessions are to end. By default nobody wants to know.
  func revoked(_ device: DeviceID)
}

extension SessionVerifier {
  package func enrolled(_ device: DeviceID, with session: SessionID) {}
  package func revoked(_ device: DeviceID) {}
}
