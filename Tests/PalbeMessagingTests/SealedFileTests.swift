import Foundation
import Palbase
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS
@testable import PalbeMessaging
@testable import PalbeSQLStore

@Suite("S0-54: what the chats' file is to others: blind, damaged, locked, killed")
struct SealedFileTests {
  private let rig: StorageRig

  init() throws { rig = try StorageRig() }

  private var path: String { rig.folder.path(SealedStorage.fileName) }

  private func code(_ body: () throws -> Void) -> SealedStorageError? {
    do { try body() } catch { return error as? SealedStorageError }
    return nil
  }

  @Test(
    "S2-28, S2-26: opened as existing nothing is made; a lost key, another key, a newer schema have their errors"
  )
  func opening() throws {
    #expect(code { _ = try rig.open(.existing) } == .missing)
    #expect(try rig.folder.dump().isEmpty && rig.vault.names().isEmpty)
    try Data().write(to: URL(fileURLWithPath: path))
    #expect(code { _ = try rig.open(.existing) } == .missing)
    let storage = try rig.open()
    try storage.write([1], .client)
    storage.close()
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
    #expect(mode?.intValue == 0o600)
    let name = SealedStorage.keyName(of: rig.user)
    #expect(try rig.vault.names() == [name])
    let secret = try #require(try rig.vault.read(name))
    try rig.vault.remove(name)
    for opening in [SealedStorage.Opening.existing, .creating] {
      #expect(code { _ = try rig.open(opening) } == .keyMissing)
      #expect(try rig.vault.names().isEmpty)
    }
    try rig.vault.write(secret.reversed(), as: name)
    #expect(code { _ = try rig.open() } == .wrongKey)
    try rig.vault.write([1], as: name)
    #expect(code { _ = try rig.open() } == .vault(.corrupted(name)))
    try rig.vault.write(secret, as: name)
    // Somebody else's file.
    let other = try #require(UserID(bytes: [UInt8](repeating: 3, count: 16)))
    #expect(code { _ = try rig.open(user: other) } == .keyMissing)
    try rig.vault.write(secret, as: SealedStorage.keyName(of: other))
    #expect(code { _ = try rig.open(user: other) } == .wrongKey)
    let again = try rig.open(.existing)
    #expect(try again.all() == [.client: [1]])
    try again.execute("PRAGMA user_version = 9")
    again.close()
    #expect(code { _ = try rig.open() } == .storage(.newerSchema(found: 9, known: 1)))
    try Data(repeating: 7, count: 5_000).write(to: URL(fileURLWithPath: path))
    #expect(code { _ = try rig.open() } == .storage(.inconsistent))
    try SealedStorage.destroy(folder: rig.folder.url.path, user: rig.user, vault: rig.vault)
    #expect(code { _ = try rig.open(.existing) } == .missing)
    #expect(try rig.vault.read(name) == nil)
    try SealedStorage.destroy(folder: rig.folder.url.path, user: rig.user, vault: rig.vault)
    #expect(BackendError(SealedStorageError.storage(.failed(code: 13))) == .storeUnavailable(.full))
    #expect(BackendError(SealedStorageError.storage(.busy)).code == .accountBusy)
  }

