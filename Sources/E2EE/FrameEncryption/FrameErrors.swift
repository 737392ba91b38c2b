import PalbeCrypto

/// Why a frame could not be sealed.
public enum SealError: Error, Equatable, Sendable {
  /// End-to-end encryption is on and no key was installed yet: the frame must not leave.
  case noKey
  /// The handle's sender was removed, or belongs to another ring.
  case unknownSender
  /// The buffer lacks room in front of the frame or behind it.
  case noRoom(needed: Int, have: Int)
  /// The frame is above the limit.
  case tooLong(have: Int, limit: Int)
  /// The key sealed as many frames or bytes as it may (hazard H11); a new context is needed.
  case exhausted
  /// The library failed; the counter has moved all the same.
  case crypto(CryptoError)
}

/// Why a frame was not opened.
public enum OpenFailure: Error, Equatable, Hashable, Sendable, CaseIterable {
  /// Not an SFrame of this format.
  case malformed
  /// The handle's receiver was removed, or belongs to another ring.
  case unknownReceiver
  /// The key id's low 24 bits name no key that we have.
  case unknownKey
  /// The frame's call key was replaced more than 10 s ago, and wiped.
  case retiredKey
  /// The key id's context was superseded more than 10 s ago (hazard H12).
  case closedContext
  /// The frame is one of ours, sent back to us (hazard H10).
  case ownFrame
  /// This counter was opened before.
  case replayed
  /// The counter lies further back than the replay window.
  case tooOld
  /// The counter is above what a sender may use under one key (hazard H11).
  case counterTooHigh
  /// The tag does not fit: other key, other sender, other source, or changed on the way.
  case notAuthentic
  /// Too many made-up key ids in the last second (hazard H12).
  case derivationLimit
  /// The sender used up its contexts under this call key (hazard H12).
  case contextLimit
  /// It waited for its key for 500 ms, or 64 later frames pushed it out.
  case keyNeverCame
  /// The frame is above the limit.
  case tooLong
  /// The slot that it names failed more often in a row than is tolerated; its key must be set again (LiveKit's format).
  case givenUp
}

/// Why a call key was refused.
public enum FrameKeyError: Error, Equatable, Sendable {
  /// A call key has 32 bytes.
  case wrongLength(expected: Int, got: Int)
  /// This key was replaced and wiped: frames sealed under it could be replayed (hazard H3).
  case retiredKey
  /// The room or the call id already served another call under this key (hazard H13).
  case roomReused
  /// A room, identity or call id longer than 65,535 bytes, or empty.
  case invalidName(byteCount: Int)
  /// As many senders or receivers as a ring holds.
  case tooMany(limit: Int)
  /// The key ring has no such slot, or no key in it (LiveKit's format).
  case noSlot(index: Int, slots: Int)
}
