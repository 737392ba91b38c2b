import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("Storage: what was used is gone")
struct ErasureTests {
  /// Stored members, and every secret that one of them had and has no more.
  private final class World {
    var random = RandomSource(seed: 12)
    var members: [StoredMember] = []
    var gone = GoneSecrets()
    var checks = 0

    /// Runs an operation of a member, and looks for all that is gone in all of its storage.
    @discardableResult
    func run<Result>(
      _ place: Int, _ body: (inout MLSGroup) throws(MLSError) -> Result
    ) throws -> Result {
      let member = members[place]
      let before = member.group.group.state.secrets
      // Keys live in between only: made of the state before, and never part of one.
      var used: [[UInt8]] = []
      var keys = member.group.group.state.epoch.keys.tree
      for leaf in member.group.group.members.map(\.leaf) {
        for type in [ContentType.application, .proposal] {
          let next = try keys.next(leaf, type, crypto: member.client.crypto)
          used += [next.key.key.bytes, next.key.nonce.bytes]
        }
      }
      let result = try member.group.update(body)
      let after = member.group.group.state.secrets
      gone.insert(before.subtracting(after))
      gone.insert(used.filter { !after.contains($0) })
      try check(place)
      return result
    }

    func check(_ place: Int) throws {
      let storage = try #require(members[place].storage as? InMemoryMLSStorage)
      for bytes in storage.dump() {
        let found = gone.found(in: bytes)
        guard !found.isEmpty else { continue }
        // Another member may still have what this one has not.
        let live = members[place].group.group.state.secrets
        #expect(found.allSatisfy { live.contains($0) }, "\(found.count) secrets in check \(checks)")
      }
      checks += 1
    }

    func deliver(_ message: MLSMessage, from sender: Int, to readers: [Int]? = nil) throws {
      for place in readers ?? Array(members.indices) where place != sender {
        try run(place) { group throws(MLSError) in try group.process(message.encoded(), at: noon) }
      }
    }

    func text(from sender: Int, to readers: [Int]? = nil) throws -> MLSMessage {
      let message = try run(sender) { group throws(MLSError) in
        try group.encrypt(bytes("text"), using: &random)
      }
      try deliver(message, from: sender, to: readers)
      return message
    }