  @Test("S0-54: no identifier, name, value or key is in the file; what was erased is not, even with the key")
  func blind() throws {
    let storage = try rig.open()
    let marker = Array("a marker of sixteen".utf8)
    let group = Array("group named in full".utf8)
    for index in 0..<60 as Range<UInt8> {
      try storage.write(
        marker + [index], .application(Array("peer of this chat".utf8) + [index], in: group))
      try storage.write([index], .application(Array("T".utf8) + group + [index], in: nil))
    }
    var sealed = try rig.folder.dump().flatMap { $0 }
    let secret = try #require(try rig.vault.read(SealedStorage.keyName(of: rig.user)))
    for wanted in [marker, group, Array("peer of this".utf8), secret, rig.user.bytes] {
      #expect(sealed.firstRange(of: wanted.prefix(8)) == nil)
    }
    // The same name in another group is called something else.
    let erasable = MLSRecordKey.application([1, 2, 3], in: group)
    let elsewhere = MLSRecordKey.application([1, 2, 3], in: group + [1])
    let names = try storage.names()
    try storage.write(marker, erasable)
    try storage.write(marker, elsewhere)
    #expect(Set(try storage.names()).subtracting(names).count == 2)
    // Rows of keys are all that it takes, with the vault: none of them stays.
    var rows = Set(try storage.keyRows())
    try storage.write(Array("another".utf8), erasable)
    var transaction = MLSTransaction()
    transaction.eraseAll(under: MLSRecordKey(group: group + [1], name: []))
    try storage.apply(transaction)
    rows.subtract(try storage.keyRows())
    #expect(rows.count == 2)
    sealed = try rig.folder.dump().flatMap { $0 }
    for row in rows { #expect(sealed.firstRange(of: row) == nil) }
    #expect(try storage.groups() == [group])
  }

  /// How many cannot be read; no other value is given in place of one.
  private func lost(of live: [MLSRecordKey: [UInt8]], in storage: SealedStorage) -> Int {
    var count = 0
    for (key, value) in live {
      guard let found = try? storage.read(key)?.array else {
        count += 1
        continue
      }
      #expect(found == value)
    }
    return count
  }

  @Test(
    "A damaged byte in each record, an exchanged value, a renamed one: corrupted, and the rest can be read")
  func damaged() throws {
    let storage = try rig.open()
    var live: [MLSRecordKey: [UInt8]] = [:]
    for index in 0..<12 as Range<UInt8> {
      let key = MLSRecordKey.application([index], in: index % 3 == 0 ? nil : [index % 3])
      live[key] = [UInt8](repeating: index, count: 20)
      try storage.write(live[key]!, key)
    }
    for change in [
      "value = CAST(substr(value, 1, 5) || x'00' || substr(value, 7) AS BLOB)",
      "value = x''", "name = CAST(x'05' || name AS BLOB)", "scope = CAST(scope || x'05' AS BLOB)",
      "key_id = (SELECT key_id FROM erasable_record AS other WHERE other.key_id <> erasable_record.key_id LIMIT 1)",
    ] {
      for id in 1...12 {
        try storage.execute("SAVEPOINT test; UPDATE erasable_record SET \(change) WHERE key_id = \(id)")
        let damaged = lost(of: live, in: storage)
        #expect(damaged == 1, "\(change)")
        try storage.execute("ROLLBACK TO test; RELEASE test")
      }
    }
    #expect(try storage.all() == live)
    try storage.execute("UPDATE erasable_record SET value = x'00' WHERE key_id = 1")
    #expect(throws: MLSStorageError.corrupted(.invalid(field: "sealed record", value: 0))) {
      try storage.read(.application([0], in: nil))
    }
  }

