import Foundation
import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS
@testable import PalbeMessaging
@testable import PalbeSQLStore

private let noon: UInt64 = 1_800_000_000

@Suite("S0-54: the chats' file does what MLSStorage promises")
struct SealedStorageTests {
  private let rig: StorageRig

  init() throws { rig = try StorageRig() }

  private func key(_ random: inout RandomSource) -> MLSRecordKey {
    let groups: [[UInt8]?] = [nil, [], [1], [1, 0], [UInt8](repeating: 9, count: 32), [255]]
    let group = groups[Int.random(in: 0..<groups.count, using: &random)]
    let count = Int.random(in: 0...4, using: &random)
    return MLSRecordKey(
      group: group, name: (0..<count).map { _ in [0, 1, 0x80, 255][Int.random(in: 0..<4, using: &random)] })
  }

  private func transaction(
    _ random: inout RandomSource, over now: [MLSRecordKey: [UInt8]]
  ) -> MLSTransaction {
    var transaction = MLSTransaction()
    for _ in 0..<Int.random(in: 1...6, using: &random) {
      let key = key(&random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0: transaction.eraseAll(under: key)
      case 1, 2: transaction.erase(key)
      case 3: transaction.expect(now[key].map { MLSRecord($0) }, key)
      case 4 where Int.random(in: 0..<4, using: &random) == 0: transaction.expect(MLSRecord([7]), key)
      default: transaction.write(MLSRecord(random.bytes(Int.random(in: 0...300, using: &random))), key)
      }
    }
    return transaction
  }

  private func outcome(of transaction: MLSTransaction, in storage: any MLSStorage) -> MLSStorageError? {
    do throws(MLSStorageError) { try storage.apply(transaction) } catch { return error }
    return nil
  }

  @Test(
    "Promise 1: random transactions, conflicts, batches and restarts leave what a storage in memory has",
    arguments: [1, 2, 3, 4] as [UInt64])
  func reference(seed: UInt64) throws {
    var random = RandomSource(seed: seed)
    let model = InMemoryMLSStorage()
    var storage = try rig.open(seed: seed)
    var conflicts = 0
    for round in 0..<150 {
      let isBatch = round % 3 == 0
      if isBatch { try storage.begin() }
      for _ in 0..<(isBatch ? 4 : 1) {
        let transaction = transaction(&random, over: try model.all())
        let wanted = outcome(of: transaction, in: model)
        #expect(outcome(of: transaction, in: storage) == wanted)
        if wanted != nil { conflicts += 1 }
      }
      if isBatch { try storage.commit() }
      if round % 10 == 9 {
        storage.close()
        storage = try rig.open(round % 20 == 9 ? .existing : .creating, seed: seed + UInt64(round))
      }
      let expected = try model.all()
      #expect(try storage.all() == expected)
      #expect(try storage.groups() == model.groups())
      let prefix = key(&random)
      #expect(try storage.keys(under: prefix) == model.keys(under: prefix))
    }
    #expect(conflicts > 5)
  }

  @Test("Promise 1, section 3, 18: a batch is there as a whole or not at all; a conflict undoes its own part")
  func batches() throws {
    var storage = try rig.open()
    try storage.write([1], .client)
    try storage.begin()
    try storage.write([2], .client)
    var conflict = MLSTransaction()
    conflict.write(MLSRecord([9]), .client)
    conflict.expect(MLSRecord([1]), .client)
    #expect(throws: MLSStorageError.conflict) { try storage.apply(conflict) }
    try storage.write([3], .application([1], in: [4]))
    #expect(try storage.read(.client)?.array == [2])
    #expect(try storage.groups() == [[4]])
    // The process ends here.
    storage.close()
    #expect(throws: MLSStorageError.unusable) { try storage.read(.client) }
    storage = try rig.open(.existing)
    #expect(try storage.all() == [.client: [1]])
    try storage.begin()
    try storage.write([2], .client)
    try storage.write([3], .application([1], in: [4]))
    try storage.commit()
    storage.close()
    #expect(try rig.open(.existing).all() == [.client: [2], .application([1], in: [4]): [3]])
  }

  @Test("A full disk: failed(13), nothing of the transaction is there, and the next one works")
  func full() throws {
    let storage = try rig.open()
    var failures = 0
    for round in 0..<4 as Range<UInt8> {
      let before = try storage.all()
      var transaction = MLSTransaction()
      for index in 0..<5 as Range<UInt8> {
        transaction.write(
          MLSRecord([UInt8](repeating: round, count: 9_000)), .application([round, index], in: [1]))
      }
      var pages = try storage.pageCount()
      try storage.execute("PRAGMA max_page_count = \(pages)")
      while outcome(of: transaction, in: storage) == .failed(code: 13) {
        #expect(try storage.all() == before)
        failures += 1
        pages += 1
        try storage.execute("PRAGMA max_page_count = \(pages)")
      }
      try storage.execute("PRAGMA max_page_count = 1000000")
      #expect(try storage.all().count == before.count + 5)
    }
    #expect(failures > 20)
  }

