import CPalbeOpenSSL

/// Authenticated encryption with one key in one direction, keyed once. A message costs no allocation.
///
/// Works in place: `buffer[body]` is the message, and its 16-byte tag lies at `body.upperBound`. Associated
/// data is a range of the same buffer (a packet's header), a span from elsewhere, or the first followed by
/// the second.
///
///     var sealer = try AEADContext(.aes128GCM, key: key.span, direction: .seal)
///     try sealer.seal(in: &packet, body: 12..<112, authenticating: 0..<12, nonce: nonce.span)
///
/// A nonce must never seal two messages under one key; that is the caller's to ensure.
/// Sources: NIST SP 800-38D, RFC 8439.
@safe public struct AEADContext: ~Copyable, @unchecked Sendable {
  /// The cipher. All take a 12-byte nonce and give a 16-byte tag.
  public enum Algorithm: Sendable, Hashable {
    case aes128GCM, aes256GCM, chaCha20Poly1305

    /// 16 for AES-128, else 32.
    public var keyByteCount: Int { self == .aes128GCM ? 16 : 32 }
    /// Always 12.
    public var nonceByteCount: Int { 12 }
    /// Always 16.
    public var tagByteCount: Int { 16 }

    var cipher: OpaquePointer {
      switch self {
      case .aes128GCM: unsafe Fetched.aes128GCM
      case .aes256GCM: unsafe Fetched.aes256GCM
      case .chaCha20Poly1305: unsafe Fetched.chaCha20Poly1305
      }
    }
  }

  /// What a context does; sealing and opening share nothing but the key.
  public enum Direction: Sendable, Hashable { case seal, open }

  static var nonceByteCount: Int { 12 }
  static var tagByteCount: Int { 16 }

  private let context: OpaquePointer
  private let direction: Direction

  /// Throws `wrongLength` unless the key has `algorithm.keyByteCount` bytes.
  public init(_ algorithm: Algorithm, key: Span<UInt8>, direction: Direction) throws(CryptoError) {
    guard key.count == algorithm.keyByteCount else {
      throw .wrongLength(expected: algorithm.keyByteCount, got: key.count)
    }
    let keyed = try unsafe makeCipherContext(algorithm.cipher, key: key, encrypting: direction == .seal)
    unsafe context = keyed
    self.direction = direction
  }

  deinit { unsafe EVP_CIPHER_CTX_free(context) }

