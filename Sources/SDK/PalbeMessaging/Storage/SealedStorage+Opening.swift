import Foundation
package import Palbase
import PalbeCrypto
import PalbeMLS
import PalbeMLSFiles
import PalbeSQLStore
package import PalbeUnits
import PalbeWire

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// What is made of the vault's key and the user, one for each purpose.
struct SealKeys: ~Copyable {
  let values: SymmetricKey
  let tags: SymmetricKey
  let groups: SymmetricKey
  let names: SymmetricKey
  /// Stands in the file, and says that the key is the file's.
  let proof: SymmetricKey

  init(_ key: borrowing SymmetricKey, _ user: UserID) {
    values = Self.derive("values", key, user)
    tags = Self.derive("tags", key, user)
    groups = Self.derive("groups", key, user)
    names = Self.derive("names", key, user)
    proof = Self.derive("proof", key, user)
  }

  private static func derive(
    _ purpose: String, _ key: borrowing SymmetricKey, _ user: UserID
  ) -> SymmetricKey {
    let (salt, info) = (user.bytes, Array("palbe messaging storage 1 \(purpose)".utf8))
    return HKDF<SHA256>.deriveKey(
      inputKeyMaterial: key.span, salt: salt.span, info: info.span, outputByteCount: 32)
  }
}

extension SealedStorage {
  /// The name of a user's key in the vault.
  package static func keyName(of user: UserID) -> String {
    let hash = SHA256.hash((Array("palbe messaging storage".utf8) + user.bytes).span)
    return "messaging-storage-" + Hex.encode(Array(hash[..<8]))
  }

  /// Makes a file unreadable for ever, then removes it: its key goes first. It must be closed.
  package static func destroy(
    folder: String, user: UserID, vault: any KeyVault
  ) throws(SealedStorageError) {
    do throws(StoreFault) { try vault.remove(keyName(of: user)) } catch { throw .vault(error) }
    for end in ["-journal", ""] {
      guard unlink("\(folder)/\(fileName)\(end)") == 0 || errno == ENOENT else {
        throw .folder(StoreFault(errno: errno))
      }
    }
  }

  static func database<Result>(
    _ body: () throws(SQLError) -> Result
  ) throws(SealedStorageError) -> Result {
    do throws(SQLError) { return try body() } catch { throw .storage(MLSStorageError(error)) }
  }

  /// Makes the folder and an empty file where they are missing and may be made.
  static func prepare(_ path: String, in folder: String, _ opening: Opening) throws(SealedStorageError) {
    var status = stat()
    if lstat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFREG else { throw .folder(.corrupted(fileName)) }
      // Somebody copied it without its mode. It is not opened here: to close a descriptor of a file gives up all locks
      // that the process has on it.
      if status.st_mode & 0o077 != 0 { chmod(path, 0o600) }
      return
    }
    guard errno == ENOENT || errno == ENOTDIR else { throw .folder(StoreFault(errno: errno)) }
    guard opening == .creating else { throw .missing }
    do throws(StoreFault) {
      try AtomicFile.makeFolder(folder)
      try AtomicFile.makeEmpty(path)
      try AtomicFile.syncFolder(of: path)
    } catch { throw .folder(error) }
  }

  static func key(
    in vault: any KeyVault, of user: UserID, mayDraw: Bool, using random: inout RandomSource
  ) throws(SealedStorageError) -> SymmetricKey {
    let name = keyName(of: user)
    do throws(StoreFault) {
      if let bytes = try vault.read(name) {
        guard bytes.count == 32 else { throw .corrupted(name) }
        return SymmetricKey(copying: bytes)
      }
      if mayDraw {
        let bytes = random.bytes(32)
        try vault.write(bytes, as: name)
        return SymmetricKey(copying: bytes)
      }
    } catch { throw .vault(error) }
    throw .keyMissing
  }

  /// Whether the file is under these keys; one without tables gets them, and what proves it.
  static func isProved(
    _ seal: borrowing SealKeys, _ connection: SQLConnection, _ version: Int
  ) throws(SealedStorageError) -> Bool {
    let proof = [UInt8](seal.proof.span)
    return try database { () throws(SQLError) in
      if version == 0 {
        try connection.transaction { () throws(SQLError) in
          try connection.migrate(steps)
          let insert = try connection.statement("INSERT INTO seal (id, proof) VALUES (1, ?)")
          insert.bind(1, copying: proof)
          try insert.run()
        }
        return true
      }
      let select = try connection.statement("SELECT proof FROM seal WHERE id = 1")
      guard let found = try select.first({ row in row.bytes(0) }) else { throw .corrupted(code: 0) }
      guard ConstantTime.equal(found.span, proof.span) else { return false }
      try connection.migrate(steps)
      return true
    }
  }
}
