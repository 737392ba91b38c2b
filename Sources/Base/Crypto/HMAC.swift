/// HMAC (RFC 2104) for one message under one key; `HMACContext` for many.
public enum HMAC<H: HashFunction> {
  /// The code, `H.byteCount` bytes.
  public static func authenticationCode(for message: Span<UInt8>, using key: Span<UInt8>) -> [UInt8] {
    var context = HMACContext<H>(key: key)
    var code = [UInt8](repeating: 0, count: H.byteCount)
    var output = code.mutableSpan
    context.authenticate(message, into: &output)
    return code
  }

  /// The code, `H.byteCount` bytes.
  public static func authenticationCode(for message: [UInt8], using key: [UInt8]) -> [UInt8] {
    authenticationCode(for: message.span, using: key.span)
  }

  /// The code under a key that is kept as a `SymmetricKey`.
  public static func authenticationCode(
    for message: Span<UInt8>, using key: borrowing SymmetricKey
  ) -> [UInt8] {
    authenticationCode(for: message, using: key.span)
  }

  /// True when `code` is the whole code of `message`; compares in constant time.
  public static func isValidAuthenticationCode(
    _ code: Span<UInt8>, for message: Span<UInt8>, using key: Span<UInt8>
  ) -> Bool {
    let expected = authenticationCode(for: message, using: key)
    return ConstantTime.equal(expected.span, code)
  }
}
