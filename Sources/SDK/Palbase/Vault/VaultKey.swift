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
///     kind 1:  log2 N | r | p | 0 | salt 16 | nonce 12 | AES-256-GCM(scrypt(passphrase, salt), key) 48
enum VaultKey {
  static let fileName = "vault.key"
  /// log2 N, r, p: 32 MiB, under a tenth of a second.
  static let cost: [UInt8] = [15, 8, 1]
  private static let magic = Array("PBVK".utf8)

  /// Loads the key, or makes one when the vault holds nothing yet. A vault that holds something and has no key
  /// is never given a new one.
  static func load(
    folder: String, passphrase: [UInt8]?, isEmpty: Bool, cost: [UInt8] = cost,
    random: inout RandomSource
  ) throws(StoreFault) -> SymmetricKey {
    let path = folder + "/" + fileName
    if let bytes = try AtomicFile.read(path, limit: 4_096) { return try open(bytes, passphrase) }
    guard isEmpty else { throw .keyMissing }
    let key = SymmetricKey(byteCount: 32, using: &random)
    let bytes = try seal(key, passphrase, cost, &random)
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
    _ key: borrowing SymmetricKey, _ passphrase: [UInt8]?, _ cost: [UInt8], _ random: inout RandomSource
  ) throws(StoreFault) -> [UInt8] {
    guard let passphrase else {
      return magic + [1, 0] + [UInt8](key.span) + SHA256.hash(key.span)[..<8]
    }
    let salt = random.bytes(16)
    let nonce = random.bytes(12)
    let head = magic + [1, 1] + cost + [0] + salt
    let wrapping = try wrappingKey(passphrase, salt, cost)
    // The lengths are right by construction.
    let sealed = try! AES.GCM.seal(
      key.span, key: wrapping.span, nonce: nonce.span, authenticating: head.span)
    return head + nonce + sealed
  }

  /// Throws `corrupted`, `newerSchema`, `wrongPassphrase`.
  static func open(_ bytes: [UInt8], _ passphrase: [UInt8]?) throws(StoreFault) -> SymmetricKey {
    guard bytes.count >= 6, Array(bytes[..<4]) == magic else { throw .corrupted(fileName) }
    guard bytes[4] == 1, bytes[5] < 2 else { throw .newerSchema }
    if bytes[5] == 0 {
      let key = Array(bytes[6...].prefix(32))
      guard bytes.count == 46, SHA256.hash(key)[..<8] == bytes[38...] else { throw .corrupted(fileName) }
      return SymmetricKey(copying: key)
    }
    guard bytes.count == 86 else { throw .corrupted(fileName) }
    guard bytes[9] == 0 else { throw .corrupted(fileName) }
    guard let passphrase else { throw .wrongPassphrase }
    let wrapping = try wrappingKey(passphrase, Array(bytes[10..<26]), Array(bytes[6..<9]))
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

  private static func wrappingKey(
    _ passphrase: [UInt8], _ salt: [UInt8], _ cost: [UInt8]
  ) throws(StoreFault) -> SymmetricKey {
    // A file that asks for more than any careful one is damaged.
    guard cost[0] <= 20, let cost = Scrypt.Cost(n: 1 << Int(cost[0]), r: Int(cost[1]), p: Int(cost[2])) else {
      throw .corrupted(fileName)
    }
    do throws(CryptoError) {
      return try Scrypt.derive(password: passphrase.span, salt: salt.span, cost: cost, outputByteCount: 32)
    } catch {
      throw .system(ENOMEM)
    }
  }
}