  /// Replaces `buffer[body]` by its ciphertext and writes the tag behind it.
  ///
  /// Throws `wrongLength` when the nonce has not 12 bytes, or a range or the tag lies outside the buffer.
  public mutating func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Range<Int>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    try seal(in: &buffer, body: body, authenticating: aad, Span(), nonce: nonce)
  }

  /// As above, with associated data from elsewhere.
  public mutating func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    try seal(in: &buffer, body: body, authenticating: 0..<0, aad, nonce: nonce)
  }

  /// As above, with `buffer[aad]` followed by `trailer` as associated data.
  public mutating func seal(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Range<Int>,
    _ trailer: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    precondition(direction == .seal, "this context opens")
    let tag = try begin(in: &buffer, body: body, authenticating: aad, trailer, nonce: nonce)
    let context = unsafe context
    let sealed = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      let base = bytes.baseAddress!
      var written: Int32 = 0
      guard
        unsafe update(context, base + body.lowerBound, base + body.lowerBound, body.count),
        unsafe EVP_EncryptFinal_ex(context, base + tag, &written) == 1,
        unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagByteCount), base + tag) == 1
      else { return false }
      return true
    }
    guard sealed else { throw .fromOpenSSL() }
  }

  /// Replaces `buffer[body]` by its plaintext after checking the tag behind it; the tag stays where it is.
  ///
  /// Throws `authenticationFailure` when the tag does not match, and `buffer[body]` is zeros then;
  /// `wrongLength` when the nonce has not 12 bytes, or a range or the tag lies outside the buffer, which is
  /// then as it was.
  public mutating func open(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Range<Int>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    try open(in: &buffer, body: body, authenticating: aad, Span(), nonce: nonce)
  }

  /// As above, with associated data from elsewhere.
  public mutating func open(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    try open(in: &buffer, body: body, authenticating: 0..<0, aad, nonce: nonce)
  }

  /// As above, with `buffer[aad]` followed by `trailer` as associated data.
  public mutating func open(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Range<Int>,
    _ trailer: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) {
    precondition(direction == .open, "this context seals")
    let tag = try begin(in: &buffer, body: body, authenticating: aad, trailer, nonce: nonce)
    let context = unsafe context
    let opened = unsafe buffer.withUnsafeMutableBufferPointer { bytes in
      let base = bytes.baseAddress!
      var written: Int32 = 0
      // OpenSSL decrypts before it knows whether the tag matches.
      guard
        unsafe update(context, base + body.lowerBound, base + body.lowerBound, body.count),
        unsafe EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagByteCount), base + tag) == 1,
        unsafe EVP_DecryptFinal_ex(context, base + tag, &written) == 1
      else {
        unsafe (base + body.lowerBound).update(repeating: 0, count: body.count)
        ERR_clear_error()
        return false
      }
      return true
    }
    guard opened else { throw .authenticationFailure }
  }

  /// Checks the ranges, sets the nonce and takes in the associated data. Returns where the tag lies.
  @inline(__always)
  private mutating func begin(
    in buffer: inout MutableSpan<UInt8>, body: Range<Int>, authenticating aad: Range<Int>,
    _ trailer: Span<UInt8>, nonce: Span<UInt8>
  ) throws(CryptoError) -> Int {
    guard nonce.count == Self.nonceByteCount else {
      throw .wrongLength(expected: Self.nonceByteCount, got: nonce.count)
    }
    // OpenSSL counts in Int32. One check of the buffer bounds every length taken from it.
    guard buffer.count <= Int(Int32.max), trailer.count <= Int(Int32.max) else {
      throw .wrongLength(expected: Int(Int32.max), got: max(buffer.count, trailer.count))
    }
    guard body.lowerBound >= 0, body.upperBound <= buffer.count - Self.tagByteCount else {
      throw .wrongLength(expected: body.upperBound &+ Self.tagByteCount, got: buffer.count)
    }
    guard aad.lowerBound >= 0, aad.upperBound <= buffer.count else {
      throw .wrongLength(expected: aad.upperBound, got: buffer.count)
    }
    let context = unsafe context
    let ready = unsafe buffer.withUnsafeBufferPointer { bytes in
      unsafe withBytes(nonce) { nonce, _ in
        unsafe EVP_CipherInit_ex2(context, nil, nil, nonce, -1, nil) == 1
          && update(context, nil, bytes.baseAddress! + aad.lowerBound, aad.count)
      }
    }
    guard ready, unsafe withBytes(trailer, { unsafe update(context, nil, $0, $1) }) else {
      throw .fromOpenSSL()
    }
    return body.upperBound
  }
}

/// Feeds `count` bytes, or associated data where `output` is nil. Nothing is fed for a count of zero.
@inline(__always)
private func update(
  _ context: OpaquePointer, _ output: UnsafeMutablePointer<UInt8>?, _ input: UnsafePointer<UInt8>,
  _ count: Int
) -> Bool {
  guard count > 0 else { return true }
  var written: Int32 = 0
  return unsafe EVP_CipherUpdate(context, output, &written, input, Int32(count)) == 1
}

/// A context that knows its cipher and key and lacks only a nonce.
func makeCipherContext(
  _ cipher: OpaquePointer, key: Span<UInt8>, encrypting: Bool
) throws(CryptoError) -> OpaquePointer {
  guard let context = unsafe EVP_CIPHER_CTX_new() else { throw .fromOpenSSL() }
  let keyed = unsafe withBytes(key) { bytes, _ in
    unsafe EVP_CipherInit_ex2(context, cipher, bytes, nil, encrypting ? 1 : 0, nil) == 1
  }
  guard keyed else {
    unsafe EVP_CIPHER_CTX_free(context)
    throw .fromOpenSSL()
  }
  return unsafe context
}
