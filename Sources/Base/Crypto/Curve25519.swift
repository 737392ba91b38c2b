/// Ed25519 signatures and X25519 key agreement.
public enum Curve25519 {
  /// Bytes of every raw private and public key.
  static var keyByteCount: Int { 32 }
}
