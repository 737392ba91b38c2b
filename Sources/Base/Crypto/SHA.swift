import CPalbeOpenSSL

/// SHA-1 (FIPS 180-4), for STUN, SRTP and WebSocket only: collisions are known, HMAC-SHA-1 stands.
public struct SHA1: HashFunction {
  /// Bytes of a digest.
  public static let byteCount = 20
  /// Bytes of a block.
  public static let blockByteCount = 64

  private var state = SHA_CTX()

  /// The hash of nothing yet.
  public init() { unsafe palbe_sha1_init(&state) }

  /// Hashes `bytes` after all that came before.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe withBytes(bytes) { pointer, count in unsafe palbe_sha1_update(&state, pointer, count) }
  }

  /// Appends the digest to `digest`; the state is of no use afterwards.
  @_lifetime(digest: copy digest)
  public mutating func finish(into digest: inout OutputSpan<UInt8>) {
    unsafe appendDigest(20, to: &digest) { unsafe palbe_sha1_final(&state, $0) }
  }
}

/// SHA-256 (FIPS 180-4).
public struct SHA256: HashFunction {
  /// Bytes of a digest.
  public static let byteCount = 32
  /// Bytes of a block.
  public static let blockByteCount = 64

  private var state = SHA256_CTX()

  /// The hash of nothing yet.
  public init() { unsafe palbe_sha256_init(&state) }

  /// Hashes `bytes` after all that came before.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe withBytes(bytes) { pointer, count in unsafe palbe_sha256_update(&state, pointer, count) }
  }

  /// Appends the digest to `digest`; the state is of no use afterwards.
  @_lifetime(digest: copy digest)
  public mutating func finish(into digest: inout OutputSpan<UInt8>) {
    unsafe appendDigest(32, to: &digest) { unsafe palbe_sha256_final(&state, $0) }
  }
}

/// SHA-384 (FIPS 180-4).
public struct SHA384: HashFunction {
  /// Bytes of a digest.
  public static let byteCount = 48
  /// Bytes of a block.
  public static let blockByteCount = 128

  private var state = SHA512_CTX()

  /// The hash of nothing yet.
  public init() { unsafe palbe_sha384_init(&state) }

  /// Hashes `bytes` after all that came before.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe withBytes(bytes) { pointer, count in unsafe palbe_sha384_update(&state, pointer, count) }
  }

  /// Appends the digest to `digest`; the state is of no use afterwards.
  @_lifetime(digest: copy digest)
  public mutating func finish(into digest: inout OutputSpan<UInt8>) {
    unsafe appendDigest(48, to: &digest) { unsafe palbe_sha384_final(&state, $0) }
  }
}

/// SHA-512 (FIPS 180-4).
public struct SHA512: HashFunction {
  /// Bytes of a digest.
  public static let byteCount = 64
  /// Bytes of a block.
  public static let blockByteCount = 128

  private var state = SHA512_CTX()

  /// The hash of nothing yet.
  public init() { unsafe palbe_sha512_init(&state) }

  /// Hashes `bytes` after all that came before.
  public mutating func update(_ bytes: Span<UInt8>) {
    unsafe withBytes(bytes) { pointer, count in unsafe palbe_sha512_update(&state, pointer, count) }
  }

  /// Appends the digest to `digest`; the state is of no use afterwards.
  @_lifetime(digest: copy digest)
  public mutating func finish(into digest: inout OutputSpan<UInt8>) {
    unsafe appendDigest(64, to: &digest) { unsafe palbe_sha512_final(&state, $0) }
  }
}

/// Appends `count` bytes that `write` puts at the pointer it is given.
@inline(__always) @_lifetime(digest: copy digest)
private func appendDigest(
  _ count: Int, to digest: inout OutputSpan<UInt8>, _ write: (UnsafeMutablePointer<UInt8>) -> Void
) {
  unsafe digest.withUnsafeMutableBufferPointer { buffer, initialized in
    precondition(buffer.count - initialized >= count, "no room for the digest")
    unsafe write(buffer.baseAddress! + initialized)
    initialized += count
  }
}
