import PalbeSDP

/// Where a participant's offers and our answers stand.
struct Negotiation {
  let sessionID: UInt64
  /// Rises with every answer.
  private(set) var version: UInt64 = 0
  /// The last offer that was answered.
  private(set) var offer: SessionDescription?

  init(sessionID: UInt64) { self.sessionID = sessionID }

  /// The origin of the next answer.
  mutating func takeUp(_ offer: SessionDescription) -> SDPOrigin {
    self.offer = offer
    version += 1
    return SDPOrigin(sessionID: sessionID, version: version)
  }
}
