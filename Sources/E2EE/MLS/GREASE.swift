import PalbeMLSMessages

/// Values reserved to keep peers tolerant of what they do not know, RFC 9420 §13.5.
///
/// They follow from the client's signing key, so that its leaves stay the same between runs and other clients send
/// others.
struct GREASE: Sendable {
  /// 0x0A0A to 0xEAEA; nil when none is sent.
  private let seed: [UInt8]?

  var isSent: Bool { seed != nil }

  static let none = GREASE(seed: nil)

  private init(seed: [UInt8]?) { self.seed = seed }

  init(signatureKey: [UInt8]) { seed = Array(signatureKey.suffix(8)) }

  private func value(_ place: Int) -> UInt16? {
    guard let seed, !seed.isEmpty else { return nil }
    return 0x0a0a + 0x1010 * UInt16(seed[place % seed.count] % 15)
  }

  private func values<Value: MLSRegistryValue>(_ place: Int) -> [Value] {
    value(place).map { [Value(rawValue: $0)] } ?? []
  }

  private func extensions(_ place: Int) -> [Extension] {
    values(place).map { Extension(type: $0, data: Array(seed ?? [])) }
  }

  /// Capabilities with one made-up value of each kind.
  func adding(to capabilities: Capabilities) -> Capabilities {
    var result = capabilities
    result.cipherSuites += values(0)
    result.extensions += values(1)
    result.proposals += values(2)
    result.credentials += values(3)
    return result
  }

  /// For a leaf, which lists them among its capabilities too.
  var leafExtensions: [Extension] { extensions(1) }
  /// For a key package.
  var keyPackageExtensions: [Extension] { extensions(4) }
  /// For a GroupInfo.
  var groupInfoExtensions: [Extension] { extensions(5) }
}
