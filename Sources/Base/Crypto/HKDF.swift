/// Key derivation from HMAC (RFC 5869).
public enum HKDF<H: HashFunction> {
  /// HKDF-Extract: a pseudorandom key of `H.byteCount` bytes. An empty salt stands for zeros (§2.2).
  public static func extract(salt: Span<UInt8>, inputKeyMaterial: Span<UInt8>) -> SymmetricKey {
    extract(salt: salt, prefix: Span(), inputKeyMaterial: inputKeyMaterial)
  }

  /// HKDF-Extract of `prefix` followed by the key material, without joining them in memory that is not wiped.
  static func extract(salt: Span<UInt8>, prefix: Span<UInt8>, inputKeyMaterial: Span<UInt8>) -> SymmetricKey {
    var context = HMACContext<H>(key: salt)
    return SymmetricKey(byteCount: H.byteCount) { output in
      context.compute(prefix, inputKeyMaterial)
      context.appendCode(to: &output)
    }
  }

  /// HKDF-Expand: `outputByteCount` bytes, at most 255 times `H.byteCount` (§2.3); asking for more is a
  /// programming error and traps.
  public static func expand(
    pseudoRandomKey: Span<UInt8>, info: Span<UInt8>, outputByteCount: Int
  ) -> SymmetricKey {
    precondition((0...255 * H.byteCount).contains(outputByteCount), "RFC 5869 §2.3: L <= 255 * HashLen")
    var context = HMACContext<H>(key: pseudoRandomKey)
    return SymmetricKey(byteCount: outputByteCount) { output in
      var counter: UInt8 = 0
      while !output.isFull {
        // T(n) = HMAC(key, T(n - 1) | info | n), T(0) is empty.
        counter += 1
        let number: [1 of UInt8] = [counter]
        context.compute(info, number.span, afterLastCode: counter > 1)
        context.appendCode(to: &output)
      }
    }
  }

  /// Extract, then expand.
  public static func deriveKey(
    inputKeyMaterial: Span<UInt8>, salt: Span<UInt8>, info: Span<UInt8>, outputByteCount: Int
  ) -> SymmetricKey {
    let key = extract(salt: salt, inputKeyMaterial: inputKeyMaterial)
    return expand(pseudoRandomKey: key.span, info: info, outputByteCount: outputByteCount)
  }
}
