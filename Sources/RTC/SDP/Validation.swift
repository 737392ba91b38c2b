/// Which side of a negotiation a description is.
public enum SDPRole: Sendable {
  case offer
  case answer
}

extension SessionDescription {
  /// Refuses what a WebRTC call over one transport cannot use. The first problem is thrown with its section.
  ///
  /// Rejected sections need nothing but a place. Rules: RFC 8829 §5.8, RFC 9143, RFC 8839 §5.4, RFC 8122 §5,
  /// RFC 8842 §5, RFC 8285 §5.
  public func validate(as role: SDPRole) throws(SDPError) {
    guard !media.isEmpty else { throw .noSections }
    var mids = Set<String>()
    let bundle = Set(bundle)
    for (index, section) in media.enumerated() where !section.isRejected {
      if let problem = problem(of: section, role, &mids, bundle) { throw .section(index, problem) }
    }
  }

  private func problem(
    of section: MediaSection, _ role: SDPRole, _ mids: inout Set<String>, _ bundle: Set<String>
  ) -> SectionProblem? {
    guard let mid = section.mid, !mid.isEmpty, mid.utf8.count <= 255, !mid.contains(" ") else { return .mid }
    guard mids.insert(mid).inserted else { return .duplicateMid }
    guard bundle.contains(mid) else { return .notBundled }
    let transport = transport(of: section)
    guard Self.isICEText(transport.iceUsernameFragment, 4...256),
      Self.isICEText(transport.icePassword, 22...256)
    else { return .iceCredentials }
    guard transport.fingerprint != nil else { return .fingerprint }
    guard let setup = transport.setup, role == .offer || setup != .actpass else { return .setup }
    guard section.isRTP else { return nil }
    guard section.isRTCPMultiplexed else { return .rtcpMux }
    guard section.payloadTypes.count == section.formats.count else { return .payloadType }
    let ids = section.headerExtensions.map(\.id)
    guard ids.count == section.attributes.values("extmap").count, Set(ids).count == ids.count else {
      return .headerExtension
    }
    return nil
  }

  private static func isICEText(_ text: String, _ length: ClosedRange<Int>) -> Bool {
    length.contains(text.utf8.count)
      && text.utf8.allSatisfy { isAlphanumeric($0) || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }
  }
}
