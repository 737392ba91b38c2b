public import PalbeBackendCore
public import PalbeUnits

/// Why a request about accounts was refused; besides the errors of `BackendFailure`, those of signing in.
public enum AccountFailure: Error, Equatable, Sendable {
  /// The e-mail or the password is wrong, or a provider's token is not believed. Which of them is not told.
  case invalidCredentials
  /// There is an account with this e-mail.
  case accountExists
  /// The password is too easy to guess.
  case weakPassword(WeakPassword)
  /// A field is missing or not what it should be.
  case invalidRequest(String)
  /// A refresh token was used a second time: somebody else has it too, and its session is over.
  case refreshTokenReused
  /// The session is over, or never was.
  case sessionExpired
  /// The session is over because its user removed the device.
  case deviceRevoked
  /// There is no access token, or one that nobody here has signed.
  case notSignedIn
  /// The user has no such session.
  case sessionNotFound
  /// This server lets nobody sign up, or has no identity provider.
  case notAllowed
  /// Too many attempts.
  case rateLimited(retryAfter: TimeDelta)
  /// Too much to do at the moment.
  case overloaded
  /// The identity provider's keys cannot be had.
  case providerUnavailable
  /// The store cannot work at the moment; nothing of the request is there.
  case unavailable(StoreFault)

  /// The code on the wire.
  public var code: String {
    switch self {
    case .invalidCredentials: "invalid_credentials"
    case .accountExists: "account_exists"
    case .weakPassword: "weak_password"
    case .invalidRequest: "invalid_request"
    case .refreshTokenReused: "refresh_token_reused"
    case .sessionExpired: "session_expired"
    case .deviceRevoked: "device_revoked"
    case .notSignedIn: "not_signed_in"
    case .sessionNotFound: "not_found"
    case .notAllowed: "forbidden"
    case .rateLimited: "rate_limited"
    case .overloaded, .providerUnavailable, .unavailable: "unavailable"
    }
  }

  /// The HTTP status.
  public var status: Int {
    switch self {
    case .invalidRequest: 400
    case .invalidCredentials, .refreshTokenReused, .sessionExpired, .notSignedIn: 401
    case .notAllowed, .deviceRevoked: 403
    case .sessionNotFound: 404
    case .accountExists: 409
    case .weakPassword: 422
    case .rateLimited: 429
    case .overloaded, .providerUnavailable, .unavailable: 503
    }
  }

  /// How long to wait before the same is asked again.
  public var retryAfter: TimeDelta? {
    switch self {
    case .rateLimited(let time): time
    case .overloaded, .unavailable: .seconds(1)
    case .providerUnavailable: .seconds(10)
    default: nil
    }
  }

  /// A sentence for a developer; nothing of it is secret.
  public var message: String {
    switch self {
    case .invalidCredentials: "the e-mail, the password or the token is wrong"
    case .accountExists: "there is an account with this e-mail"
    case .weakPassword(let reason): reason.message
    case .invalidRequest(let what): "\(what) is missing or not what it should be"
    case .refreshTokenReused: "the refresh token was used before: its session is over"
    case .sessionExpired: "the session is over; sign in"
    case .deviceRevoked: "this device was removed by its user"
    case .notSignedIn: "no valid access token"
    case .sessionNotFound: "no such session"
    case .notAllowed: "this server does not allow it"
    case .rateLimited: "too many attempts"
    case .overloaded: "too busy"
    case .providerUnavailable: "the identity provider's keys cannot be had"
    case .unavailable: "the store cannot work at the moment"
    }
  }
}
