import Foundation
import PalbeCrypto
import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

/// Groups as each schema stored them. `PALBE_RECORD_GOLDEN=1` writes that of the current schema anew; those of older
/// ones never change.
@Suite("Storage: what older versions stored still loads")
struct StoredGoldenTests {
  private static let records = ProcessInfo.processInfo.environment["PALBE_RECORD_GOLDEN"] != nil

  private func path(_ schema: Int) -> String {
    "Tests/PalbeMLSTests/Golden/stored-group-schema-\(schema).txt"
  }

  @Test(
    "Item 4: a stored group of each schema loads, and goes on in both ways",
    arguments: 1...RecordSchema.current)
  func loads(schema: Int) throws {
    if Self.records, schema == RecordSchema.current {
      let url = Vectors.projectRoot.appendingPathComponent(path(schema))
      try Data(try makeFixture().utf8).write(to: url)
    }
    let fixture = try Fixture(String(decoding: try Vectors.golden(path(schema)), as: UTF8.self))
    for key in fixture.records.keys {
      let number = try #require(fixture.records[key]).prefix(2)
      #expect(Array(number) == [0, UInt8(schema)])
    }

    for way in ["merged", "replaced"] {
      let storage = try fixture.storage()
      let client = try #require(try storage.loadClient())
      #expect(client.credential == .basic(identity: bytes("member 0")))
      #expect(try storage.loadKeyPackages().count == 1)
      #expect(try storage.loadPreSharedKeys().map(\.id) == [[7]])
      let member = try StoredMember(loading: client, from: storage)
      try member.checkMemoryIsStored()
      let isWiped = member.group.group.isExporterWiped
      #expect(isWiped)
      for name in ["skipped", "past", "next"] {
        guard case .application(let data) = try member.process(try fixture.message(name)) else {
          Issue.record("\(name) was not read")
          continue
        }
        #expect(data.data == bytes(name))
      }
      #expect(try member.process(try fixture.message("skipped")) == .duplicate)
      let waits = member.group.group.hasPendingCommit
      #expect(waits)
      if way == "merged" {
        try member.group.update { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
      } else {
        try member.process(try fixture.message("commit"))
      }
      #expect(member.group.group.epochAuthenticator == fixture.values[way])
      try member.checkMemoryIsStored()
    }
  }

  @Test("Item 3: keys that schema 1 stored without a time get that of the next message, and go a week later")
  func timeOfOldKeys() throws {
    let fixture = try Fixture(String(decoding: try Vectors.golden(path(1)), as: UTF8.self))
    let storage = try fixture.storage()
    let client = try #require(try storage.loadClient())
    let member = try StoredMember(loading: client, from: storage)
    try member.process(try fixture.message("next"), at: noon + 30)
    try member.reload()
    #expect(throws: StoredGroupError.mls(.message(.notAGroupMessage))) {
      try member.process(.keyPackage(try #require(try storage.loadKeyPackages().first).keyPackage), at: noon)
    }
    let week: UInt64 = 7 * 86_400
    let skipped = try fixture.message("skipped")
    let other = try StoredMember(loading: client, from: InMemoryMLSStorage(copying: storage))
    #expect(throws: StoredGroupError.mls(.message(.generationUsed(0)))) {
      try other.process(skipped, at: noon + 31 + week)
    }
    guard case .application = try member.process(skipped, at: noon + 30 + week) else {
      Issue.record("not read")
      return
    }
    try member.checkMemoryIsStored()
  }

  @Test("Item 4: a record of a newer schema is refused by its own error, anywhere")
  func newer() throws {
    let fixture = try Fixture(
      String(decoding: try Vectors.golden(path(RecordSchema.current)), as: UTF8.self))
    for key in fixture.records.keys {
      let storage = InMemoryMLSStorage()
      var transaction = MLSTransaction()
      for (other, value) in fixture.records {
        var value = value
        if other == key { value.replaceSubrange(0..<2, with: [0, UInt8(RecordSchema.current + 1)]) }
        transaction.write(MLSRecord(copying: value.span), other)
      }
      try storage.apply(transaction)
      let newer = MLSStorageError.newerSchema(
        found: RecordSchema.current + 1, known: RecordSchema.current)
      #expect(throws: newer, "\(key)") {
        let client = try #require(try storage.loadClient())
        _ = try storage.loadKeyPackages()
        _ = try storage.loadPreSharedKeys()
        _ = try StoredMember(loading: client, from: storage)
      }
    }
  }

