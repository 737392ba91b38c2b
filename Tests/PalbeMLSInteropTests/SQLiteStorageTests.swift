import Foundation
import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS
@testable import PalbeMLSInterop
@testable import PalbeSQLStore

/// Two members of one group, with files of their own.
private final class Pair {
  let now: UInt64 = 1_800_000_000
  var random = RandomSource(seed: 5)
  let folder: TemporaryFolder
  let storages: [SQLiteMLSStorage]
  let clients: [MLSClient]
  var aliceGroup: StoredGroup
  var bobGroup: StoredGroup

  init() throws {
    let now = now
    var random = RandomSource(seed: 5)
    let lifetime = Lifetime(notBefore: now - 10, notAfter: now + 1_000)
    let folder = try TemporaryFolder()
    var storages: [SQLiteMLSStorage] = []
    var clients: [MLSClient] = []
    for name in ["alice", "bob"] {
      let database = try SQLiteMLSDatabase(
        path: folder.path(name), isDurable: false, random: RandomSource(seed: UInt64(storages.count) + 50))
      storages.append(database.storage(of: name))
      clients.append(try MLSClient(credential: .basic(identity: Array(name.utf8)), using: &random))
    }
    let package = try clients[1].makeKeyPackage(lifetime: lifetime, using: &random)
    var transaction = MLSTransaction()
    transaction.write(package)
    try storages[1].apply(transaction)
    var alice = try MLSGroup.create(groupID: [1], client: clients[0], lifetime: lifetime, using: &random)
    let bundle = try alice.add([package.keyPackage], at: now, using: &random)
    try alice.mergePendingCommit(at: now)
    guard let welcome = bundle.welcome else { throw MLSStorageError.inconsistent }
    let bob = try MLSGroup.join(
      welcome, keyPackages: try storages[1].loadKeyPackages(), client: clients[1])
    aliceGroup = try StoredGroup.insert(alice, in: storages[0])
    bobGroup = try StoredGroup.insert(bob, in: storages[1])
    self.folder = folder
    self.storages = storages
    self.clients = clients
    self.random = random
  }

  func bob(_ message: MLSMessage) throws {
    _ = try bobGroup.update { group throws(MLSError) in try group.process(message.encoded(), at: now) }
  }

  /// All of Alice's records.
  func records() throws -> [MLSRecordKey: [UInt8]] {
    var all: [MLSRecordKey: [UInt8]] = [:]
    for key in try storages[0].keys(in: [1]) {
      if let record = try storages[0].read(key) { all[key] = record.withSpan { bytes in [UInt8](bytes) } }
    }
    return all
  }

}

/// What Alice does, one after another.
private enum Operation: CaseIterable {
  case encrypt, propose, forget, commit, clear, commitAgain, merge, wipe

  func run(
    _ group: inout MLSGroup, at now: UInt64, using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage? {
    switch self {
    case .encrypt: return try group.encrypt([1], using: &random)
    case .propose: return try group.proposeUpdate(using: &random)
    case .forget: group.clearPendingProposals()
    case .commit: _ = try group.commit(at: now, using: &random)
    case .clear: group.clearPendingCommit()
    case .commitAgain: return try group.commit(at: now, using: &random).commit
    case .merge: try group.mergePendingCommit(at: now)
    case .wipe: group.wipeExporterSecret()
    }
    return nil
  }
}

@Suite("SQLite: groups in files")
struct SQLiteStorageTests {
  @Test(
    "Item 4: neither a replaced record nor the key it was encrypted under is in the files, journal included")
  func erasure() throws {
    let pair = try Pair()
    var live: [MLSRecordKey: [UInt8]] = try pair.records()
    var starts: Set<UInt64> = []
    var keys: Set<UInt64> = []
    let used = UsedKeys()
    try pair.storages[0].database.with { records throws(SQLError) in
      records.onKey = { key in used.values.append([UInt8](key)) }
    }
    func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
      bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
    for round in 0..<4 {
      for operation in Operation.allCases {
        let message = try pair.aliceGroup.update { group throws(MLSError) in
          try operation.run(&group, at: pair.now, using: &pair.random)
        }
        if let message { try pair.bob(message) }
        let next = try pair.records()
        for (key, value) in live where next[key] != value && value.count > 20 {
          // From behind the schema's number and a length: a secret, where the record is one.
          starts.insert(number(value.dropFirst(3)))
        }
        for value in next.values { starts.remove(number(value.dropFirst(3))) }
        live = next
        // Keys in use are read from the table; all others must be gone.
        let inUse = try pair.storages[0].database.keysInUse()
        for key in used.values where !inUse.contains(key) { keys.insert(number(key)) }
        let wanted = starts.union(keys)
        for bytes in try pair.folder.dump() {
          var window: UInt64 = 0
          for byte in bytes {
            window = window << 8 | UInt64(byte)
            if wanted.contains(window) { Issue.record("round \(round)") }
          }
        }
      }
    }
    #expect(keys.count > 50 && starts.count > 10, "\(keys.count) \(starts.count)")
  }

