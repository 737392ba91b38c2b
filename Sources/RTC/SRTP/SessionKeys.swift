import PalbeCrypto

/// The keys of one direction, for RTP or for RTCP (RFC 3711 §4.3.1).
///
///     master key, master salt ─► AES-CM PRF, label 0/3 ─► encryption key
///                                            label 1/4 ─► authentication key (counter mode only)
///                                            label 2/5 ─► salt
package struct SessionKeys: ~Copyable {
  package let encryption: SymmetricKey
  package let authentication: SymmetricKey
  package let salt: SymmetricKey

  /// The purpose of a derived key; RTCP's labels lie three above RTP's.
  enum Label: UInt8 {
    case encryption = 0
    case authentication = 1
    case salt = 2
  }

  package init(
    encryption: consuming SymmetricKey, authentication: consuming SymmetricKey, salt: consuming SymmetricKey
  ) {
    self.encryption = encryption
    self.authentication = authentication
    self.salt = salt
  }

  /// Derives with a key derivation rate of zero, as WebRTC does.
  package init(
    profile: SRTPProfile, masterKey: Span<UInt8>, masterSalt: Span<UInt8>, isControl: Bool
  ) throws(SRTPError) {
    guard masterKey.count == profile.masterKeyByteCount else {
      throw .wrongKeyLength(expected: profile.masterKeyByteCount, got: masterKey.count)
    }
    guard masterSalt.count == profile.masterSaltByteCount else {
      throw .wrongKeyLength(expected: profile.masterSaltByteCount, got: masterSalt.count)
    }
    var generator: AESCTRContext
    do throws(CryptoError) { generator = try AESCTRContext(key: masterKey) } catch { throw .cryptoFailure }
    let first: UInt8 = isControl ? 3 : 0
    encryption = Self.derive(
      &generator, masterSalt, first + Label.encryption.rawValue, profile.masterKeyByteCount)
    authentication = Self.derive(&generator, masterSalt, first + Label.authentication.rawValue, 20)
    salt = Self.derive(&generator, masterSalt, first + Label.salt.rawValue, profile.masterSaltByteCount)
  }

  /// The key stream that starts at (salt XOR label * 2^48) * 2^16. A 12-byte salt stands before two zero bytes
  /// (RFC 7714 §11).
  private static func derive(
    _ generator: inout AESCTRContext, _ masterSalt: Span<UInt8>, _ label: UInt8, _ count: Int
  ) -> SymmetricKey {
    var block = InlineArray<16, UInt8>(repeating: 0)
    for index in masterSalt.indices { block[index] = masterSalt[index] }
    block[7] ^= label
    return SymmetricKey(byteCount: count) { output in
      for _ in 0..<count { output.append(0) }
      var bytes = output.mutableSpan
      generator.apply(in: &bytes, range: 0..<count, counterBlock: block.span)
    }
  }
}
