import PalbeCrypto
import PalbeWire

/// MESSAGE-INTEGRITY: HMAC-SHA1 over the message before it, its length counted up to and with the attribute
/// (RFC 8489 §14.5). ICE's key is the password as it stands in the SDP.
enum STUNIntegrity {
  static let byteCount = 20

  /// The code of a message whose length field is to be read as `length`. No allocation: one of these comes from every
  /// client every few seconds.
  static func code(of message: Span<UInt8>, length: Int, key: Span<UInt8>) -> InlineArray<20, UInt8> {
    let head: InlineArray<4, UInt8> = [
      message[0], message[1], UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length),
    ]
    var inner = SHA1()
    var outer = SHA1()
    pad(key, &inner, &outer)
    inner.update(head.span)
    inner.update(message.extracting(4..<message.count))
    let digest = finish(&inner)
    outer.update(digest.span)
    return finish(&outer)
  }

  /// Begins both hashes of HMAC (RFC 2104 §2). A password has at most 256 characters; one longer than a block is hashed.
  private static func pad(_ key: Span<UInt8>, _ inner: inout SHA1, _ outer: inout SHA1) {
    var block = InlineArray<64, UInt8>(repeating: 0)
    if key.count > SHA1.blockByteCount {
      var hash = SHA1()
      hash.update(key)
      let digest = finish(&hash)
      for index in digest.indices { block[index] = digest[index] }
    } else {
      for index in key.indices { block[index] = key[index] }
    }
    for index in block.indices { block[index] ^= 0x36 }
    inner.update(block.span)
    for index in block.indices { block[index] ^= 0x36 ^ 0x5c }
    outer.update(block.span)
  }

  private static func finish(_ hash: inout SHA1) -> InlineArray<20, UInt8> {
    InlineArray<20, UInt8> { output in hash.finish(into: &output) }
  }
}

extension STUNMessage {
  /// True when the datagram that this message was parsed from carries the MESSAGE-INTEGRITY of `key`.
  /// Compares in constant time.
  public func isAuthentic(in datagram: Span<UInt8>, key: [UInt8]) -> Bool {
    guard let offset = integrityOffset, offset >= Self.headerByteCount, offset + 24 <= datagram.count else {
      return false
    }
    let expected = STUNIntegrity.code(
      of: datagram.extracting(0..<offset), length: offset + 24 - Self.headerByteCount, key: key.span)
    return ConstantTime.equal(expected.span, datagram.extracting(offset + 4..<offset + 24))
  }
}
