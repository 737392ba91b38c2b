import PalbeCrypto
import PalbeUnits

/// Secret bytes that several owners refer to; wiped when the last one lets go.
///
/// A box, because collections hold copyable things only and a secret must not be copied.
final class Secret: Sendable {
  let key: SymmetricKey

  init(_ key: consuming SymmetricKey) { self.key = key }

  init(copying bytes: [UInt8]) { key = SymmetricKey(copying: bytes) }

  init(byteCount: Int, using random: inout RandomSource) {
    key = SymmetricKey(byteCount: byteCount, using: &random)
  }

  /// Zeros stand for a secret that is not there, RFC 9420 §8.
  static func zeros(_ byteCount: Int) -> Secret { Secret(copying: [UInt8](repeating: 0, count: byteCount)) }

  var byteCount: Int { key.byteCount }

  /// The secret bytes, borrowed.
  var span: Span<UInt8> {
    @_lifetime(borrow self)
    get {
      // The key never changes and lives as long as the box, which the compiler does not see through a class.
      let bytes = unsafe Span(_unsafeElements: Secret.bytes(of: key))
      return unsafe _overrideLifetime(bytes, borrowing: self)
    }
  }

  private static func bytes(of key: borrowing SymmetricKey) -> UnsafeBufferPointer<UInt8> {
    unsafe key.span.withUnsafeBufferPointer { unsafe $0 }
  }
}
