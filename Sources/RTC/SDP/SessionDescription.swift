/// A session description (RFC 8866), as far as WebRTC uses it (RFC 8829).
///
/// It keeps version, origin, name, attributes and media sections. Lines of other types (`i=`, `b=`, `t=` and
/// so on) are read and dropped. Typed accessors look at the attributes each time and skip what they cannot
/// read, so that one strange line of a peer does not lose the call; `validate` says what is missing.
public struct SessionDescription: Equatable, Sendable {
  /// The `o=` line.
  public var origin: SDPOrigin
  /// The `s=` line.
  public var name = "-"
  /// The attributes before the first media section.
  public var attributes = SDPAttributes()
  /// The media sections, in order.
  public var media: [MediaSection] = []

  /// An empty description.
  public init(origin: SDPOrigin) { self.origin = origin }

  /// The mids of the first BUNDLE group (RFC 9143); empty without one.
  public var bundle: [String] {
    get {
      for value in attributes.values("group") {
        let words = value.split(separator: " ")
        if words.first == "BUNDLE" { return words.dropFirst().map(String.init) }
      }
      return []
    }
    set {
      attributes.all.removeAll { $0.name == "group" && $0.value?.split(separator: " ").first == "BUNDLE" }
      if !newValue.isEmpty { attributes.append("group", (["BUNDLE"] + newValue).joined(separator: " ")) }
    }
  }

  /// The peer only answers connectivity checks (RFC 8839 §5.3).
  public var isICELite: Bool {
    get { attributes.contains("ice-lite") }
    set { attributes.setFlag("ice-lite", newValue) }
  }

  /// One-byte and two-byte header extensions may be mixed (RFC 8285 §6).
  public var allowsMixedExtensions: Bool {
    get { attributes.contains("extmap-allow-mixed") }
    set { attributes.setFlag("extmap-allow-mixed", newValue) }
  }

  /// The place of the section with this mid.
  public func index(ofMid mid: String) -> Int? { media.firstIndex { $0.mid == mid } }

  /// The transport of a section: its own attributes, or the session's where it has none.
  public func transport(of section: MediaSection) -> TransportParameters {
    TransportParameters(section: section.attributes, session: attributes)
  }

  /// The transport that carries everything: that of the first section in the BUNDLE group, or of the first
  /// section.
  public var transport: TransportParameters? {
    let section = bundle.first.flatMap { index(ofMid: $0) }.map { media[$0] } ?? media.first
    return section.map { transport(of: $0) }
  }

  /// The direction of a section: its own attribute, or the session's, or `sendrecv` (RFC 8866 §6.7).
  public func direction(of section: MediaSection) -> MediaDirection {
    section.ownDirection ?? MediaDirection(in: attributes) ?? .sendrecv
  }
}

/// The `o=` line: who made the description, and its version (RFC 8866 §5.2).
public struct SDPOrigin: Equatable, Sendable {
  /// Stays the same for the whole session; below 2^63 (RFC 8829 §5.2.1).
  public var sessionID: UInt64
  /// Rises with every description.
  public var version: UInt64

  /// An origin as WebRTC writes it, without an address.
  public init(sessionID: UInt64, version: UInt64) {
    self.sessionID = sessionID
    self.version = version
  }
}

extension SessionDescription: CustomStringConvertible {
  /// The text, with CRLF line ends.
  public var description: String {
    var text = "v=0\r\no=- \(origin.sessionID) \(origin.version) IN IP4 127.0.0.1\r\ns=\(name)\r\nt=0 0\r\n"
    text += attributes.lines
    for section in media { text += section.description }
    return text
  }
}

extension SDPAttributes {
  /// The lines, with CRLF line ends.
  var lines: String {
    var text = ""
    for attribute in all {
      text += "a=" + attribute.name
      if let value = attribute.value { text += ":" + value }
      text += "\r\n"
    }
    return text
  }
}
