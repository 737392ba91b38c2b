public import PalbeUnits

/// Why a request was refused: the errors of requirements 2.2 that are a server's, and three that HTTP needs besides. Those of
/// sessions and calls are for who stands on this core.
public enum BackendFailure: Error, Equatable, Sendable {
  /// There is no session.
  case notSignedIn
  /// The session is over.
  case sessionExpired
  /// The caller's device is not known here.
  case deviceNotEnrolled
  /// The caller's device was removed by its user.
  case deviceRevoked
  /// Members, name and roles of a direct chat do not change.
  case chatIsDirect
  /// The caller is no longer in the group.
  case notAMember
  /// The caller's role is too weak.
  case forbidden
  case userNotFound
  case chatNotFound
  case blobNotFound
  case callNotFound
  /// A call has as many members as it may have.
  case callFull
  case callEnded
  /// A user has no device with a usable key package.
  case noKeyPackage(UserID)
  /// The epoch is not the one that counts.
  case staleEpoch(head: Epoch)
  /// The commit leaves something out: devices to add or to remove, or proposals (`CommitBundle.proposalsUpTo`).
  case commitIncomplete(devices: [DeviceID])
  case messageTooLarge(limit: Int)
  case attachmentTooLarge(limit: Int64)
  case groupFull(limit: Int)
  case blobExpired
  case rateLimited(retryAfter: TimeDelta)
  /// The store cannot work at the moment; nothing of the request is there.
  case unavailable(StoreFault)
  /// The request contradicts itself or what is there.
  case invalidRequest(InvalidRequest)
  /// A newer connection consumes this device's queue.
  case superseded
  /// The idempotency key was used for another request.
  case idempotencyMismatch

  /// The code on the wire.
  public var code: String {
    switch self {
    case .notSignedIn: "not_signed_in"
    case .sessionExpired: "session_expired"
    case .deviceNotEnrolled: "device_not_enrolled"
    case .deviceRevoked: "device_revoked"
    case .chatIsDirect: "chat_is_direct"
    case .notAMember: "not_a_member"
    case .forbidden: "forbidden"
    case .userNotFound: "user_not_found"
    case .chatNotFound: "chat_not_found"
    case .blobNotFound: "blob_not_found"
    case .callNotFound: "call_not_found"
    case .callFull: "call_full"
    case .callEnded: "call_ended"
    case .noKeyPackage: "no_key_package"
    case .staleEpoch: "stale_epoch"
    case .commitIncomplete: "commit_incomplete"
    case .messageTooLarge: "message_too_large"
    case .attachmentTooLarge: "attachment_too_large"
    case .groupFull: "group_full"
    case .blobExpired: "blob_expired"
    case .rateLimited: "rate_limited"
    case .unavailable: "unavailable"
    case .invalidRequest: "invalid_request"
    case .superseded: "superseded"
    case .idempotencyMismatch: "idempotency_mismatch"
    }
  }

  /// The HTTP status.
  public var status: Int {
    switch self {
    case .notSignedIn, .sessionExpired: 401
    case .deviceNotEnrolled: 412
    case .deviceRevoked, .notAMember, .forbidden: 403
    case .chatIsDirect, .groupFull, .idempotencyMismatch: 422
    case .userNotFound, .chatNotFound, .blobNotFound, .callNotFound: 404
    case .noKeyPackage, .staleEpoch, .commitIncomplete, .callFull, .superseded: 409
    case .messageTooLarge, .attachmentTooLarge: 413
    case .blobExpired, .callEnded: 410
    case .rateLimited: 429
    case .unavailable: 503
    case .invalidRequest: 400
    }
  }
}

/// Why a store cannot work.
public enum StoreFault: UInt8, Sendable, CaseIterable {
  /// No room on the medium.
  case full
  /// Somebody else has locked it.
  case busy
  /// Its bytes are damaged.
  case corrupted
  /// Its file was moved, replaced or deleted while it was in use.
  case displaced
  /// Any other failure of the medium.
  case failed
  /// More requests wait than it gets done.
  case overloaded
}
