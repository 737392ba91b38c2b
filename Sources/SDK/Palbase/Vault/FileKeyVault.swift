import Foundation
import PalbeCrypto
package import PalbeUnits
import Synchronization

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Secrets as files of mode 0600 in a folder of mode 0700, each sealed with AES-256-GCM under the vault's key
/// (`VaultKey`), its name authenticated with it so that files cannot be exchanged.
///
///     name.sealed = "PBV1" | nonce 12 | ciphertext | tag 16
///
/// With the key in a plain file this protects what is copied without that file, such as single records of a
/// backup; against who reads the whole folder it takes a passphrase.
package final class FileKeyVault: KeyVault {
  private static let magic = Array("PBV1".utf8)
  private static let suffix = ".sealed"
  private static let secretLimit = 1 << 20

  private let folder: String
  private let key: SymmetricKey
  private let random: Mutex<RandomSource>
  private let witness: AtomicFile.Witness?

  /// Opens a vault, or makes one.
  /// - Parameter passphrase: wraps the vault's key; the same must be given each time.
  package convenience init(
    folder: String, passphrase: [UInt8]? = nil, random: RandomSource
  ) throws(StoreFault) {
    try self.init(
      folder: folder, passphrase: passphrase, random: random, cost: VaultKey.cost, witness: nil)
  }

  init(
    folder: String, passphrase: [UInt8]?, random: RandomSource, cost: [UInt8],
    witness: AtomicFile.Witness?
  ) throws(StoreFault) {
    try AtomicFile.makeFolder(folder)
    var random = random
    let isEmpty = try Self.files(in: folder).allSatisfy { !$0.hasSuffix(Self.suffix) }
    key = try VaultKey.load(
      folder: folder, passphrase: passphrase, isEmpty: isEmpty, cost: cost, random: &random)
    self.folder = folder
    self.random = Mutex(random)
    self.witness = witness
    removeLeftovers()
  }

  package func read(_ name: String) throws(StoreFault) -> [UInt8]? {
    let overhead = Self.magic.count + 12 + 16
    guard let bytes = try AtomicFile.read(path(name), limit: Self.secretLimit + overhead) else { return nil }
    guard bytes.count >= overhead, bytes[..<3] == Self.magic[..<3] else { throw .corrupted(name) }
    guard bytes[3] == Self.magic[3] else { throw bytes[3] > Self.magic[3] ? .newerSchema : .corrupted(name) }
    let nonce = Array(bytes[4..<16])
    let sealed = Array(bytes[16...])
    let context = Self.context(name)
    let key = key.copy()
    do throws(CryptoError) {
      return try AES.GCM.open(
        sealed.span, key: key.span, nonce: nonce.span, authenticating: context.span)
    } catch {
      throw .corrupted(name)
    }
  }

  package func write(_ secret: [UInt8], as name: String) throws(StoreFault) {
    precondition(secret.count <= Self.secretLimit)
    let (nonce, number) = random.withLock { ($0.bytes(12), $0.next()) }
    let context = Self.context(name)
    let key = key.copy()
    // The lengths are right by construction.
    let sealed = try! AES.GCM.seal(
      secret.span, key: key.span, nonce: nonce.span, authenticating: context.span)
    try AtomicFile.replace(
      path(name), with: Self.magic + nonce + sealed,
      temporary: "\(folder)/\(AtomicFile.temporaryPrefix)\(String(number, radix: 16))", witness: witness)
  }

  package func remove(_ name: String) throws(StoreFault) {
    guard unlink(path(name)) == 0 || errno == ENOENT else { throw StoreFault(errno: errno) }
    try AtomicFile.syncFolder(of: path(name))
  }

  package func names() throws(StoreFault) -> [String] {
    try Self.files(in: folder).filter { $0.hasSuffix(Self.suffix) }
      .map { String($0.dropLast(Self.suffix.count)) }.sorted()
  }

  /// Names are ours; one that could leave the folder is a programming error.
  private func path(_ name: String) -> String {
    precondition(
      (1...120).contains(name.utf8.count) && !name.hasPrefix(".")
        && name.utf8.allSatisfy {
          (97...122).contains($0) || (48...57).contains($0) || [45, 46, 95].contains($0)
        })
    return "\(folder)/\(name)\(Self.suffix)"
  }

  private static func context(_ name: String) -> [UInt8] { Array("palbe vault 1 \(name)".utf8) }

  private static func files(in folder: String) throws(StoreFault) -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder)
    } catch {
      throw .system(EIO)
    }
  }

  /// What a crash left behind. A file that is still being written is younger.
  private func removeLeftovers() {
    for name in (try? Self.files(in: folder)) ?? [] where name.hasPrefix(AtomicFile.temporaryPrefix) {
      var status = stat()
      let path = "\(folder)/\(name)"
      guard stat(path, &status) == 0 else { continue }
      #if canImport(Darwin)
        let changed = status.st_mtimespec.tv_sec
      #else
        let changed = status.st_mtim.tv_sec
      #endif
      if time(nil) - changed > 600 { unlink(path) }
    }
  }
}
