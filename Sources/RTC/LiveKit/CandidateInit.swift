extension LiveKit {
  /// The JSON in `TrickleRequest.candidateInit`, as browsers define it (RTCIceCandidateInit).
  public struct CandidateInit: Equatable, Sendable {
    /// `candidate:…` (RFC 8839 §5.1); empty at the end of candidates.
    public var candidate: String
    /// The media section's `a=mid`.
    public var sdpMid: String?
    /// The media section's place in the description, from 0.
    public var sdpMLineIndex: UInt16?
    /// The `a=ice-ufrag` the candidate belongs to.
    public var usernameFragment: String?

    /// A candidate of the section `sdpMid`. Clients in Rust refuse one without a section and its place.
    public init(candidate: String, sdpMid: String?, sdpMLineIndex: UInt16?, usernameFragment: String? = nil) {
      self.candidate = candidate
      self.sdpMid = sdpMid
      self.sdpMLineIndex = sdpMLineIndex
      self.usernameFragment = usernameFragment
    }

    /// Reads one JSON object of at most 4 KiB; members it does not know are skipped.
    public init(json: String) throws(JSONError) {
      self.init(candidate: "", sdpMid: nil, sdpMLineIndex: nil)
      var hasCandidate = false
      var scanner = try JSONScanner(json, limit: 4_096)
      try scanner.object { key, scanner throws(JSONError) in
        switch key {
        case "candidate":
          candidate = try scanner.string()
          hasCandidate = true
        case "sdpMid": sdpMid = try scanner.isNull() ? nil : scanner.string()
        case "sdpMLineIndex": sdpMLineIndex = try scanner.isNull() ? nil : scanner.uint16()
        case "usernameFragment": usernameFragment = try scanner.isNull() ? nil : scanner.string()
        default: try scanner.skipValue()
        }
      }
      try scanner.finish()
      guard hasCandidate else { throw .missing }
    }

    /// The object, always with the first three members.
    public var json: String {
      var text = "{\"candidate\":" + JSONScanner.quote(candidate)
      text += ",\"sdpMid\":" + (sdpMid.map(JSONScanner.quote) ?? "null")
      text += ",\"sdpMLineIndex\":" + (sdpMLineIndex.map { String($0) } ?? "null")
      if let usernameFragment { text += ",\"usernameFragment\":" + JSONScanner.quote(usernameFragment) }
      return text + "}"
    }
  }

  /// Why a text is not the JSON it should be.
  public enum JSONError: Error, Equatable, Sendable {
    /// Longer than the limit, in bytes.
    case tooLong(limit: Int)
    /// Not JSON (RFC 8259), or not the type of value that belongs there, at this byte.
    case unexpected(at: Int)
    /// Values nested deeper than the limit.
    case tooDeep(limit: Int)
    /// A member that must be there is not.
    case missing
  }
}
