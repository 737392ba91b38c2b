import PalbeWire

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
      var reader = try JSONReader(json, limit: 4_096)
      try reader.enterObject()
      while let key = try reader.nextKey() {
        switch key {
        case "candidate":
          candidate = try reader.string()
          hasCandidate = true
        case "sdpMid": sdpMid = try reader.isNull() ? nil : reader.string()
        case "sdpMLineIndex": sdpMLineIndex = try reader.isNull() ? nil : reader.integer()
        case "usernameFragment": usernameFragment = try reader.isNull() ? nil : reader.string()
        default: try reader.skipValue()
        }
      }
      try reader.finish()
      guard hasCandidate else { throw .missing }
    }

    /// The object, always with the first three members.
    public var json: String {
      var writer = JSONWriter()
      writer.beginObject()
      writer.key("candidate")
      writer.string(candidate)
      writer.key("sdpMid")
      if let sdpMid { writer.string(sdpMid) } else { writer.null() }
      writer.key("sdpMLineIndex")
      if let sdpMLineIndex { writer.integer(sdpMLineIndex) } else { writer.null() }
      if let usernameFragment {
        writer.key("usernameFragment")
        writer.string(usernameFragment)
      }
      writer.endObject()
      return writer.text
    }
  }

  /// Why a text is not the JSON it should be.
  public typealias JSONError = PalbeWire.JSONError
}
