import CPalbeOpenSSL

/// Comparisons whose time depends on the lengths only.
public enum ConstantTime {
  /// True when both have the same length and the same bytes. The lengths are not secret.
  public static func equal(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    return unsafe withBytes(left) { leftBytes, count in
      unsafe withBytes(right) { rightBytes, _ in unsafe CRYPTO_memcmp(leftBytes, rightBytes, count) == 0 }
    }
  }
}
