/// Why a packet was not protected or not accepted.
public enum SRTPError: Error, Equatable, Sendable {
  /// A master key or salt has the wrong length for the profile.
  case wrongKeyLength(expected: Int, got: Int)
  /// The buffer has no room for the tag.
  case noRoom(needed: Int, have: Int)
  /// The packet is shorter than its header and tag.
  case truncated(needed: Int, have: Int)
  /// The header is not RTP's or RTCP's.
  case malformed
  /// The tag does not match: another key, or a changed packet.
  case authenticationFailure
  /// The packet was accepted before, or is older than the replay window.
  case replayed
  /// The sequence number was protected before, or is older than the window that remembers it. To protect something
  /// else under it would use a nonce twice.
  case sequenceReuse
  /// An RTCP packet without encryption; WebRTC sends none.
  case unencrypted
  /// Too many SSRCs in one session.
  case tooManySources(limit: Int)
  /// All 2^31 RTCP indices or all 2^48 RTP indices of a source are used up; the session needs new keys.
  case indexExhausted
  /// OpenSSL failed; no packet causes this.
  case cryptoFailure
}
