import PalbeWire
import Synchronization

/// Public signature keys that were used last, as OpenSSL's objects: making one costs a tenth of a verification, and a
/// member's messages are verified by the same key. Nothing in here is secret.
///
/// Each key has one place, by its last byte; another key that comes there takes it.
enum KnownPublicKeys {
  /// A key that several verifications share; OpenSSL lets threads verify with one key at a time.
  final class Known: Sendable {
    let curve: Curve
    let bytes: [UInt8]
    let key: PKey

    init(_ bytes: Span<UInt8>, on curve: Curve) throws(CryptoError) {
      key = try PKey(public: bytes, on: curve)
      self.curve = curve
      self.bytes = [UInt8](bytes)
    }

    func isOf(_ other: Span<UInt8>, on curve: Curve) -> Bool {
      guard curve == self.curve, other.count == bytes.count else { return false }
      for index in other.indices where other[index] != bytes[index] { return false }
      return true
    }
  }

  private static let placeCount = 64
  private static let places = Mutex<[Known?]>(Array(repeating: nil, count: placeCount))

  /// The key of `bytes`; throws as `PKey(public:on:)` does.
  static func key(_ bytes: Span<UInt8>, on curve: Curve) throws(CryptoError) -> Known {
    guard !bytes.isEmpty else { return try Known(bytes, on: curve) }
    let place = Int(bytes[bytes.count - 1]) % placeCount
    if let known = places.withLock({ $0[place] }), known.isOf(bytes, on: curve) { return known }
    let made = try Known(bytes, on: curve)
    let replaced = places.withLock { places in
      let old = places[place]
      places[place] = made
      return old
    }
    // Freed here, outside the lock.
    _ = replaced
    return made
  }
}
