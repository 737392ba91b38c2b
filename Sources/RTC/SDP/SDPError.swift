/// Why a text is not a session description that can be used.
public enum SDPError: Error, Equatable, Sendable {
  /// Longer than the limit, in bytes.
  case tooLong(length: Int, limit: Int)
  /// More media sections than the limit.
  case tooManySections(limit: Int)
  /// This line (from 1) is not `type=value`, stands in the wrong place, or holds what its type does not
  /// allow.
  case malformedLine(Int)
  /// A line that every description has (`v=`, `o=` or `s=`) is not there.
  case missingLine(Unicode.Scalar)
  /// What is wrong with the media section at this index, found by `SessionDescription.validate`.
  case section(Int, SectionProblem)
  /// There is no media section.
  case noSections
}

/// What a WebRTC media section must have, and has not (RFC 8829 §5.8).
public enum SectionProblem: UInt8, Equatable, Sendable {
  /// No `a=mid`, or one longer than 255 bytes.
  case mid
  /// The `a=mid` of an earlier section.
  case duplicateMid
  /// Not in the BUNDLE group, though one transport carries everything here.
  case notBundled
  /// No `a=ice-ufrag` of 4 to 256 or `a=ice-pwd` of 22 to 256 ICE characters (RFC 8839 §5.4).
  case iceCredentials
  /// No `a=fingerprint` that can be read (RFC 8122 §5).
  case fingerprint
  /// No `a=setup`, or one that does not fit an offer or answer (RFC 8842 §5).
  case setup
  /// An RTP section without `a=rtcp-mux`.
  case rtcpMux
  /// An RTP section with a format that is no payload type, or the same one twice.
  case payloadType
  /// An extension id outside 1 to 255, or the same one twice (RFC 8285 §5).
  case headerExtension
}
