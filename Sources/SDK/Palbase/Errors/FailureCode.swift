/// What went wrong, as one word that never changes: `failure.code == .staleEpoch`, or `== "stale_epoch"`.
///
/// A server may be newer than this SDK: a code that is not in the list is kept as it came.
public struct FailureCode: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The word on the wire, in snake case.
  public let rawValue: String

  /// Any word.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// Any word.
  public init(stringLiteral value: String) { rawValue = value }

  /// The word.
  public var description: String { rawValue }

  // MARK: Session

  /// Nobody is signed in.
  public static let notSignedIn: Self = "not_signed_in"
  /// The session is over and could not be renewed.
  public static let sessionExpired: Self = "session_expired"
  /// A used refresh token came again: somebody copied it, and its sessions are over.
  public static let refreshTokenReused: Self = "refresh_token_reused"
  /// The address or the password is wrong.
  public static let invalidCredentials: Self = "invalid_credentials"
  /// The address has an account.
  public static let accountExists: Self = "account_exists"
  /// The password is too short or too common.
  public static let weakPassword: Self = "weak_password"

  // MARK: Devices

  /// The server does not know this device.
  public static let deviceNotEnrolled: Self = "device_not_enrolled"
  /// The user removed this device.
  public static let deviceRevoked: Self = "device_revoked"
  /// A newer connection consumes this device's queue.
  public static let superseded: Self = "superseded"

  // MARK: Chats

  /// The chat is on no server yet.
  public static let chatIsDraft: Self = "chat_is_draft"
  /// A direct chat keeps its two people.
  public static let chatIsDirect: Self = "chat_is_direct"
  /// The chat has more than two people.
  public static let chatIsGroup: Self = "chat_is_group"
  /// The user is not in the chat, or no longer.
  public static let notAMember: Self = "not_a_member"
  /// The user's role does not allow it.
  public static let forbidden: Self = "forbidden"
  /// There is no such user.
  public static let userNotFound: Self = "user_not_found"
  /// There is no such chat.
  public static let chatNotFound: Self = "chat_not_found"
  /// The user has no device that can be added.
  public static let noKeyPackage: Self = "no_key_package"
  /// The chat has moved on.
  public static let staleEpoch: Self = "stale_epoch"
  /// The chat moved on faster than this device could follow.
  public static let rebaseExhausted: Self = "rebase_exhausted"
  /// A change left out devices or proposals.
  public static let commitIncomplete: Self = "commit_incomplete"
  /// The message was sent before; an answer, not an error.
  public static let duplicateMessage: Self = "duplicate_message"
  /// The message is longer than the server takes.
  public static let messageTooLarge: Self = "message_too_large"
  /// The group has as many devices as it may have.
  public static let groupFull: Self = "group_full"
  /// A received message cannot be read.
  public static let undecryptable: Self = "undecryptable"

  // MARK: Attachments

  /// There is no such attachment.
  public static let blobNotFound: Self = "blob_not_found"
  /// The attachment is larger than the server takes.
  public static let attachmentTooLarge: Self = "attachment_too_large"
  /// The attachment was kept as long as it is promised.
  public static let blobExpired: Self = "blob_expired"
  /// Not all of the attachment has arrived.
  public static let uploadIncomplete: Self = "upload_incomplete"
  /// A part of the attachment does not follow what has arrived.
  public static let uploadOffsetMismatch: Self = "upload_offset_mismatch"
  /// The bytes are not those that were sent.
  public static let integrityFailed: Self = "integrity_failed"

  // MARK: Calls

  /// There is no such call.
  public static let callNotFound: Self = "call_not_found"
  /// The call has as many people as it may have.
  public static let callFull: Self = "call_full"
  /// The call is over.
  public static let callEnded: Self = "call_ended"
  /// No media engine is there.
  public static let mediaUnavailable: Self = "media_unavailable"
  /// The user has no other device in the call.
  public static let noSiblingToTransfer: Self = "no_sibling_to_transfer"

  // MARK: This device

  /// Another process of this app uses the account.
  public static let accountBusy: Self = "account_busy"
  /// The stores of this device cannot be used.
  public static let storeUnavailable: Self = "store_unavailable"
  /// The configuration is missing or wrong.
  public static let notConfigured: Self = "not_configured"
  /// The server cannot be reached.
  public static let unreachable: Self = "unreachable"
  /// The server's answer is not one of this protocol.
  public static let unexpectedAnswer: Self = "unexpected_answer"

  // MARK: Requests

  /// Too many requests.
  public static let rateLimited: Self = "rate_limited"
  /// The request took too long to arrive.
  public static let requestTimeout: Self = "request_timeout"
  /// The server is overloaded or under maintenance.
  public static let unavailable: Self = "unavailable"
  /// The server does not accept what this SDK sent.
  public static let invalidRequest: Self = "invalid_request"
  /// The server has no such route.
  public static let notFound: Self = "not_found"
  /// The route does not do that.
  public static let methodNotAllowed: Self = "method_not_allowed"
  /// The route takes bodies of another type.
  public static let unsupportedMediaType: Self = "unsupported_media_type"
  /// An idempotency key came again with another request.
  public static let idempotencyMismatch: Self = "idempotency_mismatch"
}
