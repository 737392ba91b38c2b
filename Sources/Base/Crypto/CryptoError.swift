/// Why an operation on keys, messages or signatures failed.
public enum CryptoError: Error, Equatable, Sendable {
  /// The tag does not match: another key, nonce, associated data or message.
  case authenticationFailure
  /// A key, nonce, tag or buffer has another length than the algorithm's; both in bytes.
  case wrongLength(expected: Int, got: Int)
  /// The bytes are no point of the curve, or one of small order (a shared secret of zeros).
  case invalidPoint
  /// The bytes are no private key of the curve (zero, or not below the group's order).
  case invalidPrivateKey
  /// The bytes are not the structure they should be (a DER signature or public key).
  case invalidEncoding
  /// A context has sealed as many messages as its nonces allow (RFC 9180 §5.2).
  case messageLimitReached
  /// OpenSSL refused; `code` is its `ERR_get_error`, 0 when it gave none.
  case openSSL(code: UInt)
}
