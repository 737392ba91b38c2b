import CPalbeOpenSSL
import PalbeUnits

/// Secret bytes of any length: a key, a salt, a derived secret. One heap buffer, wiped when the value ends.
///
/// It cannot be copied by accident, printed or compared except in constant time.
///
///     let key = SymmetricKey(byteCount: 32, using: &random)
///     let context = try AEADContext(.aes256GCM, key: key.span, direction: .seal)
@safe public struct SymmetricKey: ~Copyable, @unchecked Sendable {
  // Written only in the initializers, so that sharing a borrow between threads is safe.
  private let storage: UnsafeMutableBufferPointer<UInt8>

  /// The number of secret bytes.
  public let byteCount: Int

  /// Lets `body` write up to `byteCount` bytes into fresh memory; the key has as many bytes as it wrote.
  ///
  /// When `body` throws, what it wrote is wiped.
  public init<E: Error>(
    byteCount: Int, initializingWith body: (inout OutputSpan<UInt8>) throws(E) -> Void
  ) throws(E) {
    precondition(byteCount >= 0)
    let storage = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(byteCount, 1))
    unsafe storage.initialize(repeating: 0)
    var output = unsafe OutputSpan(buffer: storage.extracting(0..<byteCount), initializedCount: 0)
    do {
      try body(&output)
    } catch {
      unsafe SymmetricKey.wipeAndFree(storage)
      throw error
    }
    self.byteCount = unsafe output.finalize(for: storage.extracting(0..<byteCount))
    unsafe self.storage = unsafe storage
  }

  /// A copy of `bytes`; the caller remains responsible for wiping the original.
  public init(copying bytes: Span<UInt8>) {
    self.init(byteCount: bytes.count) { output in
      for index in bytes.indices { output.append(bytes[index]) }
    }
  }

  /// A copy of `bytes`; the caller remains responsible for wiping the original.
  public init(copying bytes: [UInt8]) { self.init(copying: bytes.span) }

  /// `byteCount` fresh random bytes.
  public init(byteCount: Int, using random: inout RandomSource) {
    self.init(byteCount: byteCount) { output in
      while !output.isFull {
        var word = random.next()
        for _ in 0..<min(8, output.freeCapacity) {
          output.append(UInt8(truncatingIfNeeded: word))
          word >>= 8
        }
      }
    }
  }

  deinit { unsafe SymmetricKey.wipeAndFree(storage) }

  /// The secret bytes, borrowed.
  public var span: Span<UInt8> {
    @_lifetime(borrow self)
    borrowing get {
      let bytes = unsafe Span(_unsafeStart: UnsafePointer(storage.baseAddress!), count: byteCount)
      return unsafe _overrideLifetime(bytes, borrowing: self)
    }
  }

  /// A second key with the same bytes, with a lifetime of its own.
  public borrowing func copy() -> SymmetricKey { SymmetricKey(copying: span) }

  /// True when both keys have the same length and bytes, in time that depends on the lengths only.
  public static func isEqual(_ left: borrowing SymmetricKey, _ right: borrowing SymmetricKey) -> Bool {
    ConstantTime.equal(left.span, right.span)
  }

  private static func wipeAndFree(_ storage: UnsafeMutableBufferPointer<UInt8>) {
    unsafe OPENSSL_cleanse(storage.baseAddress, storage.count)
    unsafe storage.deallocate()
  }
}