    func commit(_ sender: Int, merged: Bool = true, _ list: [Proposal] = []) throws -> CommitBundle {
      let bundle = try run(sender) { group throws(MLSError) in
        try group.commit(list, at: noon, using: &random)
      }
      guard merged else { return bundle }
      try deliver(bundle.commit, from: sender)
      try run(sender) { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
      return bundle
    }

    func join(_ name: String) throws {
      let client = try makeClient(name, using: &random)
      let package = try client.makeKeyPackage(lifetime: day, using: &random)
      let storage = InMemoryMLSStorage()
      var transaction = MLSTransaction()
      transaction.write(package)
      try storage.apply(transaction)
      let bundle = try commit(0, [.add(package.keyPackage)])
      let group = try MLSGroup.join(
        try #require(bundle.welcome), keyPackages: try storage.loadKeyPackages(), client: client)
      members.append(StoredMember(client, try StoredGroup.insert(group, in: storage), storage))
      gone.insert([package.initKey.bytes])
      try check(members.count - 1)
    }
  }

  @Test(
    "Item 4: message keys, epoch secrets, leaf, path, init and pending keys, after each of all operations")
  func everything() throws {
    let world = World()
    let client = try makeClient("first", using: &world.random)
    let storage = InMemoryMLSStorage()
    let group = try MLSGroup.create(
      groupID: bytes("group"), client: client, lifetime: day, using: &world.random)
    world.members.append(StoredMember(client, try StoredGroup.insert(group, in: storage), storage))
    for name in ["a", "b", "c"] { try world.join(name) }

    for sender in 0..<4 { for _ in 0..<2 { _ = try world.text(from: sender) } }
    // Out of order: what is passed over is kept, and goes when it is read.
    let late = try [world.text(from: 1, to: [2]), world.text(from: 1, to: [2]), world.text(from: 1)]
    try world.deliver(late[1], from: 1, to: [0, 3])
    _ = try world.commit(2)
    try world.deliver(late[0], from: 1, to: [0, 3])
    // Proposals and their keys.
    for place in [1, 2] {
      let proposal = try world.run(place) { group throws(MLSError) in
        try group.proposeUpdate(using: &world.random)
      }
      try world.deliver(proposal, from: place)
    }
    _ = try world.commit(3)
    let proposal = try world.run(1) { group throws(MLSError) in
      try group.proposeUpdate(using: &world.random)
    }
    try world.deliver(proposal, from: 1)
    for place in 0..<4 { try world.run(place) { group throws(MLSError) in group.clearPendingProposals() } }
    // A pending commit that is cleared, one that is replaced, one that is merged by its echo.
    _ = try world.commit(0, merged: false)
    try world.run(0) { group throws(MLSError) in group.clearPendingCommit() }
    _ = try world.commit(0, merged: false)
    _ = try world.commit(1)
    let echoed = try world.commit(0, merged: false)
    for place in 0..<4 { try world.deliver(echoed.commit, from: -1, to: [place]) }
    // The exporter.
    for place in 0..<4 { try world.run(place) { group throws(MLSError) in group.wipeExporterSecret() } }
    // Epochs that become too old.
    for round in 0..<6 {
      _ = try world.commit(round % 4)
      _ = try world.text(from: (round + 1) % 4)
    }
    for member in world.members {
      try member.checkMemoryIsStored()
      try member.reload()
    }
    // A removal.
    let removal = try world.commit(0, [.remove(world.members[3].group.group.ownLeaf)])
    #expect(removal.effect.removed.count == 1)
    let isActive = world.members[3].group.group.isActive
    #expect(!isActive)
    #expect(world.gone.count > 400 && world.checks > 100, "\(world.gone.count), \(world.checks)")
    print("erasure: \(world.gone.count) secrets looked for after \(world.checks) operations")
  }

  @Test("Item 4: the scan finds a key that is there")
  func scanWorks() throws {
    var gone = GoneSecrets()
    gone.insert([[1, 2, 3, 4, 5, 6, 7, 8, 9], [UInt8](repeating: 0, count: 32)])
    #expect(gone.count == 1)
    #expect(gone.found(in: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).count == 1)
    #expect(gone.found(in: [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 10]).isEmpty)
    #expect(gone.found(in: [1, 2, 3, 4, 5, 6, 7, 8]).isEmpty)
  }

  @Test("Item 3: a key that was passed over goes after a week, with the next message, also from storage")
  func skippedTime() throws {
    var world = try TestGroup(2, seed: 8)
    let member = try StoredMember(world.members[0])
    var texts: [MLSMessage] = []
    for _ in 0..<4 { texts.append(try world.members[1].group.encrypt([1], using: &world.random)) }
    let week: UInt64 = 7 * 86_400
    try member.process(texts[1], at: noon)
    try member.process(texts[3], at: noon + 100)
    try member.reload()
    var gone = GoneSecrets()
    let leaf = LeafIndex(1)
    let skipped = try #require(member.group.group.state.epoch.keys.tree.ratchets[leaf]).application.skipped
    #expect(skipped.mapValues(\.storedAt) == [0: noon, 2: noon + 100])
    gone.insert([try #require(skipped[0]).key.key.bytes])
    let storage = try #require(member.storage as? InMemoryMLSStorage)
    #expect(storage.dump().contains { !gone.found(in: $0).isEmpty })

    // Refused at the edge, and a refusal changes nothing.
    #expect(throws: StoredGroupError.mls(.message(.generationUsed(0)))) {
      try member.process(texts[0], at: noon + week + 1)
    }
    let last = try world.members[1].group.encrypt([1], using: &world.random)
    try member.process(last, at: noon + week + 1)
    #expect(storage.dump().allSatisfy { gone.found(in: $0).isEmpty })
    try member.process(texts[2], at: noon + week + 100)
    try member.checkMemoryIsStored()
    #expect(throws: StoredGroupError.mls(.message(.generationUsed(0)))) {
      try member.process(texts[0], at: noon)
    }
  }

  @Test("A second user of the same records is noticed before anything gets out")
  func conflict() throws {
    var world = try TestGroup(2, seed: 3)
    let member = try StoredMember(world.members[0])
    let other = try StoredMember(loading: member.client, from: member.storage)
    try member.group.update { group throws(MLSError) in
      try group.encrypt([1], using: &world.random)
    }
    #expect(throws: StoredGroupError.storage(.conflict)) {
      try other.group.update { group throws(MLSError) in try group.encrypt([1], using: &world.random) }
    }
    try other.reload()
    try other.group.update { group throws(MLSError) in try group.encrypt([2], using: &world.random) }
    #expect(other.group.transactionCount == 3)
    // Fault 1836: a Welcome and an external commit for the same group do not both apply.
    #expect(throws: MLSStorageError.groupExists) {
      _ = try StoredMember(world.members[0], in: member.storage)
    }
  }

  @Test(
    "A message writes a few hundred bytes in groups of 2 and of 50; records of another client are refused")
  func sizes() throws {
    for count in [2, 50] {
      var world = try TestGroup(count, seed: 4)
      let member = try StoredMember(world.members[0], in: CountingStorage())
      let storage = try #require(member.storage as? CountingStorage)
      for _ in 0..<3 {
        let text = try world.members[1].group.encrypt(bytes("text"), using: &world.random)
        try member.process(text)
        try member.group.update { group throws(MLSError) in
          try group.encrypt(bytes("text"), using: &world.random)
        }
      }
      #expect(storage.last < 300, "\(storage.last) bytes")
      #expect(throws: MLSStorageError.wrongClient) {
        _ = try StoredMember(loading: world.members[1].client, from: member.storage)
      }
    }
  }
}

/// Counts the bytes of the last transaction.
private final class CountingStorage: MLSStorage, @unchecked Sendable {
  let inner = InMemoryMLSStorage()
  var last = 0

  func read(_ key: MLSRecordKey) -> MLSRecord? { inner.read(key) }
  func keys(under prefix: MLSRecordKey) -> [MLSRecordKey] { inner.keys(under: prefix) }
  func groups() -> [[UInt8]] { inner.groups() }

  func apply(_ transaction: MLSTransaction) throws(MLSStorageError) {
    last = transaction.changes.reduce(0) { sum, change in
      guard case .write(let record) = change.value else { return sum + change.key.name.count }
      return sum + change.key.name.count + record.byteCount
    }
    try inner.apply(transaction)
  }
}