  @Test("Item 4: a full disk at each page: memory and file are as before, and the operation works afterwards")
  func full() throws {
    let pair = try Pair()
    var failures = 0
    for round in 0..<2 as Range<UInt8> {
      for (place, operation) in Operation.allCases.enumerated() {
        let before = try pair.records()
        let random = pair.random
        var pages = try pair.storages[0].database.pageCount()
        while true {
          // Big application data in the same transaction asks for pages at every place.
          try pair.storages[0].database.execute("PRAGMA max_page_count = \(pages)")
          do {
            let message = try pair.aliceGroup.update(
              { group throws(MLSError) in
                var random = random
                return try operation.run(&group, at: pair.now, using: &random)
              },
              also: { _, transaction throws(MLSStorageError) in
                for index in 0..<UInt8(3) {
                  let data = [UInt8](repeating: index, count: 9_000)
                  let name = [round, UInt8(place), index]
                  transaction.write(MLSRecord(copying: data.span), .application(name, in: [1]))
                }
              })
            if let message { try pair.bob(message) }
            break
          } catch StoredGroupError.storage(.failed(13)) {
            #expect(try pair.records() == before)
            let loaded = try StoredGroup.load([1], client: pair.clients[0], from: pair.storages[0])
            let same = loaded?.group.epochAuthenticator == pair.aliceGroup.group.epochAuthenticator
            #expect(same)
            failures += 1
            pages += 1
          }
        }
        try pair.storages[0].database.execute("PRAGMA max_page_count = 1000000")
        _ = pair.random.next()
        let loaded = try StoredGroup.load([1], client: pair.clients[0], from: pair.storages[0])
        let same = loaded?.group.epochAuthenticator == pair.aliceGroup.group.epochAuthenticator
        #expect(same)
      }
    }
    #expect(failures > 50, "\(failures)")
  }

  @Test("Clients in one file do not see each other's records")
  func clients() throws {
    let database = try SQLiteMLSDatabase(path: ":memory:", random: RandomSource(seed: 1))
    var random = RandomSource(seed: 2)
    for name in ["a", "ab", ""] {
      let client = try MLSClient(credential: .basic(identity: Array(name.utf8)), using: &random)
      let storage = database.storage(of: name)
      #expect(try storage.loadClient() == nil)
      var transaction = MLSTransaction()
      transaction.write(client)
      transaction.write(MLSRecord(copying: [1].span), .application([1], in: Array("b".utf8)))
      try storage.apply(transaction)
      #expect(try storage.groups() == [[98]])
    }
    #expect(try database.clients() == ["", "a", "ab"])
    #expect(try database.storage(of: "a").loadClient()?.credential == .basic(identity: [97]))
    var transaction = MLSTransaction()
    transaction.expect(nil, .client)
    transaction.erase(.client)
    #expect(throws: MLSStorageError.conflict) { try database.storage(of: "a").apply(transaction) }
  }
}

private final class UsedKeys: @unchecked Sendable { var values: [[UInt8]] = [] }

extension SQLiteMLSDatabase {
  fileprivate func execute(_ sql: String) throws {
    try withConnection { connection throws(SQLError) in try connection.execute(sql) }
  }

  fileprivate func keysInUse() throws -> Set<[UInt8]> {
    try withConnection { connection throws(SQLError) in
      Set(try connection.statement("SELECT key FROM erasable_key").all { row in row.bytes(0) })
    }
  }

  fileprivate func pageCount() throws -> Int {
    try withConnection { connection throws(SQLError) in
      Int(try connection.statement("PRAGMA page_count").first { row in row.integer(0) } ?? 0)
    }
  }
}
