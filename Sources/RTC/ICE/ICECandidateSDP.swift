import PalbeUnits

/// Why a candidate line cannot be used.
public enum ICECandidateError: Error, Equatable, Sendable {
  /// Longer than any candidate is.
  case tooLong(count: Int, limit: Int)
  /// Not `candidate:` and at least eight fields.
  case malformed
  /// A field holds what RFC 8839 §5.1 does not allow; fields are counted from 0, the foundation.
  case invalidField(Int)
  /// The address is a name, such as an mDNS `….local`: right, but nothing that we resolve. Skip it.
  case hostName
}

extension ICECandidate {
  /// Characters of a candidate line that are read.
  private static let lineLimit = 1_024

  /// Reads `candidate:…`, with or without `a=` before it (RFC 8839 §5.1). Unknown extensions are skipped.
  public static func parse(_ line: String) throws(ICECandidateError) -> ICECandidate {
    guard line.utf8.count <= lineLimit else { throw .tooLong(count: line.utf8.count, limit: lineLimit) }
    var text = Substring(line)
    if text.hasPrefix("a=") { text = text.dropFirst(2) }
    guard text.hasPrefix("candidate:") else { throw .malformed }
    let fields = text.dropFirst(10).split(whereSeparator: { $0 == " " || $0.isNewline })
    guard fields.count >= 8, fields[6] == "typ" else { throw .malformed }

    guard (1...32).contains(fields[0].utf8.count), fields[0].utf8.allSatisfy(ICECredentials.isICECharacter)
    else { throw .invalidField(0) }
    guard let component = digits(fields[1], UInt16.self), (1...256).contains(component) else {
      throw .invalidField(1)
    }
    guard let transport = Transport(attribute: fields[2].lowercased()) else { throw .invalidField(2) }
    guard let priority = digits(fields[3], UInt32.self), priority > 0 else { throw .invalidField(3) }
    guard let port = digits(fields[5], UInt16.self) else { throw .invalidField(5) }
    guard let kind = Kind(rawValue: fields[7].lowercased()) else { throw .invalidField(7) }
    guard let address = SocketAddress(host: String(fields[4]), port: port) else {
      // A colon is in no host name, so this was meant as IPv6 (or carries a zone).
      guard !fields[4].contains(":"), fields[4].contains(where: \.isLetter) else { throw .invalidField(4) }
      throw .hostName
    }

    var candidate = ICECandidate(kind, address)
    candidate.foundation = String(fields[0])
    candidate.component = component
    candidate.transport = transport
    candidate.tcpType = nil
    candidate.priority = priority
    candidate.readExtensions(fields[8...])
    return candidate
  }

  /// Name and value pairs. A related address that is hidden (`0.0.0.0`, a name) is only information: skipped.
  private mutating func readExtensions(_ fields: ArraySlice<Substring>) {
    var relatedHost: Substring?
    var index = fields.startIndex
    while index + 1 < fields.endIndex {
      let value = fields[index + 1]
      switch fields[index] {
      case "raddr": relatedHost = value
      case "rport":
        if let host = relatedHost, let port = Self.digits(value, UInt16.self) {
          var related = SocketAddress(host: String(host), port: port)
          related?.transport = transport
          relatedAddress = related
        }
      case "tcptype": tcpType = String(value)
      case "ufrag": usernameFragment = String(value)
      default: break
      }
      index += 2
    }
  }

  private static func digits<Number: FixedWidthInteger>(_ text: Substring, _: Number.Type) -> Number? {
    guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }) else {
      return nil
    }
    return Number(text)
  }

  /// The line as it stands in SDP and in trickle messages, without `a=`.
  public var attribute: String {
    var line = "candidate:\(foundation) \(component) \(transport.attribute) \(priority)"
    line += " \(address.host) \(address.port) typ \(kind.rawValue)"
    if let relatedAddress { line += " raddr \(relatedAddress.host) rport \(relatedAddress.port)" }
    if let tcpType { line += " tcptype \(tcpType)" }
    if let usernameFragment { line += " ufrag \(usernameFragment)" }
    return line
  }
}

extension SocketAddress.Transport {
  /// As it stands in a candidate line.
  fileprivate var attribute: String { self == .udp ? "udp" : "tcp" }

  fileprivate init?(attribute: String) {
    switch attribute {
    case "udp": self = .udp
    case "tcp": self = .tcp
    default: return nil
    }
  }
}
