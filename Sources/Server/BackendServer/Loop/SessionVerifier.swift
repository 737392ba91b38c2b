import PalbeBackendCore
import PalbeCrypto
import PalbeWire

/// What sessions are named by.
package enum SessionKind: IdentifierKind {
  package static let prefix = "ses"
}
/// `ses_…`: one sign-in of a user.
package typealias SessionID = Identifier<SessionKind>

/// A session whose access token holds.
package struct VerifiedSession: Hashable, Sendable {
  package var user: UserID
  package var session: SessionID
  /// When the token is over.
  package var expiresAt: WallTime
  /// A session.
  package init(user: UserID, session: SessionID, expiresAt: WallTime) {
    self.user = user
    self.session = session
    self.expiresAt = expiresAt
  }
}

/// Who knows whether an access token holds.
package protocol SessionVerifier: Sendable {
  /// The token's session; throws `notSignedIn` for what is no token of this server, `sessionExpired` for one that is over or
  /// revoked. Cheap, on any thread.
  func session(token: String) throws(BackendFailure) -> VerifiedSession
}

/// Tokens that devices show: the device's id and a code over it and its user, `mdv_….<base64url>`. Whether the device is
/// still enrolled is for the backend to say.
package struct DeviceTokens: Sendable {
  private let key: [UInt8]

  /// - Parameter key: 32 secret bytes.
  package init(key: [UInt8]) { self.key = key }

  /// The token of a user's device.
  package func token(of device: DeviceID, user: UserID) -> String {
    device.text + "." + Base64.encode(code(device, user), alphabet: .url, padded: false)
  }

  /// The device that a token names, when it is the user's; else nil.
  package func device(of token: String, user: UserID) -> DeviceID? {
    guard token.utf8.count < 128 else { return nil }
    let parts = token.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let device = DeviceID(parts[0]),
      let shown = Base64.decode(parts[1], alphabet: .url),
      ConstantTime.equal(shown.span, code(device, user).span)
    else { return nil }
    return device
  }

  private func code(_ device: DeviceID, _ user: UserID) -> [UInt8] {
    HMAC<SHA256>.authenticationCode(
      for: Array("palbe device token".utf8) + user.bytes + device.bytes, using: key)
  }
}

/// Knows no session: for a server that has no accounts.
package struct NoSessions: SessionVerifier {
  package init() {}
  package func session(token: String) throws(BackendFailure) -> VerifiedSession { throw .notSignedIn }
}
