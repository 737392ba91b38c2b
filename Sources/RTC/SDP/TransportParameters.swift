import PalbeWire

/// What a description says of its transport: ICE (RFC 8839) and DTLS (RFC 8842).
public struct TransportParameters: Equatable, Sendable {
  /// `a=ice-ufrag`, empty when absent.
  public var iceUsernameFragment = ""
  /// `a=ice-pwd`, empty when absent.
  public var icePassword = ""
  /// The words of `a=ice-options`.
  public var iceOptions: [String] = []
  /// The first `a=fingerprint` of SHA-256, or else the first that can be read.
  public var fingerprint: Fingerprint?
  /// `a=setup`.
  public var setup: DTLSSetup?

  /// Parameters to write.
  public init(
    iceUsernameFragment: String, icePassword: String, iceOptions: [String] = [], fingerprint: Fingerprint,
    setup: DTLSSetup
  ) {
    self.iceUsernameFragment = iceUsernameFragment
    self.icePassword = icePassword
    self.iceOptions = iceOptions
    self.fingerprint = fingerprint
    self.setup = setup
  }

  /// A section's attributes, or the session's where it has none.
  init(section: SDPAttributes, session: SDPAttributes) {
    func value(_ name: String) -> String? { section.first(name) ?? session.first(name) }
    iceUsernameFragment = value("ice-ufrag") ?? ""
    icePassword = value("ice-pwd") ?? ""
    iceOptions = value("ice-options")?.split(separator: " ").map(String.init) ?? []
    let texts =
      section.contains("fingerprint") ? section.values("fingerprint") : session.values("fingerprint")
    let fingerprints = texts.compactMap { Fingerprint(parsing: $0) }
    fingerprint = fingerprints.first { $0.algorithm == "sha-256" } ?? fingerprints.first
    setup = value("setup").flatMap { DTLSSetup(rawValue: $0) }
  }
}

/// Which side opens the DTLS connection (RFC 4145 §4).
public enum DTLSSetup: String, Equatable, Sendable {
  /// The client.
  case active
  /// The server.
  case passive
  /// Either; only in an offer.
  case actpass
}

/// The hash of a certificate (RFC 8122 §5).
public struct Fingerprint: Equatable, Sendable {
  /// In lower case, such as `sha-256`.
  public var algorithm: String
  /// The hash.
  public var bytes: [UInt8]

  /// A SHA-256 hash of 32 bytes.
  public init(sha256 bytes: [UInt8]) {
    algorithm = "sha-256"
    self.bytes = bytes
  }

  /// `sha-256 AB:CD:…`; nil when malformed, or when a known algorithm has another length.
  public init?(parsing text: String) {
    guard let (word, rest) = splitWord(text) else { return nil }
    let pairs = rest.split(separator: ":", omittingEmptySubsequences: false)
    guard pairs.allSatisfy({ $0.utf8.count == 2 }), let bytes = Hex.decode(pairs.joined()), bytes.count <= 64
    else { return nil }
    algorithm = word.lowercased()
    self.bytes = bytes
    switch algorithm {
    case "sha-1": guard bytes.count == 20 else { return nil }
    case "sha-256": guard bytes.count == 32 else { return nil }
    case "sha-384": guard bytes.count == 48 else { return nil }
    case "sha-512": guard bytes.count == 64 else { return nil }
    default: break
    }
  }

  /// The value of the attribute.
  public var description: String {
    let digits = Hex.encode(bytes).uppercased()
    var text = algorithm + " "
    for (index, digit) in digits.enumerated() {
      if index > 0, index.isMultiple(of: 2) { text += ":" }
      text.append(digit)
    }
    return text
  }
}

extension MediaSection {
  /// Writes the transport into this section, in place of what was there.
  public mutating func set(_ transport: TransportParameters) {
    attributes.set("ice-ufrag", transport.iceUsernameFragment)
    attributes.set("ice-pwd", transport.icePassword)
    attributes.set(
      "ice-options", transport.iceOptions.isEmpty ? nil : transport.iceOptions.joined(separator: " "))
    attributes.set("fingerprint", transport.fingerprint?.description)
    attributes.set("setup", transport.setup?.rawValue)
  }

  /// The `candidate:…` texts of this section (RFC 8839 §5.1), as trickled candidates carry them.
  public var candidates: [String] {
    get { attributes.values("candidate").map { "candidate:" + $0 } }
    set {
      attributes.replace(
        "candidate", with: newValue.map { $0.hasPrefix("candidate:") ? String($0.dropFirst(10)) : $0 })
    }
  }

  /// No candidates follow (RFC 8840 §8.2).
  public var isEndOfCandidates: Bool {
    get { attributes.contains("end-of-candidates") }
    set { attributes.setFlag("end-of-candidates", newValue) }
  }
}
