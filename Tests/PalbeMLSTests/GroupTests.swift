import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("RFC 9420: groups")
struct GroupTests {
  @Test(
    "RFC 9420 §11, §12: groups of 1, 2, 3 and 10 agree after adds, updates and removals",
    arguments: [1, 2, 3, 10])
  func histories(count: Int) throws {
    var group = try TestGroup(count)
    try group.checkAgreement()
    try group.checkPrivateKeys()
    for committer in group.members.indices {
      try group.update(by: committer)
      try group.checkAgreement(talk: false)
      try group.checkPrivateKeys()
    }
    try group.add(3, by: group.members.count - 1)
    try group.checkAgreement()
    try group.add(1, by: 0, path: false)
    try group.checkAgreement()
    try group.remove([1], by: 0)
    try group.checkAgreement()
    try group.checkPrivateKeys()
    try group.update(by: group.members.count - 1)
    try group.checkAgreement()
    try group.add(2, by: 1)
    try group.checkAgreement()
    try group.checkPrivateKeys()
  }

  @Test("RFC 9420 §6.2: the same with public handshake messages", arguments: [2, 3, 10])
  func publicHandshakes(count: Int) throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var group = try TestGroup(count, configuration)
    try group.update(by: count - 1)
    try group.add(1, by: 0)
    try group.remove([1], by: 0)
    try group.checkAgreement()
  }

  // Rules: V306 V705
  @Test("RFC 9420 §12.4.3.3: the tree may travel beside the Welcome; without it joining fails")
  func treeOutOfBand() throws {
    var configuration = MLSConfiguration()
    configuration.ratchetTreeInWelcome = false
    var group = try TestGroup(3, configuration)
    try group.checkAgreement()
    let client = try makeClient("late", using: &group.random)
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    let welcome = try #require(bundle.welcome)
    #expect(throws: MLSError.welcome(.treeMissing)) {
      _ = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: client)
    }
    var otherTree = try #require(bundle.ratchetTree)
    otherTree.nodes.removeLast()
    while let last = otherTree.nodes.last, last == nil { otherTree.nodes.removeLast() }
    #expect(throws: MLSError.tree(.wrongTreeHash)) {
      _ = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: client, ratchetTree: otherTree)
    }
  }

  @Test(
    "A seeded history of 60 random steps keeps all members in agreement", arguments: [1, 2, 3] as [UInt64])
  func randomHistory(seed: UInt64) throws {
    var group = try TestGroup(4, seed: seed)
    var choices = RandomSource(seed: seed &* 1_000)
    for step in 0..<60 {
      let committer = Int.random(in: group.members.indices, using: &choices)
      switch Int.random(in: 0..<4, using: &choices) {
      case 0 where group.members.count < 20:
        try group.add(
          Int.random(in: 1...3, using: &choices), by: committer, path: Bool.random(using: &choices))
      case 1 where group.members.count > 2:
        let others = group.members.indices.filter { $0 != committer }.shuffled(using: &choices)
        try group.remove(Array(others.prefix(Int.random(in: 1...2, using: &choices))), by: committer)
      default: try group.update(by: committer)
      }
      try group.checkAgreement(talk: step.isMultiple(of: 10))
      try group.checkPrivateKeys()
    }
  }

  @Test("e2ee 3.3: a removed member is told, its keys are wiped, and it cannot follow")
  func removedMember() throws {
    var group = try TestGroup(4)
    let removed = group.members[2]
    try group.remove([2], by: 0)
    let isActive = removed.group.isActive
    #expect(!isActive)
    let keys = removed.group.epoch.privateKeys
    #expect(keys.isEmpty)
    #expect(throws: MLSError.state(.removed)) {
      _ = try removed.group.exportSecret(label: "agreement", context: [], length: 32)
    }
    let message = try group.members[0].group.encrypt([1], using: &group.random)
    #expect(throws: MLSError.state(.removed)) { try removed.process(message) }
    #expect(throws: MLSError.state(.removed)) { try removed.group.encrypt([1], using: &group.random) }
  }

  @Test("RFC 9420 §7.6: the removed member's old keys open nothing of the next path")
  func removedKeysOpenNothing() throws {
    var group = try TestGroup(4)
    for committer in group.members.indices { try group.update(by: committer) }
    let removed = group.members[3]
    let old = removed.group.epoch
    let bundle = try group.members[0].group.remove([old.ownLeaf], at: noon, using: &group.random)
    // What it can read: the commit itself, which was sent in its epoch.
    guard case .privateMessage(let message) = bundle.commit else {
      Issue.record("expected a private message")
      return
    }
    var keys = old.keys
    let crypto = old.tree.crypto
    let sender = try keys.sender(of: message, crypto: crypto)
    let opened = try keys.decrypt(message, from: sender, limits: RatchetLimits(), crypto: crypto)
    guard case .commit(let commit) = opened.message.content.content, let path = commit.path else {
      Issue.record("expected a commit with a path")
      return
    }
    for node in path.nodes {
      for ciphertext in node.encryptedPathSecrets {
        for key in old.privateKeys.values {
          // Any context: the key must not fit whatever the context is.
          let pending = group.members[0].group.pending
          let next = try #require(pending).staged.epoch.context
          #expect(throws: MLSError.self) {
            try crypto.decrypt(
              ciphertext, privateKey: key, label: "UpdatePathNode", context: next.encoded())
          }
        }
      }
    }
  }

  @Test("RFC 9420 §12.1.2, §12.1.3: proposals by reference, also a leaver's own removal")
  func byReference() throws {
    var group = try TestGroup(5)
    let newcomer = try makeClient("newcomer", using: &group.random)
    let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let messages = [
      try group.members[1].group.proposeUpdate(using: &group.random),
      try group.members[2].group.proposeAdd(keyPackage.keyPackage, using: &group.random),
      try group.members[4].group.proposeRemove(group.members[4].group.ownLeaf, using: &group.random),
    ]
    let senders = [1, 2, 4]
    for (message, sender) in zip(messages, senders) {
      for (index, member) in group.members.enumerated() {
        let result = try member.process(message)
        #expect((result == .own) == (index == sender))
      }
    }
    #expect(group.members[0].group.pendingProposals.count == 3)
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    #expect(bundle.effect.updated == [group.members[1].group.ownLeaf])
    for (index, member) in group.members.enumerated() where index != 0 {
      #expect(
        try member.process(bundle.commit) == (index == 4 ? .removed(bundle.effect) : .commit(bundle.effect)))
    }
    try group.members[0].group.mergePendingCommit(at: noon)
    group.members.remove(at: 4)
    let joined = try MLSGroup.join(
      try #require(bundle.welcome), keyPackages: [keyPackage], client: newcomer)
    group.members.append(TestMember(newcomer, joined))
    try group.checkAgreement()
    try group.checkPrivateKeys()
    try group.update(by: 1)
    try group.checkAgreement()
  }

  // Rules: V410 V711
  @Test("RFC 9420 §8.4: a pre-shared key reaches the next epoch and the Welcome; who lacks it cannot follow")
  func preSharedKey() throws {
    var group = try TestGroup(3)
    let id = bytes("psk")
    func key() -> PreSharedKey { PreSharedKey(id: id, key: SymmetricKey(copying: [1, 2, 3])) }
    group.members[0].group.register(key())
    group.members[1].group.register(key())
    let proposal = try group.members[0].group.proposePreSharedKey(id: id, using: &group.random)
    for index in 1..<3 { _ = try group.members[index].process(proposal) }
    let newcomer = try makeClient("newcomer", using: &group.random)
    let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    #expect(throws: MLSError.proposals(.unknownPreSharedKey)) { try group.members[2].process(bundle.commit) }
    group.members[2].group.register(key())
    try group.deliver(bundle, from: 0)
    let welcome = try #require(bundle.welcome)
    #expect(throws: MLSError.welcome(.unknownPreSharedKey)) {
      _ = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: newcomer)
    }
    let joined = try MLSGroup.join(
      welcome, keyPackages: [keyPackage], client: newcomer, preSharedKeys: [key()])
    group.members.append(TestMember(newcomer, joined))
    try group.checkAgreement()
  }

  @Test("RFC 9420 §8.5: the exporter separates labels, contexts, lengths and epochs")
  func exporter() throws {
    var group = try TestGroup(2)
    func export(_ label: String, _ context: [UInt8], _ length: Int) throws -> [UInt8] {
      let key = try group.members[0].group.exportSecret(label: label, context: context, length: length)
      return [UInt8](key.span)
    }
    let base = try export("palbe call media key", [], 32)
    #expect(base.count == 32)
    #expect(try export("palbe call media key", [], 32) == base)
    #expect(try export("other", [], 32) != base)
    #expect(try export("palbe call media key", [0], 32) != base)
    #expect(try Array(export("palbe call media key", [], 16)) != Array(base.prefix(16)))
    #expect(try export("palbe call media key", [], 0).isEmpty)
    #expect(try export("palbe call media key", [], 8_160).count == 8_160)
    #expect(throws: MLSError.state(.exportTooLong)) { try export("x", [], 8_161) }
    #expect(throws: MLSError.state(.exportTooLong)) { try export("x", [], -1) }
    try group.update(by: 1)
    #expect(try export("palbe call media key", [], 32) != base)
  }

  @Test("RFC 9420 §17.1: suite 3 runs through the same engine")
  func chaCha() throws {
    var random = RandomSource(seed: 3)
    func client(_ name: String) throws -> MLSClient {
      try MLSClient(
        cipherSuite: .x25519ChaCha20Poly1305, credential: .basic(identity: bytes(name)), using: &random)
    }
    let alice = try client("alice")
    let bob = try client("bob")
    let keyPackage = try bob.makeKeyPackage(lifetime: day, using: &random)
    var alices = try MLSGroup.create(groupID: [1], client: alice, lifetime: day, using: &random)
    let bundle = try alices.add([keyPackage.keyPackage], at: noon, using: &random)
    try alices.mergePendingCommit(at: noon)
    var bobs = try MLSGroup.join(try #require(bundle.welcome), keyPackages: [keyPackage], client: bob)
    #expect(alices.epochAuthenticator == bobs.epochAuthenticator)
    let message = try alices.encrypt([5], using: &random)
    guard case .application(let received) = try bobs.process(message, at: noon) else {
      Issue.record("expected application data")
      return
    }
    #expect(received.data == [5])
  }
}
