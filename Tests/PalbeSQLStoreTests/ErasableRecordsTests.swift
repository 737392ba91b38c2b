import Foundation
import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeSQLStore

@Suite("SQLite: erased values are really gone")
struct ErasableRecordsTests {
  private func open(_ path: String, seed: UInt64 = 1) throws -> (SQLConnection, ErasableRecords) {
    var settings = SQLConnection.Settings()
    settings.isDurable = false
    let connection = try SQLConnection(path: path, settings: settings)
    try connection.migrate([ErasableRecords.tables])
    return (connection, ErasableRecords(connection, random: RandomSource(seed: seed)))
  }

  private func value(_ records: ErasableRecords, _ scope: [UInt8], _ name: [UInt8]) throws -> [UInt8]? {
    guard let key = try records.read(scope: scope, name: name) else { return nil }
    return [UInt8](key.span)
  }

  @Test("Values, names under prefixes and scopes")
  func reading() throws {
    let (_, records) = try open(":memory:")
    let names: [[UInt8]] = [[], [0], [0, 255], [1], [1, 0], [1, 255, 7], [2], [255], [255, 255, 1]]
    func write(_ scope: [UInt8], _ name: [UInt8], _ value: [UInt8]) throws {
      try records.write(scope: scope, name: name, value.span)
    }
    for name in names { try write([9], name, name + [42]) }
    try write([], [1], [])
    try write([9, 1], [1], [3])
    for name in names { #expect(try value(records, [9], name) == name + [42]) }
    #expect(try value(records, [], [1]) == [])
    #expect(try value(records, [9], [7]) == nil)
    #expect(try records.names(scope: [9]) == names)
    #expect(try records.names(scope: [9], prefix: [1]) == [[1], [1, 0], [1, 255, 7]])
    #expect(try records.names(scope: [9], prefix: [0, 255]) == [[0, 255]])
    #expect(try records.names(scope: [9], prefix: [255]) == [[255], [255, 255, 1]])
    #expect(try records.names(scope: [9], prefix: [255, 255]) == [[255, 255, 1]])
    #expect(try records.scopes() == [[], [9], [9, 1]])
    #expect(try records.scopes(prefix: [9]) == [[9], [9, 1]])
    try records.eraseAll(scope: [9], prefix: [1])
    try records.erase(scope: [9], name: [77])
    #expect(try records.names(scope: [9]) == names.filter { $0.first != 1 })
    #expect(try value(records, [9, 1], [1]) == [3])
  }

  @Test("A changed or exchanged value is noticed")
  func corruption() throws {
    let (connection, records) = try open(":memory:")
    let values: [[UInt8]] = [[1, 2, 3], [4, 5, 6]]
    for (index, value) in values.enumerated() {
      try records.write(scope: [1], name: [UInt8(index + 1)], value.span)
    }
    for change in ["key_id = 3 - key_id", "key_id = 3 - key_id, name = CAST(x'03' || name AS BLOB)"] {
      try connection.execute("UPDATE erasable_record SET " + change)
      for name in try records.names(scope: [1]) {
        #expect(throws: SQLError.corrupted(code: -1)) { _ = try value(records, [1], name) }
      }
    }
    try connection.execute("UPDATE erasable_record SET value = x'00'")
    #expect(throws: SQLError.corrupted(code: -1)) { _ = try value(records, [1], [3, 2]) }
  }

  /// SQLite leaves copies of rows where it moves them, of old keys too if they moved: this finds any key or value
  /// that should be gone, in the file and its journal, after each of many transactions.
  @Test(
    "Neither a value nor the key it was encrypted under is in the files after it was replaced or erased",
    arguments: [1, 2, 3] as [UInt64])
  func erasure(seed: UInt64) throws {
    let folder = try TemporaryFolder()
    let (_, records) = try open(folder.path("db"), seed: seed)
    var random = RandomSource(seed: seed + 1_000)
    var live: [[UInt8]: (value: [UInt8], key: [UInt8])] = [:]
    var gone = Set<[UInt8]>()
    var lastKey: [UInt8] = []
    records.onKey = { key in lastKey = [UInt8](key) }
    func write(_ name: [UInt8]) throws {
      let value = random.bytes([40, 60, 100, 300, 900, 5_000].randomElement(using: &random)!)
      if let old = live[name] { gone.formUnion([Array(old.value.prefix(8)), Array(old.key.prefix(8))]) }
      try records.write(scope: [1], name: name, value.span)
      live[name] = (value, lastKey)
    }
    for round in 0..<160 {
      try records.transaction { () throws(SQLError) in
        do {
          for _ in 0..<Int.random(in: 1...8, using: &random) {
            let choice = Int.random(in: 0..<10, using: &random)
            // As the names of real records: long common beginnings.
            let fresh =
              [UInt8](repeating: 7, count: 12) + random.bytes([1, 4, 9].randomElement(using: &random)!)
            let known = live.keys.sorted { $0.lexicographicallyPrecedes($1) }.randomElement(using: &random)
            if choice < 5 || known == nil {
              try write(fresh)
            } else if choice < 7, let known {
              try write(known)
            } else if let known, let old = live.removeValue(forKey: known) {
              gone.formUnion([Array(old.value.prefix(8)), Array(old.key.prefix(8))])
              try records.erase(scope: [1], name: known)
            }
          }
        } catch let error as SQLError { throw error } catch { throw .aborted }
      }
      guard round % 20 == 19 else { continue }
      for (name, item) in live { #expect(try value(records, [1], name) == item.value) }
      let starts = Set(gone.map { $0.reduce(0) { $0 << 8 | UInt64($1) } })
      // Most places are passed over without a look into the set.
      var ends = [Bool](repeating: false, count: 65_536)
      for start in starts { ends[Int(start & 0xffff)] = true }
      for bytes in try folder.dump() {
        var window: UInt64 = 0
        for byte in bytes {
          window = window << 8 | UInt64(byte)
          if ends[Int(window & 0xffff)], starts.contains(window) { Issue.record("found in round \(round)") }
        }
      }
    }
    #expect(gone.count > 300)
  }

  @Test("Rows of keys are used again, also after a failed transaction")
  func reuse() throws {
    let (connection, records) = try open(":memory:")
    for round in 0..<50 {
      let value = [UInt8](repeating: UInt8(round), count: 10)
      if round % 3 == 2 {
        #expect(throws: SQLError.aborted) {
          try records.transaction { () throws(SQLError) in
            for name in 0..<5 as Range<UInt8> { try records.write(scope: [1], name: [name], value.span) }
            throw .aborted
          }
        }
      }
      try records.transaction { () throws(SQLError) in
        for name in 0..<5 as Range<UInt8> { try records.write(scope: [1], name: [name], value.span) }
      }
      for name in 0..<5 as Range<UInt8> { #expect(try self.value(records, [1], [name]) == value) }
      try records.eraseAll(scope: [1])
    }
    #expect(
      try connection.statement("SELECT count(*) FROM erasable_key").first { row in row.integer(0) } == 5)
  }
}
