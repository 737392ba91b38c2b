import CPalbeOpenSSL
import PalbeCrypto
import PalbeWire

/// SRTP's master keys and salts of both directions (RFC 5764 §4.2).
public struct DTLSKeyingMaterial: ~Copyable, Sendable {
  /// The number of the protection profile: 1, 7 or 8.
  public let profile: UInt16
  /// Protects what we send.
  public let localKey: SymmetricKey
  /// The salt of `localKey`.
  public let localSalt: SymmetricKey
  /// Opens what the peer sends.
  public let remoteKey: SymmetricKey
  /// The salt of `remoteKey`.
  public let remoteSalt: SymmetricKey

  /// The exporter's output is client key, server key, client salt, server salt.
  init(profile: UInt16, role: DTLSRole, exported: Span<UInt8>, keyByteCount: Int, saltByteCount: Int) {
    let clientKey = 0..<keyByteCount
    let serverKey = keyByteCount..<2 * keyByteCount
    let clientSalt = 2 * keyByteCount..<2 * keyByteCount + saltByteCount
    let serverSalt = clientSalt.upperBound..<clientSalt.upperBound + saltByteCount
    let isClient = role == .client
    self.profile = profile
    localKey = SymmetricKey(copying: exported.extracting(isClient ? clientKey : serverKey))
    localSalt = SymmetricKey(copying: exported.extracting(isClient ? clientSalt : serverSalt))
    remoteKey = SymmetricKey(copying: exported.extracting(isClient ? serverKey : clientKey))
    remoteSalt = SymmetricKey(copying: exported.extracting(isClient ? serverSalt : clientSalt))
  }
}

extension DTLSEndpoint {
  /// The keys for SRTP. Throws `notConnected` before the handshake is done, `noSRTPProfile` without a common profile.
  public borrowing func exportKeyingMaterial() throws(DTLSError) -> DTLSKeyingMaterial {
    guard state == .connected else { throw .notConnected }
    guard let profile = selectedProfile, let lengths = SRTPProfileName.lengths(profile) else {
      throw .noSRTPProfile
    }
    let label = "EXTRACTOR-dtls_srtp"
    let exported = try SymmetricKey(byteCount: 2 * (lengths.key + lengths.salt)) { output throws(DTLSError) in
      try unsafe output.withUnsafeMutableBufferPointer { buffer, initialized throws(DTLSError) in
        let result = unsafe SSL_export_keying_material(
          connection, buffer.baseAddress, buffer.count, label, label.utf8.count, nil, 0, 0)
        guard result == 1 else { throw .fromSetUp() }
        initialized = buffer.count
      }
    }
    return DTLSKeyingMaterial(
      profile: profile, role: role, exported: exported.span, keyByteCount: lengths.key,
      saltByteCount: lengths.salt)
  }
}
