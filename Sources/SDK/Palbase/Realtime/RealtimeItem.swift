import PalbeUnits

/// What a subscriber of a topic hears, in order.
package enum RealtimeItem: Sendable, Equatable {
  /// The server has the subscription. It comes again after each interruption: what happened in between was missed, and
  /// is to be looked up. The server's reply, JSON.
  case joined([UInt8])
  /// Something happened; the whole frame, JSON.
  case event(name: String, [UInt8])
  /// The connection is gone and is being opened again.
  case interrupted
  /// This subscriber did not read, and items before this one are lost.
  case missed
  /// Nothing comes any more.
  case ended(RealtimeEnd)
}

/// Why a subscription is over.
package enum RealtimeEnd: Sendable, Equatable {
  /// A newer connection of this device subscribed to its queue.
  case superseded
  /// The person is not in the conversation, or no longer.
  case notAMember
  /// The user removed this device.
  case deviceRevoked
  /// The group was founded anew: subscribe to the new one.
  case groupReset
  /// The person signed out.
  case signedOut
  /// Somebody else signed in.
  case personChanged
  /// The server refused it.
  case refused(ServerFailure)
  /// A reason that this SDK does not know.
  case other(String)

  init(reason: String) {
    switch reason {
    case "superseded": self = .superseded
    case "not_a_member": self = .notAMember
    case "device_revoked": self = .deviceRevoked
    case "group_reset": self = .groupReset
    default: self = .other(String(reason.prefix(64)))
    }
  }

  init(_ failure: ServerFailure) {
    switch failure.code {
    case .notAMember: self = .notAMember
    case .deviceRevoked: self = .deviceRevoked
    default: self = .refused(failure)
    }
  }
}
