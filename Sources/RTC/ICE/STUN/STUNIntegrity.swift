import PalbeCrypto
import PalbeWire

/// MESSAGE-INTEGRITY: HMAC-SHA1 over the message before it, its length counted up to and with the attribute
/// (RFC 8489 §14.5). ICE's key is the password as it stands in the SDP.
enum STUNIntegrity {
  static func code(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
    HMAC<SHA1>.authenticationCode(for: bytes.span, using: key.span)
  }
}

extension STUNMessage {
  /// True when the datagram that this message was parsed from carries the MESSAGE-INTEGRITY of `key`.
  /// Compares in constant time.
  public func isAuthentic(in datagram: Span<UInt8>, key: [UInt8]) -> Bool {
    guard let offset = integrityOffset, offset >= Self.headerByteCount, offset + 24 <= datagram.count else {
      return false
    }
    var covered = [UInt8](datagram.extracting(0..<offset))
    let length = offset + 24 - Self.headerByteCount
    covered[2] = UInt8(truncatingIfNeeded: length >> 8)
    covered[3] = UInt8(truncatingIfNeeded: length)
    let expected = STUNIntegrity.code(of: covered, key: key)
    return ConstantTime.equal(expected.span, datagram.extracting(offset + 4..<offset + 24))
  }
}
