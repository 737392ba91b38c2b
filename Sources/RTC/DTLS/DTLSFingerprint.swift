/// A certificate's SHA-256. PalbeSDP writes and reads it as `a=fingerprint` (RFC 8122 §5).
public struct DTLSFingerprint: Hashable, Sendable {
  /// 32 bytes.
  public let bytes: [UInt8]

  /// Nil unless there are 32 bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.bytes = bytes
  }
}
