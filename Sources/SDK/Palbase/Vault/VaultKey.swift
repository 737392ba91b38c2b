import Foundation
import PalbeCrypto
import PalbeUnits
import PalbeWire

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// The key of a file vault, in a file of its own: 32 random bytes, plain or wrapped by a passphrase.
///
///     "PBVK" | version 1 | kind | …
///     kind 0:  key 32 | first 8 bytes of SHA-256(key)
///     kind 1:  iterations 4 | salt 16 | nonce 12 | AES-256-GCM(PBKDF2-HMAC-SHA-512(passphrase), key) 48
enum VaultKey {
  static let fileName = "vault.key"
  /// OWASP's figure for PBKDF2-HMAC-SHA-512.
  static let iterations: UInt32 = 210_000
  /// A file that asks for more is damaged, not careful.
  private static let iterationLimit: UInt32 = 10_000_000
  private static let magic = Array("PBVK".utf8)

  /// Loads the key, or makes one when the vault holds nothing yet. A vault that holds something and has no key
  /// is never given a new one.
  static func load(
    folder: String, passphrase: [UInt8]?, isEmpty: Bool, iterations: UInt32 = iterations,
    random: inout RandomSource
  ) throws(StoreFault) -> SymmetricKey {
    let path = folder + "/" + fileName
    if let bytes = try AtomicFile.read(path, limit: 4_096) { return try open(bytes, passphrase) }
    guard isEmpty else { throw .keyMissing }
    let key = SymmetricKey(byteCount: 32, using: &random)
    let bytes = seal(key, passphrase, iterations, &random)
    let temporary = "\(folder)/\(AtomicFile.temporaryPrefix)\(String(random.next(), radix: 16))"
    // A link, not a rename: of two processes that begin at once one makes the key, the other takes it.
    try AtomicFile.replace(temporary + "k", with: bytes, temporary: temporary)
    defer { unlink(temporary + "k") }
    guard link(temporary + "k", path) == 0 else {
      guard errno == EEXIST, let made = try AtomicFile.read(path, limit: 4_096) else {
        throw StoreFault(errno: errno)
      }
      return try open(made, passphrase)
    }
    try AtomicFile.syncFolder(of: path)
    return key
  }

  private static func seal(
    _ key: borrowing SymmetricKey, _ passphrase: [UInt8]?, _ iterations: UInt32, _ random: inout RandomSource
  ) -> [UInt8] {
    guard let passphrase else {
      return magic + [1, 0] + [UInt8](key.span) + SHA256.hash(key.span)[..<8]
    }
    let salt = random.bytes(16)
    let nonce = random.bytes(12)
    let count = (0..<4).map { UInt8(truncatingIfNeeded: iterations >> (24 - 8 * UInt32($0))) }
    let head = magic + [1, 1] + count + salt
    let wrapping = wrappingKey(passphrase, salt, iterations)
    // The lengths are right by construction.
    let sealed = try! AES.GCM.seal(
      key.span, key: wrapping.span, nonce: nonce.span, authenticating: head.span)
    return head + nonce + sealed
  }

  private static func open(_ bytes: [UInt8], _ passphrase: [UInt8]?) throws(StoreFault) -> SymmetricKey {
    guard bytes.count >= 6, Array(bytes[..<4]) == magic else { throw .corrupted(fileName) }
    guard bytes[4] == 1, bytes[5] < 2 else { throw .newerSchema }
    if bytes[5] == 0 {
      let key = Array(bytes[6...].prefix(32))
      guard bytes.count == 46, SHA256.hash(key)[..<8] == bytes[38...] else { throw .corrupted(fileName) }
      return SymmetricKey(copying: key)
    }
    guard bytes.count == 86 else { throw .corrupted(fileName) }
    let iterations = bytes[6..<10].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard (1...iterationLimit).contains(iterations) else { throw .corrupted(fileName) }
    guard let passphrase else { throw .wrongPassphrase }
    let wrapping = wrappingKey(passphrase, Array(bytes[10..<26]), iterations)
    let head = Array(bytes[..<26])
    let nonce = Array(bytes[26..<38])
    let sealed = Array(bytes[38...])
    do throws(CryptoError) {
      return try AEADContext.Algorithm.aes256GCM.openSecret(
        sealed.span, key: wrapping.span, nonce: nonce.span, authenticating: head.span)
    } catch {
      throw .wrongPassphrase
    }
  }

  private static func wrappingKey(_ passphrase: [UInt8], _ salt: [UInt8], _ iterations: UInt32)
    -> SymmetricKey
  {
    PBKDF2<SHA512>.derive(
      password: passphrase.span, salt: salt.span, iterations: Int(iterations), outputByteCount: 32)
  }
}
