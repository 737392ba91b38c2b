import PalbeCrypto
import PalbeUnits
import PalbeWire

/// The transform of one direction, for RTP or for RTCP, with contexts that are keyed once.
///
/// Everything happens in place; the ranges were checked by the caller against the buffer.
package struct PacketCipher: ~Copyable, Sendable {
  private let salt: SymmetricKey
  // One of the two pairs is there, by profile.
  private var aead: AEADContext?
  private var counter: AESCTRContext?
  private var code: HMACContext<SHA1>?

  package init(
    _ keys: consuming SessionKeys, profile: SRTPProfile, direction: AEADContext.Direction
  ) throws(SRTPError) {
    do throws(CryptoError) {
      switch profile {
      case .aes128CMSHA1_80:
        aead = nil
        counter = try AESCTRContext(key: keys.encryption.span)
        code = HMACContext<SHA1>(key: keys.authentication.span)
      case .aeadAES128GCM, .aeadAES256GCM:
        let algorithm: AEADContext.Algorithm = profile == .aeadAES128GCM ? .aes128GCM : .aes256GCM
        aead = try AEADContext(algorithm, key: keys.encryption.span, direction: direction)
        counter = nil
        code = nil
      }
    } catch { throw .cryptoFailure }
    salt = keys.salt.copy()
  }

  /// Encrypts `buffer[body]` and writes the tag.
  ///
  /// - Parameters:
  ///   - header: bytes before the body, authenticated and not encrypted.
  ///   - nonce: SSRC and 48-bit index.
  ///   - trailer: authenticated behind the packet, and not in the buffer yet: RTP's roll-over count in counter mode
  ///     (RFC 3711 §4.2), RTCP's E bit and index.
  ///   - tagOffset: where the tag goes; for GCM the body's end.
  mutating func protect(
    _ buffer: inout MutableSpan<UInt8>, header: Range<Int>, body: Range<Int>, ssrc: SSRC, index: UInt64,
    trailer: UInt32, isControl: Bool, tagOffset: Int
  ) throws(SRTPError) {
    let trailerBytes = bigEndian(trailer)
    if aead != nil {
      let nonce = gcmNonce(ssrc: ssrc, index: index)
      do throws(CryptoError) {
        if isControl {
          try aead?.seal(
            in: &buffer, body: body, authenticating: header, trailerBytes.span, nonce: nonce.span)
        } else {
          try aead?.seal(in: &buffer, body: body, authenticating: header, nonce: nonce.span)
        }
      } catch { throw .cryptoFailure }
      return
    }
    let block = counterBlock(ssrc: ssrc, index: index)
    counter?.apply(in: &buffer, range: body, counterBlock: block.span)
    let tag = tag(of: buffer.span.extracting(header.lowerBound..<body.upperBound), trailerBytes)
    for index in 0..<10 { buffer[tagOffset + index] = tag[index] }
  }

  /// Checks the tag and decrypts `buffer[body]`; the parameters are those of `protect`.
  mutating func unprotect(
    _ buffer: inout MutableSpan<UInt8>, header: Range<Int>, body: Range<Int>, ssrc: SSRC, index: UInt64,
    trailer: UInt32, isControl: Bool, tagOffset: Int
  ) throws(SRTPError) {
    let trailerBytes = bigEndian(trailer)
    if aead != nil {
      let nonce = gcmNonce(ssrc: ssrc, index: index)
      do throws(CryptoError) {
        if isControl {
          try aead?.open(
            in: &buffer, body: body, authenticating: header, trailerBytes.span, nonce: nonce.span)
        } else {
          try aead?.open(in: &buffer, body: body, authenticating: header, nonce: nonce.span)
        }
      } catch { throw error == .authenticationFailure ? .authenticationFailure : .cryptoFailure }
      return
    }
    let message = header.lowerBound..<body.upperBound
    guard isAuthentic(buffer.span, message: message, trailer: trailerBytes, tagOffset: tagOffset) else {
      throw .authenticationFailure
    }
    let block = counterBlock(ssrc: ssrc, index: index)
    counter?.apply(in: &buffer, range: body, counterBlock: block.span)
  }

  private mutating func tag(
    of message: Span<UInt8>, _ trailer: InlineArray<4, UInt8>
  ) -> InlineArray<10, UInt8> {
    var tag = InlineArray<10, UInt8>(repeating: 0)
    var output = tag.mutableSpan
    code?.authenticate(message, trailer.span, into: &output)
    return tag
  }

  private mutating func isAuthentic(
    _ packet: Span<UInt8>, message: Range<Int>, trailer: InlineArray<4, UInt8>, tagOffset: Int
  ) -> Bool {
    let tag = packet.extracting(tagOffset..<tagOffset + 10)
    return code?.isValid(tag, for: packet.extracting(message), trailer.span) ?? false
  }

  /// RFC 7714 §8.1 and §9.1: two zero bytes, SSRC, 48-bit index, XOR salt.
  private func gcmNonce(ssrc: SSRC, index: UInt64) -> InlineArray<12, UInt8> {
    var nonce = InlineArray<12, UInt8>(repeating: 0)
    let salt = salt.span
    for at in 0..<4 {
      nonce[2 + at] = UInt8(truncatingIfNeeded: ssrc.rawValue >> (24 - 8 * UInt32(at)))
    }
    for at in 0..<6 { nonce[6 + at] = UInt8(truncatingIfNeeded: index >> (40 - 8 * UInt64(at))) }
    for at in 0..<12 { nonce[at] ^= salt[at] }
    return nonce
  }

  /// RFC 3711 §4.1.1: salt * 2^16 XOR SSRC * 2^64 XOR index * 2^16.
  private func counterBlock(ssrc: SSRC, index: UInt64) -> InlineArray<16, UInt8> {
    var block = InlineArray<16, UInt8>(repeating: 0)
    let salt = salt.span
    for at in 0..<4 {
      block[4 + at] = UInt8(truncatingIfNeeded: ssrc.rawValue >> (24 - 8 * UInt32(at)))
    }
    for at in 0..<6 { block[8 + at] = UInt8(truncatingIfNeeded: index >> (40 - 8 * UInt64(at))) }
    for at in 0..<14 { block[at] ^= salt[at] }
    return block
  }

  private func bigEndian(_ value: UInt32) -> InlineArray<4, UInt8> {
    [
      UInt8(truncatingIfNeeded: value >> 24), UInt8(truncatingIfNeeded: value >> 16),
      UInt8(truncatingIfNeeded: value >> 8), UInt8(truncatingIfNeeded: value),
    ]
  }
}
