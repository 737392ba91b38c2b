import PalbeUnits

/// Who is signed in.
public struct CurrentUser: Sendable, Hashable, Identifiable {
  /// `usr_…`.
  public let id: String
  /// This session, `ses_…`, one of those that `sessions()` lists.
  public let sessionId: String
  /// The account was made by this sign-in.
  public let isNew: Bool

  /// For previews and tests of apps.
  public init(id: String, sessionId: String, isNew: Bool = false) {
    self.id = id
    self.sessionId = sessionId
    self.isNew = isNew
  }
}

/// Whether somebody is signed in.
public enum AuthState: Sendable, Equatable {
  /// Nobody is; with the reason when somebody was.
  case signedOut(SignOutReason?)
  /// Somebody is.
  case signedIn(CurrentUser)
}

/// Why a session ended.
public enum SignOutReason: String, Sendable {
  /// The app asked for it.
  case requested
  /// It expired, or somebody revoked it.
  case expired
  /// A used refresh token came again: somebody copied it.
  case tokenReused
  /// The user removed the device that this session enrolled.
  case deviceRemoved
  /// Another process of this app signed out.
  case otherProcess
}

/// A session of the account, on this or another device.
public struct AuthSession: Sendable, Hashable, Identifiable, Decodable {
  /// `ses_…`.
  public let id: String
  /// Milliseconds since 1970.
  public let createdAtMs: Int64
  /// Milliseconds since 1970.
  public let lastUsedAtMs: Int64
  /// The device that it enrolled, `mdv_…`.
  public let deviceId: String?
  /// What the client called itself.
  public let userAgent: String?
  /// It is the one that asks.
  public let isCurrent: Bool
}

/// What is stored of a session. It holds tokens: it has no description.
struct SessionRecord: Codable, Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// A record with a greater number is a newer app's.
  static let currentSchema = 1

  var schema = currentSchema
  var userId: String
  var sessionId: String
  var accessToken: String
  var refreshToken: String
  /// When the tokens came.
  var received: TimeStamp
  /// Seconds from then.
  var accessLifetime: Double
  var isNew: Bool

  var description: String { "session of \(userId)" }
  var customMirror: Mirror { Mirror(self, children: [:]) }

  var user: CurrentUser { CurrentUser(id: userId, sessionId: sessionId, isNew: isNew) }

  /// How long the access token will still be taken, by this device's clocks: a fifth of its life, at most a minute, is
  /// left out. Nil when that cannot be told.
  func remaining(_ time: Timebase) -> TimeDelta? {
    guard let age = received.age(time) else { return nil }
    let margin = min(60, accessLifetime / 5)
    return TimeDelta.seconds(accessLifetime - margin) - age
  }

  /// Not worth an attempt any more. Where clocks cannot tell, the server will.
  func isStale(_ time: Timebase) -> Bool { remaining(time).map { $0 <= .zero } ?? true }
}

/// The server's answer to each kind of sign-in.
struct TokenAnswer: Decodable, Sendable {
  var userId: String
  var sessionId: String
  var accessToken: String
  var accessExpiresIn: Double
  var refreshToken: String
  var isNewUser: Bool?

  func record(_ time: Timebase) throws -> SessionRecord {
    // Both go into headers and files.
    guard Self.isToken(accessToken), Self.isToken(refreshToken), Self.isToken(userId),
      Self.isToken(sessionId),
      accessExpiresIn > 0, accessExpiresIn < 1e9
    else { throw BackendError.unexpectedAnswer(requestId: nil) }
    return SessionRecord(
      userId: userId, sessionId: sessionId, accessToken: accessToken, refreshToken: refreshToken,
      received: TimeStamp(time), accessLifetime: accessExpiresIn, isNew: isNewUser ?? false)
  }

  private static func isToken(_ text: String) -> Bool {
    (1...8_192).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 32 && $0 < 127 }
  }
}
