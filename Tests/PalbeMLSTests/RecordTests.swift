import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("Storage: records")
struct RecordTests {
  /// The records of a member whose state has something of everything, with a type that reads each.
  private func samples() throws -> [(record: MLSRecord, read: (MLSRecord) throws -> MLSRecord)] {
    var group = try TestGroup(3, seed: 21)
    for member in group.members {
      member.group.register(PreSharedKey(id: [7], key: SymmetricKey(copying: [1, 2, 3])))
    }
    try group.update(by: 0)
    for _ in 0..<2 { _ = try group.members[1].group.encrypt([1], using: &group.random) }
    let text = try group.members[1].group.encrypt([1], using: &group.random)
    _ = try group.members[0].process(text)
    let update = try group.members[0].group.proposeUpdate(using: &group.random)
    for place in 1..<3 { _ = try group.members[place].process(update) }
    _ = try group.members[0].group.commit(at: noon, using: &group.random)
    let state = group.members[0].group.state
    let client = group.members[0].client
    let pending = try #require(state.pending)
    let ratchets = try #require(state.epoch.keys.tree.ratchets[LeafIndex(1)])
    let bundle = try client.makeKeyPackage(lifetime: day, using: &group.random)

    func sample<Record: StoredRecord>(
      _ value: Record
    ) -> (record: MLSRecord, read: (MLSRecord) throws -> MLSRecord) {
      (value.record, { record in try Record(record).record })
    }
    var result = [
      sample(CoreRecord(state, client: client)), sample(RevisionRecord(.max)),
      sample(PendingRecord(pending)), sample(ProposalRecord(state.proposals.all[0], in: state.proposals)),
      sample(EpochRecord(state.epoch)),
      sample(MessageKeysRecord(contextBytes: state.epoch.contextBytes, keys: state.epoch.keys)),
      sample(TreeRecord(state.epoch.tree)),
      sample(NodeRecord(Secret(copying: [1, 2, 3]))), sample(RatchetRecord(ratchets.application)),
      sample(ClientRecord(client)), sample(KeyPackageRecord(bundle)),
      sample(PreSharedKeyRecord(PreSharedKey(id: [], key: SymmetricKey(copying: [9])))),
    ]
    for item in ratchets.application.skipped.values { result.append(sample(SkippedKeyRecord(item))) }
    #expect(ratchets.application.skipped.count == 2)
    return result
  }

  @Test("A round trip; no beginning, no byte more and no schema 0 is accepted")
  func decoding() throws {
    var prefixes = 0
    for (record, read) in try samples() {
      let bytes = record.withSpan { span in Array(copying: span) }
      #expect(try read(record).withSpan { span in Array(copying: span) } == bytes)
      // Large ones at every seventh place, and at all near their ends.
      for count in 0..<bytes.count where bytes.count < 500 || count % 7 == 0 || count > bytes.count - 40 {
        let prefix = Array(bytes[..<count])
        #expect(throws: MLSStorageError.self) { _ = try read(MLSRecord(copying: prefix.span)) }
        prefixes += 1
      }
      let longer = bytes + [0]
      #expect(throws: MLSStorageError.self) { _ = try read(MLSRecord(copying: longer.span)) }
      var other = bytes
      other[1] = 0
      #expect(throws: MLSStorageError.self) { _ = try read(MLSRecord(copying: other.span)) }
      other[1] = 99
      let newer = MLSStorageError.newerSchema(found: 99, known: RecordSchema.current)
      #expect(throws: newer) { _ = try read(MLSRecord(copying: other.span)) }
    }
    #expect(prefixes > 1_000)
  }

  @Test(
    "Records that do not fit together are refused, never trapped on: each missing, each of another member")
  func inconsistent() throws {
    var group = try TestGroup(3, seed: 22)
    try group.update(by: 1)
    _ = try group.members[0].group.commit(at: noon, using: &group.random)
    let storages = try [0, 1].map { place in
      let storage = InMemoryMLSStorage()
      _ = try StoredMember(group.members[place], in: storage)
      return storage
    }
    let client = group.members[0].client
    var refused = 0
    for key in try storages[0].keys(in: bytes("group")) {
      for replacement in [nil, storages[1].read(key)] {
        let storage = InMemoryMLSStorage(copying: storages[0])
        var transaction = MLSTransaction()
        if let replacement { transaction.write(replacement, key) } else { transaction.erase(key) }
        try storage.apply(transaction)
        do {
          let loaded = try StoredGroup.load(bytes("group"), client: client, from: storage)
          guard var loaded else { continue }
          var random = RandomSource(seed: 1)
          _ = try? loaded.update { group throws(MLSError) in try group.encrypt([1], using: &random) }
        } catch { refused += 1 }
      }
    }
    #expect(refused > 5)
  }
}

extension Array where Element == UInt8 {
  fileprivate init(copying span: Span<UInt8>) {
    self = []
    for index in span.indices { append(span[index]) }
  }
}
