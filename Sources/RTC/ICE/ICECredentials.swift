import PalbeUnits

/// An agent's user name fragment and password, as `a=ice-ufrag` and `a=ice-pwd` carry them (RFC 8839 §5.4).
public struct ICECredentials: Hashable, Sendable {
  /// 4 to 256 characters of `A-Z a-z 0-9 + /`.
  public let usernameFragment: String
  /// 22 to 256 characters of the same.
  public let password: String
  /// The key of MESSAGE-INTEGRITY: the password's bytes.
  let integrityKey: [UInt8]

  /// Refuses, with nil, lengths and characters that RFC 8839 §5.4 does not allow.
  public init?(usernameFragment: String, password: String) {
    guard (4...256).contains(usernameFragment.utf8.count), (22...256).contains(password.utf8.count),
      usernameFragment.utf8.allSatisfy(Self.isICECharacter), password.utf8.allSatisfy(Self.isICECharacter)
    else { return nil }
    self.usernameFragment = usernameFragment
    self.password = password
    integrityKey = [UInt8](password.utf8)
  }

  /// Fresh ones: 48 bits in 8 characters, enough to find an agent by; 144 bits in 24.
  public init(using random: inout RandomSource) {
    usernameFragment = Self.characters(8, using: &random)
    password = Self.characters(24, using: &random)
    integrityKey = [UInt8](password.utf8)
  }

  private static func characters(_ count: Int, using random: inout RandomSource) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    return String(decoding: random.bytes(count).map { alphabet[Int($0 & 63)] }, as: UTF8.self)
  }

  static func isICECharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case 43, 47, 48...57, 65...90, 97...122: true
    default: false
    }
  }
}
