import PalbeWire

// Whole messages in fresh memory, keyed anew at every call: for handshakes and storage. Packets use
// `AEADContext`.

extension AEADContext.Algorithm {
  /// The ciphertext of `message` followed by its 16-byte tag.
  ///
  /// Throws `wrongLength` for a key or nonce of another length.
  public func seal(
    _ message: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8>
  ) throws(CryptoError) -> [UInt8] {
    var context = try AEADContext(self, key: key, direction: .seal)
    return try context.sealed(message, authenticating: aad, nonce: nonce)
  }

  /// The message of `sealed`, a ciphertext followed by its 16-byte tag.
  ///
  /// Throws `authenticationFailure` when the tag does not match or is cut off, `wrongLength` for a key or
  /// nonce of another length.
  public func open(
    _ sealed: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8>
  ) throws(CryptoError) -> [UInt8] {
    var context = try AEADContext(self, key: key, direction: .open)
    guard sealed.count >= tagByteCount else { throw .authenticationFailure }
    var message = [UInt8](sealed)
    try context.openWhole(&message, authenticating: aad, nonce: nonce)
    message.removeLast(tagByteCount)
    return message
  }

  /// As `open`, for a message that is a secret itself: it never lies in memory that is not wiped.
  public func openSecret(
    _ sealed: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8>
  ) throws(CryptoError) -> SymmetricKey {
    var context = try AEADContext(self, key: key, direction: .open)
    return try context.openedSecret(sealed, authenticating: aad, nonce: nonce)
  }
}

extension AEADContext {
  /// The ciphertext and tag of `message` in an array of their own.
  mutating func sealed(
    _ message: Span<UInt8>, authenticating aad: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) -> [UInt8] {
    var buffer = [UInt8](capacity: message.count + Self.tagByteCount) { output in
      output.append(contentsOf: message)
      while !output.isFull { output.append(0) }
    }
    var span = buffer.mutableSpan
    try seal(in: &span, body: 0..<message.count, authenticating: aad, nonce: nonce)
    return buffer
  }

  /// Opens a ciphertext and its tag, which fill `buffer`.
  mutating func openWhole(
    _ buffer: inout [UInt8], authenticating aad: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    let body = 0..<buffer.count - Self.tagByteCount
    var span = buffer.mutableSpan
    try open(in: &span, body: body, authenticating: aad, nonce: nonce)
  }

  /// The secret that `sealed` holds, a ciphertext followed by its tag.
  mutating func openedSecret(
    _ sealed: Span<UInt8>, authenticating aad: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) -> SymmetricKey {
    guard sealed.count >= Self.tagByteCount else { throw .authenticationFailure }
    return try SymmetricKey(byteCount: sealed.count) { output throws(CryptoError) in
      output.append(contentsOf: sealed)
      var span = output.mutableSpan
      try open(
        in: &span, body: 0..<sealed.count - Self.tagByteCount, authenticating: aad, nonce: nonce)
      output.removeLast(Self.tagByteCount)
    }
  }
}

/// AES, for whole messages. The key's length chooses AES-128 or AES-256.
public enum AES {
  /// AES-GCM with 12-byte nonces and 16-byte tags (NIST SP 800-38D).
  public enum GCM {
    /// The ciphertext of `message` followed by its tag. Throws `wrongLength` for a key that has neither 16
    /// nor 32 bytes, or a nonce that has not 12.
    public static func seal(
      _ message: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8> = Span()
    ) throws(CryptoError) -> [UInt8] {
      try algorithm(key).seal(message, key: key, nonce: nonce, authenticating: aad)
    }

    /// The message of `sealed`. Throws `authenticationFailure` when the tag does not match.
    public static func open(
      _ sealed: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8> = Span()
    ) throws(CryptoError) -> [UInt8] {
      try algorithm(key).open(sealed, key: key, nonce: nonce, authenticating: aad)
    }

    private static func algorithm(_ key: Span<UInt8>) -> AEADContext.Algorithm {
      key.count == 32 ? .aes256GCM : .aes128GCM
    }
  }
}

/// ChaCha20-Poly1305 (RFC 8439) for whole messages: a 32-byte key, a 12-byte nonce, a 16-byte tag.
public enum ChaChaPoly {
  /// The ciphertext of `message` followed by its tag. Throws `wrongLength` for another key's or nonce's length.
  public static func seal(
    _ message: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    try AEADContext.Algorithm.chaCha20Poly1305.seal(message, key: key, nonce: nonce, authenticating: aad)
  }

  /// The message of `sealed`. Throws `authenticationFailure` when the tag does not match.
  public static func open(
    _ sealed: Span<UInt8>, key: Span<UInt8>, nonce: Span<UInt8>, authenticating aad: Span<UInt8> = Span()
  ) throws(CryptoError) -> [UInt8] {
    try AEADContext.Algorithm.chaCha20Poly1305.open(sealed, key: key, nonce: nonce, authenticating: aad)
  }
}
