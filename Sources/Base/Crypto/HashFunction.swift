/// A cryptographic hash. The state is a plain value: a copy continues from where it was taken.
public protocol HashFunction: Sendable {
  /// Bytes of a digest.
  static var byteCount: Int { get }
  /// Bytes of the block that HMAC pads its key to.
  static var blockByteCount: Int { get }

  /// The hash of nothing yet.
  init()
  /// Hashes `bytes` after all that came before.
  mutating func update(_ bytes: Span<UInt8>)
  /// Appends the digest to `digest`, which has room for `byteCount` bytes. The state is of no use afterwards.
  @_lifetime(digest: copy digest)
  mutating func finish(into digest: inout OutputSpan<UInt8>)
}

extension HashFunction {
  /// The digest of all bytes so far; the state can go on.
  public func finalize() -> [UInt8] {
    var last = self
    return [UInt8](capacity: Self.byteCount) { last.finish(into: &$0) }
  }

  /// Hashes `bytes` after all that came before.
  public mutating func update(_ bytes: [UInt8]) { update(bytes.span) }

  /// The digest of `bytes`.
  public static func hash(_ bytes: Span<UInt8>) -> [UInt8] {
    var state = Self()
    state.update(bytes)
    return state.finalize()
  }

  /// The digest of `bytes`.
  public static func hash(_ bytes: [UInt8]) -> [UInt8] { hash(bytes.span) }
}
