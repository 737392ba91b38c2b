import PalbeCrypto

/// How LiveKit's clients make a frame key from a passphrase or a random key (livekit-protocol.md §3, keys).
public struct LiveKitKeyDerivation: Equatable, Sendable {
  /// The function itself.
  public enum Function: Equatable, Sendable {
    /// PBKDF2-HMAC-SHA256: what a passphrase needs. LiveKit's count is 100,000, tens of milliseconds of work.
    case pbkdf2(iterations: Int)
    /// HKDF-SHA256 with 128 zero bytes as info: only for secrets that nobody can guess.
    case hkdf
  }

  /// PBKDF2 or HKDF.
  public var function: Function
  /// The same for everybody who shall hear each other.
  public var salt: [UInt8]
  /// Bytes of the frame key: 16 (AES-128-GCM), or 32, which only LiveKit's JavaScript client knows.
  public var keyByteCount: Int

  /// LiveKit's salt, unless told otherwise; `keyByteCount` is 16 or 32.
  public init(
    _ function: Function, salt: [UInt8] = Array("LKFrameEncryptionKey".utf8), keyByteCount: Int = 16
  ) {
    precondition(keyByteCount == 16 || keyByteCount == 32)
    if case .pbkdf2(let iterations) = function { precondition(iterations >= 1) }
    self.function = function
    self.salt = salt
    self.keyByteCount = keyByteCount
  }

  /// What every client does unless told otherwise.
  public static let pbkdf2 = LiveKitKeyDerivation(.pbkdf2(iterations: 100_000))
  /// `key_derivation_function` HKDF.
  public static let hkdf = LiveKitKeyDerivation(.hkdf)

  /// True when a step takes so long that a peer's garbage must not make us take many.
  var isSlow: Bool { function != .hkdf }

  private static let info = [UInt8](repeating: 0, count: 128)

  func derive(_ secret: Span<UInt8>, byteCount: Int) -> SymmetricKey {
    switch function {
    case .pbkdf2(let iterations):
      PBKDF2<SHA256>.derive(
        password: secret, salt: salt.span, iterations: iterations, outputByteCount: byteCount)
    case .hkdf:
      HKDF<SHA256>.deriveKey(
        inputKeyMaterial: secret, salt: salt.span, info: Self.info.span, outputByteCount: byteCount)
    }
  }
}

/// A secret that participants share, and the frame key made of it.
///
///     passphrase ──┬── derive, 16 bytes ── frame key
///                  └── derive, 32 bytes ── the next step's secret ──┬── derive, 16 bytes ── its frame key
///                                                                  └── …
///
/// Making one with PBKDF2 takes tens of milliseconds: not on a thread that has packets to serve.
public struct LiveKitKey: ~Copyable, Sendable {
  /// How it was derived, and how it is ratcheted.
  public let derivation: LiveKitKeyDerivation
  let material: SymmetricKey
  let frameKey: SymmetricKey

  /// Derives the frame key of a passphrase's UTF-8 bytes, or of raw key bytes. Throws `wrongLength` for an empty secret.
  public init(_ secret: Span<UInt8>, derivation: LiveKitKeyDerivation = .pbkdf2) throws(FrameKeyError) {
    guard !secret.isEmpty else { throw .wrongLength(expected: 1, got: 0) }
    self.init(material: SymmetricKey(copying: secret), derivation: derivation)
  }

  private init(material: consuming SymmetricKey, derivation: LiveKitKeyDerivation) {
    frameKey = derivation.derive(material.span, byteCount: derivation.keyByteCount)
    self.material = material
    self.derivation = derivation
  }

  /// The key of the next step. There is no way back.
  public borrowing func ratcheted() -> LiveKitKey {
    LiveKitKey(material: derivation.derive(material.span, byteCount: 32), derivation: derivation)
  }

  /// A second key with the same bytes, with a lifetime of its own.
  public borrowing func copy() -> LiveKitKey { LiveKitKey(copying: self) }

  private init(copying other: borrowing LiveKitKey) {
    derivation = other.derivation
    material = other.material.copy()
    frameKey = other.frameKey.copy()
  }

  borrowing func cipher(_ direction: AEADContext.Direction) throws(CryptoError) -> AEADContext {
    try AEADContext(
      derivation.keyByteCount == 16 ? .aes128GCM : .aes256GCM, key: frameKey.span, direction: direction)
  }
}

/// A key that several places hold, such as a configuration and a message to another thread. Wiped with the last of them.
public final class SharedLiveKitKey: Sendable {
  /// The key, to borrow or to copy.
  public let key: LiveKitKey

  /// Takes the key over.
  public init(_ key: consuming LiveKitKey) { self.key = key }

  /// A key of its own for a ring.
  public func copy() -> LiveKitKey { key.copy() }
}
