public import PalbeCrypto

/// Secret bytes that several own: wiped when the last one lets go.
public final class Secret: Sendable {
  /// The bytes.
  public let key: SymmetricKey

  /// Takes them.
  public init(_ key: consuming SymmetricKey) { self.key = key }

  /// What a derivation gives for it; takes long.
  public func derived(by work: PasswordWork) throws(CryptoError) -> Secret {
    Secret(try work.derive(from: key))
  }
}
