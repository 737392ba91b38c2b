/// Why a datagram is not a STUN message that we can use.
public enum STUNError: Error, Equatable, Sendable {
  /// Too short, the first two bits are set, or the magic cookie is missing.
  case notSTUN
  /// The header's length is not a multiple of four or not that of the datagram.
  case wrongLength(declared: Int, have: Int)
  /// An attribute reaches past the end of the message.
  case truncatedAttribute(type: UInt16)
  /// An attribute's value has a length or content that its format does not allow.
  case malformedAttribute(type: UInt16)
  /// More attributes than any message of ours or of a browser has.
  case tooManyAttributes(limit: Int)
  /// FINGERPRINT is there and does not match: corrupted, or not STUN at all.
  case wrongFingerprint
}