  @Test(
    "A full disk in a batch: either its part fails alone, or the storage is unusable; the file has all or nothing"
  )
  func fullBatch() throws {
    var unusable = 0
    for room in 0..<12 {
      let rig = try StorageRig()
      let storage = try rig.open()
      try storage.write([1], .client)
      try storage.execute("PRAGMA max_page_count = \(try storage.pageCount() + room)")
      let applied = fill(storage)
      if applied == nil {
        unusable += 1
        #expect(throws: MLSStorageError.unusable) { try storage.read(.client) }
        #expect(throws: MLSStorageError.unusable) { try storage.write([], .client) }
      }
      let expected = applied ?? [.client: [1]]
      storage.close()
      #expect(try rig.open(.existing).all() == expected)
    }
    #expect(unusable > 0)
  }

  /// A batch of four parts; what is there after it, nil where nothing can be said any more.
  private func fill(_ storage: SealedStorage) -> [MLSRecordKey: [UInt8]]? {
    var applied: [MLSRecordKey: [UInt8]] = [.client: [1]]
    do throws(MLSStorageError) {
      try storage.begin()
      for index in 0..<4 as Range<UInt8> {
        let key = MLSRecordKey.application([index], in: [1])
        let value = [UInt8](repeating: index, count: 8_000)
        var transaction = MLSTransaction()
        transaction.write(MLSRecord(value), key)
        switch outcome(of: transaction, in: storage) {
        case nil: applied[key] = value
        case .failed(13): break
        default: return nil
        }
      }
      try storage.commit()
      return applied
    } catch { return nil }
  }

  @Test("Promise 1: a commit that fails makes everything after it unusable, until the file is opened again")
  func failedCommit() throws {
    let storage = try rig.open()
    try storage.write([1], .client)
    // A constraint that is looked at when the transaction ends stands for a medium that fails there.
    try storage.execute(
      """
      CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE child (id INTEGER REFERENCES parent(id) DEFERRABLE INITIALLY DEFERRED);
      """)
    try storage.begin()
    try storage.write([2], .client)
    try storage.execute("INSERT INTO child VALUES (1)")
    #expect(throws: MLSStorageError.failed(code: 787)) { try storage.commit() }
    #expect(throws: MLSStorageError.unusable) { try storage.read(.client) }
    #expect(throws: MLSStorageError.unusable) { try storage.begin() }
    storage.close()
    #expect(try rig.open(.existing).all() == [.client: [1]])
  }

  @Test("A group lives in it: commits, messages, restarts")
  func group() throws {
    var random = RandomSource(seed: 4)
    let client = try MLSClient(credential: .basic(identity: [1]), using: &random)
    let storage = try rig.open()
    var transaction = MLSTransaction()
    transaction.write(client)
    try storage.apply(transaction)
    try GroupLife.begin(client, in: storage, using: &random)
    storage.close()
    for _ in 0..<3 {
      let before = try rig.open(.existing)
      let authenticator = try GroupLife.step(before, using: &random)
      before.close()
      let after = try rig.open(.existing)
      #expect(try GroupLife.authenticator(after) == authenticator)
      after.close()
    }
  }
}

/// The life of one group in a storage, each step from what is stored.
private enum GroupLife {
  static func begin(_ client: MLSClient, in storage: SealedStorage, using random: inout RandomSource) throws {
    let lifetime = Lifetime(notBefore: noon - 10, notAfter: noon + 1_000)
    let group = try MLSGroup.create(groupID: [5], client: client, lifetime: lifetime, using: &random)
    _ = try StoredGroup.insert(group, in: storage)
  }

  private static func load(_ storage: SealedStorage) throws -> StoredGroup {
    guard let client = try storage.loadClient() else { throw MLSStorageError.inconsistent }
    guard let group = try StoredGroup.load([5], client: client, from: storage) else {
      throw MLSStorageError.inconsistent
    }
    return group
  }

  static func step(_ storage: SealedStorage, using random: inout RandomSource) throws -> [UInt8] {
    var stored = try load(storage)
    _ = try stored.update { group throws(MLSError) in try group.commit(at: noon, using: &random) }
    try stored.update { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
    _ = try stored.update { group throws(MLSError) in try group.encrypt([1, 2], using: &random) }
    return stored.group.epochAuthenticator
  }

  static func authenticator(_ storage: SealedStorage) throws -> [UInt8] {
    let stored = try load(storage)
    return stored.group.epochAuthenticator
  }
}

extension SealedStorage {
  func execute(_ sql: String) throws {
    try withConnection { connection throws(SQLError) in try connection.execute(sql) }
  }

  func pageCount() throws -> Int {
    try withConnection { connection throws(SQLError) in
      Int(try connection.statement("PRAGMA page_count").first { row in row.integer(0) } ?? 0)
    }
  }
}
