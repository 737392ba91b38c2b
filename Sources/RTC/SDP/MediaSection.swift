/// What a media section carries.
public enum MediaKind: Equatable, Sendable {
  case audio
  case video
  /// Data channels.
  case application
  /// Anything else, by its name.
  case other(String)

  /// From the first word of an `m=` line.
  public init(_ name: some StringProtocol) {
    switch name {
    case "audio": self = .audio
    case "video": self = .video
    case "application": self = .application
    default: self = .other(String(name))
    }
  }

  /// The first word of an `m=` line.
  public var name: String {
    switch self {
    case .audio: "audio"
    case .video: "video"
    case .application: "application"
    case .other(let name): name
    }
  }
}

/// A media section: an `m=` line and what follows it (RFC 8866 §5.14).
///
/// To build one, start from `MediaSection.rtp`, `.dataChannel` or `answer`, and set the typed properties.
public struct MediaSection: Equatable, Sendable {
  /// What it carries.
  public var kind: MediaKind
  /// 9 where ICE finds the address, 0 where the section is rejected.
  public var port: UInt16
  /// `UDP/TLS/RTP/SAVPF` for RTP, `UDP/DTLS/SCTP` for data channels.
  public var transportProtocol: String
  /// Payload types in the order of preference, or `webrtc-datachannel`.
  public var formats: [String]
  /// The `c=` line, as it stands.
  public var connection: String? = "IN IP4 0.0.0.0"
  /// The attributes of this section.
  public var attributes = SDPAttributes()

  /// A section without attributes.
  public init(kind: MediaKind, port: UInt16 = 9, transportProtocol: String, formats: [String] = []) {
    self.kind = kind
    self.port = port
    self.transportProtocol = transportProtocol
    self.formats = formats
  }

  /// A section for audio or video, multiplexed with its RTCP.
  public static func rtp(_ kind: MediaKind, mid: String, direction: MediaDirection) -> MediaSection {
    var section = MediaSection(kind: kind, transportProtocol: "UDP/TLS/RTP/SAVPF")
    section.mid = mid
    section.direction = direction
    section.isRTCPMultiplexed = true
    section.isRTCPReducedSize = true
    return section
  }

  /// A section for data channels (RFC 8841); `maxMessageSize` in bytes.
  public static func dataChannel(
    mid: String, sctpPort: UInt16 = 5_000, maxMessageSize: UInt64 = 262_144
  ) -> MediaSection {
    var section = MediaSection(
      kind: .application, transportProtocol: "UDP/DTLS/SCTP", formats: ["webrtc-datachannel"])
    section.mid = mid
    section.sctpPort = sctpPort
    section.maxMessageSize = maxMessageSize
    return section
  }

  /// The other side takes nothing of this section (RFC 8829 §5.3.1).
  public var isRejected: Bool { port == 0 && !attributes.contains("bundle-only") }

  /// True for RTP, false for data channels and what we do not know.
  public var isRTP: Bool { kind == .audio || kind == .video }

  /// The section's name (RFC 5888).
  public var mid: String? {
    get { attributes.first("mid") }
    set { attributes.set("mid", newValue) }
  }

  /// The direction this section states; `sendrecv` where it states none.
  public var direction: MediaDirection {
    get { ownDirection ?? .sendrecv }
    set {
      let place =
        attributes.all.firstIndex { MediaDirection(rawValue: $0.name) != nil } ?? attributes.all.count
      attributes.all.removeAll { MediaDirection(rawValue: $0.name) != nil }
      attributes.all.insert(SDPAttribute(newValue.rawValue), at: place)
    }
  }

  var ownDirection: MediaDirection? { MediaDirection(in: attributes) }

  /// RTP and RTCP share the transport (RFC 5761).
  public var isRTCPMultiplexed: Bool {
    get { attributes.contains("rtcp-mux") }
    set { attributes.setFlag("rtcp-mux", newValue) }
  }

  /// RTCP packets need not be compound (RFC 5506).
  public var isRTCPReducedSize: Bool {
    get { attributes.contains("rtcp-rsize") }
    set { attributes.setFlag("rtcp-rsize", newValue) }
  }

  /// The SCTP port of a data channel section (RFC 8841 §5).
  public var sctpPort: UInt16? {
    get { attributes.first("sctp-port").flatMap { decimal($0) } }
    set { attributes.set("sctp-port", newValue.map { String($0) }) }
  }

  /// The largest message in bytes that the other side takes (RFC 8841 §6); 0 is any size.
  public var maxMessageSize: UInt64? {
    get { attributes.first("max-message-size").flatMap { decimal($0) } }
    set { attributes.set("max-message-size", newValue.map { String($0) }) }
  }
}

/// Who sends in a media section, seen from the side that wrote the description (RFC 8866 §6.7).
public enum MediaDirection: String, Equatable, Sendable {
  case sendrecv, sendonly, recvonly, inactive

  /// From who sends and who receives.
  public init(sends: Bool, receives: Bool) {
    self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
  }

  init?(in attributes: SDPAttributes) {
    for attribute in attributes.all where attribute.value == nil {
      guard let direction = MediaDirection(rawValue: attribute.name) else { continue }
      self = direction
      return
    }
    return nil
  }

  /// True for `sendrecv` and `sendonly`.
  public var sends: Bool { self == .sendrecv || self == .sendonly }
  /// True for `sendrecv` and `recvonly`.
  public var receives: Bool { self == .sendrecv || self == .recvonly }
  /// The same, seen from the other side.
  public var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }
}

extension MediaSection: CustomStringConvertible {
  /// The lines, with CRLF line ends.
  public var description: String {
    var text = "m=\(kind.name) \(port) \(transportProtocol) \(formats.joined(separator: " "))\r\n"
    if let connection { text += "c=\(connection)\r\n" }
    return text + attributes.lines
  }

  /// From the value of an `m=` line: `kind port[/count] protocol format…`.
  init?(parsing value: String) {
    let words = value.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count >= 4, !words.contains(where: \.isEmpty),
      let port: UInt16 = decimal(words[1].prefix { $0 != "/" })
    else { return nil }
    self.init(
      kind: MediaKind(words[0]), port: port, transportProtocol: String(words[2]),
      formats: words[3...].map(String.init))
    connection = nil
  }
}
