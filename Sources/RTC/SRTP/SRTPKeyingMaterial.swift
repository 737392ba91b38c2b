import PalbeCrypto

/// Master keys and salts of both directions, as the DTLS handshake exports them (RFC 5764 §4.2).
public struct SRTPKeyingMaterial: ~Copyable, Sendable {
  /// What the keys are for.
  public let profile: SRTPProfile
  /// Protects what we send.
  public let localMasterKey: SymmetricKey
  /// Salts what we send.
  public let localMasterSalt: SymmetricKey
  /// Opens what we receive.
  public let remoteMasterKey: SymmetricKey
  /// Salts what we receive.
  public let remoteMasterSalt: SymmetricKey

  /// From its fields; lengths are checked when a session is made of them.
  public init(
    profile: SRTPProfile, localMasterKey: consuming SymmetricKey, localMasterSalt: consuming SymmetricKey,
    remoteMasterKey: consuming SymmetricKey, remoteMasterSalt: consuming SymmetricKey
  ) {
    self.profile = profile
    self.localMasterKey = localMasterKey
    self.localMasterSalt = localMasterSalt
    self.remoteMasterKey = remoteMasterKey
    self.remoteMasterSalt = remoteMasterSalt
  }
}