  private struct Fixture {
    var records: [MLSRecordKey: [UInt8]] = [:]
    var values: [String: [UInt8]] = [:]

    init(_ text: String) throws {
      for line in text.split(separator: "\n") {
        let words = line.split(separator: " ").map(String.init)
        if words[0] == "record" {
          let group = words[1] == "-" ? nil : try Self.hex(words[1])
          let key = MLSRecordKey(group: group, name: try Self.hex(words[2]))
          records[key] = try Self.hex(words[3])
        } else {
          values[words[0]] = try Self.hex(words[1])
        }
      }
      #expect(records.count > 20)
    }

    func storage() throws -> InMemoryMLSStorage {
      let storage = InMemoryMLSStorage()
      var transaction = MLSTransaction()
      for (key, value) in records { transaction.write(MLSRecord(copying: value.span), key) }
      try storage.apply(transaction)
      return storage
    }

    private static func hex(_ text: String) throws -> [UInt8] { try #require(Hex.decode(text)) }

    func message(_ name: String) throws -> MLSMessage {
      try MLSMessage(decoding: try #require(values[name]))
    }
  }

  /// A member with a pending commit, proposals of its own and of others, past epochs, keys passed over, a wiped
  /// exporter and a pre-shared key.
  private func makeFixture() throws -> String {
    var group = try TestGroup(3, seed: 77)
    for member in group.members {
      member.group.register(PreSharedKey(id: [7], key: SymmetricKey(copying: [1, 2, 3, 4])))
    }
    func send(_ text: String, from sender: Int, to readers: [Int]) throws -> MLSMessage {
      let message = try group.members[sender].group.encrypt(bytes(text), using: &group.random)
      for reader in readers { _ = try group.members[reader].process(message) }
      return message
    }
    let past = try send("past", from: 1, to: [2])
    _ = try send("seen", from: 1, to: [0, 2])
    try group.update(by: 0)
    let skipped = try send("skipped", from: 1, to: [2])
    _ = try send("seen", from: 1, to: [0, 2])
    _ = try send("seen", from: 0, to: [1, 2])
    let update = try group.members[0].group.proposeUpdate(using: &group.random)
    let psk = try group.members[2].group.proposePreSharedKey(id: [7], using: &group.random)
    for (sender, proposal) in [(0, update), (2, psk)] {
      for place in 0..<3 where place != sender { _ = try group.members[place].process(proposal) }
    }
    group.members[0].group.wipeExporterSecret()
    let pending = try group.members[0].group.commit(at: noon, using: &group.random)
    let next = try send("next", from: 1, to: [2])
    let commit = try group.members[1].group.commit(at: noon, using: &group.random)
    group.members[1].group.clearPendingCommit()
    // Both ways, as another member sees them.
    _ = try group.members[2].process(commit.commit)
    _ = try group.members[1].process(pending.commit)

    let storage = InMemoryMLSStorage()
    let client = group.members[0].client
    var transaction = MLSTransaction()
    transaction.write(client)
    transaction.write(try client.makeKeyPackage(lifetime: day, using: &group.random))
    transaction.write(PreSharedKey(id: [7], key: SymmetricKey(copying: [1, 2, 3, 4])))
    try storage.apply(transaction)
    _ = try StoredMember(group.members[0], in: storage)
    var lines: [String] = []
    let own = storage.keys(under: MLSRecordKey(group: nil, name: []))
    for key in own + (try storage.keys(in: bytes("group"))) {
      let record = try #require(storage.read(key))
      let value = record.withSpan { span in [UInt8](span) }
      let name = Hex.encode(key.name)
      lines.append("record \(key.group.map(Hex.encode) ?? "-") \(name) \(Hex.encode(value))")
    }
    for (name, message) in [
      ("skipped", skipped), ("past", past), ("next", next), ("commit", commit.commit),
    ] {
      lines.append("\(name) \(Hex.encode(message.encoded()))")
    }
    lines.append("merged \(Hex.encode(group.members[1].group.epochAuthenticator))")
    lines.append("replaced \(Hex.encode(group.members[2].group.epochAuthenticator))")
    return lines.joined(separator: "\n") + "\n"
  }
}
