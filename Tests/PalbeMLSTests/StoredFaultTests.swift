import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

/// The reported faults that concern what is stored.
@Suite("e2ee §6: faults reported elsewhere, after a restart")
struct StoredFaultTests {
  private func read(_ member: StoredMember, _ message: MLSMessage) throws -> [UInt8] {
    guard case .application(let data) = try member.process(message) else { return [] }
    return data.data
  }

  @Test("e2ee 6.3: after a merge and a restart the messages of both epochs are read")
  func merged() throws {
    var group = try TestGroup(2)
    let member = try StoredMember(group.members[0])
    let other = group.members[1]
    let before = try other.group.encrypt([1], using: &group.random)
    let commit = try member.group.update { group_ throws(MLSError) in
      try group_.commit(at: noon, using: &group.random)
    }
    try member.group.update { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
    _ = try other.process(commit.commit)
    let after = try other.group.encrypt([2], using: &group.random)
    try member.reload()
    #expect(try read(member, after) == [2])
    try member.reload()
    #expect(try read(member, before) == [1])
    try member.reload()
    // What was read is known, and so is the own commit.
    #expect(try member.process(before) == .duplicate)
    #expect(try member.process(after) == .duplicate)
    #expect(try member.process(commit.commit) == .own)
    #expect(member.group.group.epochAuthenticator == other.group.epochAuthenticator)
    try member.checkMemoryIsStored()
  }

  @Test(
    "e2ee 6.15: an external join is stored only when accepted; a Welcome to the same group does not apply beside it"
  )
  func external() throws {
    var group = try TestGroup(2)
    let client = try makeClient("late", using: &group.random)
    let storage = InMemoryMLSStorage()
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let published = try group.members[0].group.groupInfo()
    let first = try MLSGroup.joinExternally(published, client: client, using: &group.random)
    // Nothing is anywhere until somebody says that the server took it.
    #expect(storage.groups().isEmpty)
    _ = consume first
    let second = try MLSGroup.joinExternally(published, client: client, using: &group.random)
    let commit = second.commit
    for member in group.members { _ = try member.process(commit) }
    let joined = try StoredGroup.insert(second.accepted(), in: storage)
    #expect(storage.groups() == [bytes("group")])
    let member = StoredMember(client, joined, storage)
    try member.reload()
    #expect(member.group.group.epochAuthenticator == group.members[0].group.epochAuthenticator)
    #expect(try member.process(commit) == .own)
    // Somebody adds the same client by its key package: its leaf is there already, and if a Welcome came from an
    // older epoch, the stored group stays.
    #expect(throws: MLSError.leafNode(.signatureKeyInUse)) {
      _ = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    }
    var elsewhere = try TestGroup(1, seed: 6)
    let bundle = try elsewhere.members[0].group.add(
      [keyPackage.keyPackage], at: noon, using: &elsewhere.random)
    let welcome = try #require(bundle.welcome)
    func insert() throws {
      let stale = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: client)
      _ = try StoredGroup.insert(stale, in: storage)
    }
    #expect(throws: MLSStorageError.groupExists) { try insert() }
    try member.reload()
    #expect(member.group.group.epochAuthenticator == group.members[0].group.epochAuthenticator)
  }

  @Test(
    "e2ee 6.16: a pending commit survives a restart, and is then merged, cleared or replaced",
    arguments: 0...2)
  func pending(way: Int) throws {
    var group = try TestGroup(2)
    let member = try StoredMember(group.members[0])
    let renewed = try makeClient("member 0", using: &group.random)
    var random = group.random
    let first = try member.group.update { group throws(MLSError) in
      try group.commit(as: renewed, at: noon, using: &random)
    }
    try member.checkMemoryIsStored()
    try member.reload()
    let waits = member.group.group.hasPendingCommit
    #expect(waits)
    let message = try member.group.update { group throws(MLSError) in try group.encrypt([1], using: &random) }
    guard case .application = try group.members[1].process(message) else {
      Issue.record("expected application data")
      return
    }
    var accepted = first
    switch way {
    case 0: try member.group.update { group throws(MLSError) in try group.mergePendingCommit(at: noon) }
    case 1:
      try member.group.update { group throws(MLSError) in group.clearPendingCommit() }
      try member.reload()
      accepted = try member.group.update { group throws(MLSError) in
        try group.commit(at: noon, using: &random)
      }
      try member.process(accepted.commit)
    default:
      accepted = try member.group.update { group throws(MLSError) in
        try group.commit(replacingPending: true, at: noon, using: &random)
      }
      try member.reload()
      try member.process(accepted.commit)
    }
    _ = try group.members[1].process(accepted.commit)
    try member.checkMemoryIsStored()
    try member.reload()
    #expect(member.group.group.epochAuthenticator == group.members[1].group.epochAuthenticator)
    let speaker = member.group.group.client.signaturePublicKey
    #expect((speaker == renewed.signaturePublicKey) == (way == 0))
    let last = try member.group.update { group throws(MLSError) in try group.encrypt([2], using: &random) }
    guard case .application = try group.members[1].process(last) else {
      Issue.record("expected application data")
      return
    }
    // The application may name itself by its new key, too; nobody else may.
    if way == 0 { _ = try StoredMember(loading: renewed, from: member.storage) }
    let stranger = try makeClient("member 0", using: &random)
    #expect(throws: MLSStorageError.wrongClient) {
      _ = try StoredMember(loading: stranger, from: member.storage)
    }
  }

  // Rules: V517
  @Test(
    "e2ee 6.23: an older copy of the records is noticed, by the storage's count and by the echo of what it sent"
  )
  func rollback() throws {
    let group = try TestGroup(2)
    let storage = InMemoryMLSStorage()
    let member = try StoredMember(group.members[0], in: storage)
    let copy = InMemoryMLSStorage(copying: storage)
    var random = group.random
    let count = member.group.transactionCount
    let message = try member.group.update { group throws(MLSError) in try group.encrypt([1], using: &random) }
    #expect(member.group.transactionCount == count + 1)
    let old = try StoredMember(loading: member.client, from: copy)
    #expect(old.group.transactionCount == count, "lower than the application has seen")
    #expect(throws: StoredGroupError.mls(.message(.notSentHere(generation: 0)))) { try old.process(message) }
    // A second user of the same records is stopped before it sends under a used key.
    let twin = try StoredMember(loading: member.client, from: storage)
    _ = try member.group.update { group throws(MLSError) in try group.encrypt([2], using: &random) }
    #expect(throws: StoredGroupError.storage(.conflict)) {
      _ = try twin.group.update { group throws(MLSError) in try group.encrypt([3], using: &random) }
    }
  }

  @Test("Everything new of a group is stored: keys of other groups, who we are, what waits, what was read")
  func everything() throws {
    let type = ProposalType(rawValue: 0xf001)
    var configuration = MLSConfiguration()
    configuration.applicationProposals = [ApplicationProposalType(type)]
    let group = try TestGroup(3, configuration)
    let other = try TestGroup(1, seed: 4)
    let key = try other.members[0].resumptionKey()
    let member = try StoredMember(group.members[0])
    var random = group.random
    let renewed = try makeClient("member 0", configuration, using: &random)
    try member.group.update { group throws(MLSError) in group.register(key) }
    try member.checkMemoryIsStored()
    let update = try member.group.update { group throws(MLSError) in
      try group.proposeUpdate(as: renewed, using: &random)
    }
    try member.checkMemoryIsStored()
    try member.reload()
    #expect(try member.process(update) == .own)
    let proposal = try group.members[2].group.propose(.application(type: type, data: [5]), using: &random)
    for receiver in [group.members[1]] {
      _ = try receiver.process(update)
      _ = try receiver.process(proposal)
    }
    try member.process(proposal)
    _ = try group.members[2].process(update)
    // Our own commit holds it, and survives a restart with it.
    let own = try member.group.update { group throws(MLSError) in try group.commit(at: noon, using: &random) }
    #expect(own.effect.applicationProposals.count == 1)
    try member.checkMemoryIsStored()
    try member.reload()
    let staged = member.group.group.pending?.staged.effect
    #expect(staged == own.effect)
    // Another's commit takes our Update in: from then on we are who it says, also after a restart.
    let commit = try group.members[1].group.commit(at: noon, using: &random)
    try member.process(commit.commit)
    try member.checkMemoryIsStored()
    try member.reload()
    let speaker = member.group.group.client.signaturePublicKey
    #expect(speaker == renewed.signaturePublicKey)
    for number in 0..<70 {
      let message = try group.members[1].group.pendingMerged(&random, [UInt8(number)])
      try member.process(message)
      if number % 23 == 0 { try member.checkMemoryIsStored() }
    }
    let pages = member.group.group.state.seen.pages.count
    #expect(pages == 3)
    try member.reload()
    let message = try member.group.update { group throws(MLSError) in try group.encrypt([9], using: &random) }
    guard case .application = try group.members[1].process(message) else {
      Issue.record("expected application data")
      return
    }
    // Removed, it keeps nothing of all this.
    let removal = try group.members[1].group.remove([LeafIndex(0)], at: noon, using: &random)
    guard case .removed = try member.process(removal.commit) else {
      Issue.record("expected a removal")
      return
    }
    try member.checkMemoryIsStored()
    let left = member.group.group.state.secrets.count
    let storage = try #require(member.storage as? InMemoryMLSStorage)
    var gone = GoneSecrets()
    gone.insert([key.secret.bytes])
    for record in storage.dump() { #expect(gone.found(in: record).isEmpty) }
    #expect(left < 16)
  }
}

extension MLSGroup {
  /// A message in the epoch of the pending commit, which is merged first.
  fileprivate mutating func pendingMerged(
    _ random: inout RandomSource, _ data: [UInt8]
  ) throws -> MLSMessage {
    if hasPendingCommit { try mergePendingCommit(at: noon) }
    return try encrypt(data, using: &random)
  }
}