  @Test(
    "Any byte of the file damaged: a typed error, or the right values; never wrong ones",
    .timeLimit(.minutes(2)))
  func damagedFile() throws {
    let storage = try rig.open()
    var live: [MLSRecordKey: [UInt8]] = [:]
    for index in 0..<40 as Range<UInt8> {
      let key = MLSRecordKey.application([index], in: [index % 4])
      live[key] = [UInt8](repeating: index, count: 50 + Int(index) * 7)
      try storage.write(live[key]!, key)
    }
    storage.close()
    let whole = try Data(contentsOf: URL(fileURLWithPath: path))
    var random = RandomSource(seed: 3)
    var refusals = 0
    for _ in 0..<400 {
      var bytes = whole
      bytes[Int.random(in: 0..<bytes.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      try bytes.write(to: URL(fileURLWithPath: path))
      if let storage = try? rig.open(.existing) {
        refusals += lost(of: live, in: storage)
      } else {
        refusals += 1
      }
    }
    #expect(refusals > 50)
  }

  // MARK: Other processes

  private func probe(_ verb: String, fileByteLimit: Int? = nil) throws -> ToolProcess {
    try ToolProcess("sdk-probe", ["store", rig.folder.url.path, verb], fileByteLimit: fileByteLimit)
  }

  private func openProbed() throws -> SealedStorage {
    let random = Timebase.system.randomSource
    return try SealedStorage(
      folder: rig.folder.path("messaging"),
      user: try #require(UserID(bytes: [UInt8](repeating: 7, count: 16))),
      vault: FileKeyVault(folder: rig.folder.path("vault"), random: random), opening: .existing,
      random: random)
  }

  @Test(
    "Section 3, 14 and 15: another process gets busy while the file is open, not once it was closed or its holder died"
  )
  func processes() throws {
    let holder = try probe("hold")
    #expect(holder.readLine() == "ready")
    #expect(code { _ = try openProbed() } == .storage(.busy))
    holder.terminate(with: SIGSTOP)
    #expect(code { _ = try openProbed() } == .storage(.busy))
    holder.terminate(with: SIGKILL)
    _ = holder.finish()
    // Closed before it was suspended: it stands in nobody's way.
    let suspended = try probe("closed")
    #expect(suspended.readLine() == "ready")
    suspended.terminate(with: SIGSTOP)
    let storage = try openProbed()
    #expect(code { _ = try openProbed() } == .storage(.busy))
    let refused = try probe("hold").finish()
    #expect(refused.code != 0 && refused.errors.contains("busy"))
    storage.close()
    let next = try probe("hold")
    #expect(next.readLine() == "ready")
    for process in [suspended, next] {
      process.terminate(with: SIGKILL)
      _ = process.finish()
    }
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt32 {
    var number: UInt32 = 0
    for byte in bytes { number = number << 8 | UInt32(byte) }
    return number
  }

  /// The state is one of `StorageProbe`'s, whole; its number.
  private func checkProbed() throws -> UInt32 {
    let storage = try openProbed()
    let count = Self.number(try storage.read(.application([1], in: [1]))?.array ?? [])
    #expect(Self.number(try storage.read(.application([1], in: [2]))?.array ?? []) == count)
    let keys = try storage.keys(under: .application([2], in: [2]))
    #expect(keys.count == Int(count))
    for (index, key) in keys.enumerated() {
      let number = UInt32(index + 1)
      #expect(Self.number(key.name.suffix(4)) == number)
      let value = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 1_500)
      #expect(try storage.read(key)?.array == value)
    }
    return count
  }

  @Test("kill -9 at any moment: the state that was told, or the next, whole", .timeLimit(.minutes(2)))
  func killed() throws {
    var random = RandomSource(seed: 8)
    var least: UInt32 = 0
    for _ in 0..<12 {
      let writer = try probe("write")
      for _ in 0..<Int.random(in: 1...12, using: &random) { least = try #require(UInt32(writer.readLine())) }
      usleep(UInt32.random(in: 0...4_000, using: &random))
      writer.terminate(with: SIGKILL)
      let told = writer.finish().output.split(separator: "\n").compactMap { UInt32($0) }
      least = max(least, told.max() ?? 0)
      let found = try checkProbed()
      #expect(found == least || found == least + 1)
      least = found
    }
    #expect(least > 20)
  }

  @Test("Ended at each write that lets a file grow: the state that was told, or the next, whole")
  func endedAtEachWrite() throws {
    var ends = Set<UInt32>()
    for limit in stride(from: 24_576, through: 122_880, by: 8_192) {
      let folder = rig.folder
      for name in ["messaging", "vault"] { try? FileManager.default.removeItem(atPath: folder.path(name)) }
      let result = try probe("write", fileByteLimit: limit).finish()
      #expect(result.code != 0)
      let told = result.output.split(separator: "\n").compactMap { UInt32($0) }.max() ?? 0
      let found = try checkProbed()
      #expect(found == told || found == told + 1)
      ends.insert(found)
    }
    #expect(ends.count > 5)
  }
}

extension SealedStorage {
  fileprivate func names() throws -> [[UInt8]] {
    try withConnection { connection throws(SQLError) in
      try connection.statement("SELECT name FROM erasable_record").all { row in row.bytes(0) }
    }
  }

  fileprivate func keyRows() throws -> [[UInt8]] {
    try withConnection { connection throws(SQLError) in
      try connection.statement("SELECT key FROM erasable_key").all { row in row.bytes(0) }
    }
  }
}
