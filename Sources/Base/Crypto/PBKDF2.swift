import PalbeWire

/// A key from a password (RFC 8018 §5.2), with HMAC over `H` as its pseudorandom function.
public enum PBKDF2<H: HashFunction> {
  /// `outputByteCount` bytes. `iterations` below 1 is a programming error and traps. The time grows with
  /// iterations times outputs of `H.byteCount`, so neither may come from a peer unchecked.
  public static func derive(
    password: Span<UInt8>, salt: Span<UInt8>, iterations: Int, outputByteCount: Int
  ) -> SymmetricKey {
    precondition(iterations >= 1 && outputByteCount >= 0)
    var context = HMACContext<H>(key: password)
    return SymmetricKey(byteCount: outputByteCount) { output in
      var block: UInt32 = 0
      while !output.isFull {
        block += 1
        var number = ByteWriter(capacity: 4)
        number.uint32(block)
        // T = U1 ^ U2 ^ …, U1 = PRF(password, salt | block), Un = PRF(password, Un-1), straight in the
        // output.
        context.compute(salt, number.bytes.span)
        let start = output.count
        context.appendCode(to: &output)
        for _ in 1..<iterations {
          context.compute(Span(), afterLastCode: true)
          context.mixCode(into: &output, from: start)
        }
      }
    }
  }
}
