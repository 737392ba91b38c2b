import CPalbeOpenSSL
import PalbeWire

/// A key from a password that costs memory as well as time (RFC 7914).
///
///     let cost = Scrypt.Cost(n: 1 << 15, r: 8, p: 1)!   // 32 MiB, some 100 ms
///     let key = try Scrypt.derive(password: password.span, salt: salt.span, cost: cost, outputByteCount: 32)
public enum Scrypt {
  /// What a derivation costs: 128·n·r bytes of memory, and time that grows with n·r·p.
  public struct Cost: Hashable, Sendable {
    /// The CPU and memory cost, a power of two above 1.
    public let n: Int
    /// The block size in units of 128 bytes.
    public let r: Int
    /// How often it is done, one after another.
    public let p: Int

    /// The most memory that a derivation may take, in bytes.
    public static let memoryLimit = 1 << 30

    /// Nil for what RFC 7914 §2 does not allow, for more memory than `memoryLimit`, and for more than 2^26 blocks of work:
    /// what stands in a file never keeps a thread for minutes.
    public init?(n: Int, r: Int, p: Int) {
      guard n > 1, n & (n - 1) == 0, n <= 1 << 24, (1...64).contains(r), (1...64).contains(p),
        128 * n * r <= Self.memoryLimit, n * r * p <= 1 << 26
      else { return nil }
      self.n = n
      self.r = r
      self.p = p
    }

    /// Bytes that a derivation takes while it runs.
    public var memoryByteCount: Int { 128 * r * (n + p + 2) }
  }

  /// `outputByteCount` bytes, at most 1,024. Throws `openSSL` when there is no memory.
  public static func derive(
    password: Span<UInt8>, salt: Span<UInt8>, cost: Cost, outputByteCount: Int
  ) throws(CryptoError) -> SymmetricKey {
    precondition((1...1_024).contains(outputByteCount))
    return try SymmetricKey(byteCount: outputByteCount) { output throws(CryptoError) in
      try unsafe output.withUnsafeMutableBufferPointer { buffer, initialized throws(CryptoError) in
        let status = unsafe withBytes(password) { password, passwordCount in
          unsafe withBytes(salt) { salt, saltCount in
            unsafe password.withMemoryRebound(to: CChar.self, capacity: max(1, passwordCount)) {
              unsafe EVP_PBE_scrypt(
                $0, passwordCount, salt, saltCount, UInt64(cost.n), UInt64(cost.r), UInt64(cost.p),
                UInt64(cost.memoryByteCount + 4_096), buffer.baseAddress, outputByteCount)
            }
          }
        }
        guard status == 1 else { throw .fromOpenSSL() }
        initialized = outputByteCount
      }
    }
  }
}
