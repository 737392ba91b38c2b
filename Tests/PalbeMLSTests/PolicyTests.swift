import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("What an application sets")
struct PolicyTests {
  @Test("RFC 9420 §6.3.1: padding by multiples, powers of two and buckets hides lengths")
  func padding() throws {
    func padded(_ policy: PaddingPolicy, _ count: Int) -> Int { count + policy.padding(for: count) }
    #expect(padded(.none, 100) == 100)
    #expect(padded(.multiple(of: 64), 100) == 128 && padded(.multiple(of: 64), 128) == 128)
    #expect(padded(.multiple(of: 0), 5) == 5 && padded(.multiple(of: -3), 5) == 5)
    #expect(padded(.powerOfTwo(minimum: 256), 100) == 256)
    #expect(padded(.powerOfTwo(minimum: 256), 257) == 512 && padded(.powerOfTwo(minimum: 0), 1) == 1)
    #expect(padded(.powerOfTwo(minimum: Int.max), 3) == 1 << 29)
    #expect(padded(.powerOfTwo(minimum: 1), 1 << 29 + 1) == 1 << 29 + 1)
    #expect(padded(.buckets([1_000, 200, 300]), 201) == 300)
    #expect(padded(.buckets([1_000, 200]), 2_001) == 3_000)
    #expect(padded(.buckets([]), 7) == 7 && padded(.buckets([-1, 0]), 7) == 7)
    for policy in [PaddingPolicy.powerOfTwo(minimum: 512), .buckets([512]), .multiple(of: 512)] {
      var configuration = MLSConfiguration()
      configuration.padding = policy
      var group = try TestGroup(2, configuration)
      var lengths: Set<Int> = []
      for count in [0, 1, 100, 400] {
        let message = try group.members[0].group.encrypt(
          [UInt8](repeating: 7, count: count), using: &group.random)
        lengths.insert(message.encoded().count)
        guard case .application(let received) = try group.members[1].process(message) else {
          Issue.record("expected application data")
          return
        }
        #expect(received.data.count == count)
      }
      #expect(lengths.count == 1)
      try group.update(by: 1)
    }
  }

  // Rules: V121
  @Test("RFC 9420 §7.2: a key package whose whole lifetime is too long does not come in")
  func maximumLifetime() throws {
    var group = try TestGroup(2)
    let client = try makeClient("long", using: &group.random)
    let year: UInt64 = 366 * 86_400
    for (length, isAccepted) in [(year, true), (year + 1, false)] {
      let lifetime = Lifetime(notBefore: noon - 1, notAfter: noon - 1 + length)
      let keyPackage = try client.makeKeyPackage(lifetime: lifetime, using: &group.random).keyPackage
      if isAccepted {
        _ = try group.members[0].group.add([keyPackage], at: noon, using: &group.random)
        group.members[0].group.clearPendingCommit()
        continue
      }
      #expect(throws: MLSError.leafNode(.lifetimeTooLong(seconds: length))) {
        _ = try group.members[0].group.add([keyPackage], at: noon, using: &group.random)
      }
      // A member without that rule may commit it; the others stay.
      let proposal = try group.members[0].group.proposeAdd(keyPackage, using: &group.random)
      _ = try group.members[1].process(proposal)
      let commit = try group.members[1].group.commit(at: noon, using: &group.random)
      #expect(commit.effect.added.isEmpty, "a bad proposal is left out")
    }
    let leaf = try client.makeLeaf(
      source: .keyPackage(Lifetime(notBefore: 5, notAfter: 1)), using: &group.random
    ).leaf
    #expect(throws: MLSError.leafNode(.notYetValid(notBefore: 5))) {
      try LeafValidation.checkLifetime(leaf, at: 0, maximum: 10)
    }
  }

  @Test(
    "RFC 9420 §6: authenticated data travels in clear with every kind of message, and a change is noticed",
    arguments: [MLSConfiguration.HandshakeFormat.publicMessage, .privateMessage])
  func authenticatedData(format: MLSConfiguration.HandshakeFormat) throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = format
    var group = try TestGroup(2, configuration)
    let sender = group.members[0]
    let messages = [
      try sender.group.encrypt([1], authenticatedData: [1, 1], using: &group.random),
      try sender.group.proposeUpdate(authenticatedData: [2, 2], using: &group.random),
      try sender.group.propose(.remove(LeafIndex(1)), authenticatedData: [3, 3], using: &group.random),
      try sender.group.commit(authenticatedData: [4, 4], at: noon, using: &group.random).commit,
    ]
    for (index, message) in messages.enumerated() {
      let data = [UInt8](repeating: UInt8(index + 1), count: 2)
      #expect(message.authenticatedData == data)
      #expect(message.groupID == bytes("group") && message.epoch == 1)
      #expect(message.contentType == [.application, .proposal, .proposal, .commit][index])
      var changed = message
      switch message {
      case .publicMessage(var content):
        content.content.authenticatedData = [9]
        changed = .publicMessage(content)
      case .privateMessage(var content):
        content.authenticatedData = [9]
        changed = .privateMessage(content)
      default: Issue.record("expected a message to the group")
      }
      #expect(throws: MLSError.self) { try group.members[1].process(changed) }
      if case .commit = message.contentType { group.members[1].group.clearPendingProposals() }
    }
    let keyPackage = try sender.client.makeKeyPackage(lifetime: day, using: &group.random).message
    #expect(keyPackage.authenticatedData == nil && keyPackage.epoch == nil && keyPackage.contentType == nil)
  }

  @Test("RFC 9420 §8.5: an exporter's label is any bytes; as text it is its UTF-8")
  func exporterLabel() throws {
    let group = try TestGroup(2).members
    func export(_ label: [UInt8], _ member: Int = 0) throws -> [UInt8] {
      let secret = try group[member].group.exportSecret(label: label, context: [], length: 32)
      return [UInt8](secret.span)
    }
    let text = try group[0].group.exportSecret(label: "é", context: [], length: 32)
    #expect(try export([0xc3, 0xa9]) == [UInt8](text.span))
    #expect(try export([0xff, 0]) == export([0xff, 0], 1))
    #expect(try export([0xff, 0]) != export([0xfe, 0]))
  }

  @Test("RFC 9420 §12.1.8: a server removes somebody, a newcomer asks to come in, and a member commits both")
  func outsiders() throws {
    var configuration = MLSConfiguration()
    configuration.acceptsJoinProposals = true
    var group = try TestGroup(3, configuration)
    let server = try makeClient("server", using: &group.random)
    let senders = ExternalSenderList([
      ExternalSender(signatureKey: server.signaturePublicKey, credential: server.credential)
    ])
    try group.deliver(
      try group.members[0].group.commit(
        [.groupContextExtensions([Extension(type: .externalSenders, data: senders.encoded())])], at: noon,
        using: &group.random), from: 0)
    let (id, epoch) = (group.members[0].group.groupID, group.members[0].group.epochNumber)
    let newcomer = try makeClient("newcomer", using: &group.random)
    let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let messages = [
      try server.externalProposal(.remove(LeafIndex(2)), senderIndex: 0, groupID: id, epoch: epoch),
      try newcomer.joinProposal(
        keyPackage.keyPackage, groupID: id, epoch: epoch, authenticatedData: [1]),
    ]
    for message in messages {
      for member in group.members {
        _ = try member.process(message)
        #expect(try member.process(message) == .duplicate)
      }
    }
    let commit = try group.members[1].group.commit(at: noon, using: &group.random)
    #expect(commit.effect.removed == [LeafIndex(2)] && commit.effect.added == [LeafIndex(2)])
    #expect(try group.members[0].process(commit.commit) == .commit(commit.effect))
    #expect(try group.members[2].process(commit.commit) == .removed(commit.effect))
    try group.members[1].group.mergePendingCommit(at: noon)
    group.members[2] = TestMember(
      newcomer, try MLSGroup.join(try #require(commit.welcome), keyPackages: [keyPackage], client: newcomer))
    try group.checkAgreement()
    // An external sender may also ask for a ReInit or new extensions, but has no leaf to update.
    let leaf = try server.makeLeaf(source: .update, using: &group.random).leaf
    #expect(throws: MLSError.proposals(.notAllowedForSender(.update))) {
      _ = try server.externalProposal(.update(leaf), senderIndex: 0, groupID: id, epoch: epoch + 1)
    }
    #expect(throws: MLSError.proposals(.externalInitByMember)) {
      _ = try server.externalProposal(
        .externalInit(kemOutput: []), senderIndex: 0, groupID: id, epoch: epoch + 1)
    }
    let reInit = Proposal.reInit(ReInit(groupID: [1], cipherSuite: .x25519AES128GCM))
    let asked = try server.externalProposal(reInit, senderIndex: 0, groupID: id, epoch: epoch + 1)
    for member in group.members { _ = try member.process(asked) }
    let closing = try group.members[0].group.commit(path: false, at: noon, using: &group.random)
    #expect(closing.effect.reInit != nil)
  }

  @Test("RFC 9420 §12.1.3: who leaves proposes it; another commits it by reference; the leaver learns it")
  func leaving() throws {
    var group = try TestGroup(3)
    let leaver = group.members[2]
    let message = try leaver.group.proposeLeave(using: &group.random)
    for index in 0..<2 { _ = try group.members[index].process(message) }
    // The leaver's own commit cannot hold it, and goes on without.
    let own = try leaver.group.commit(at: noon, using: &group.random)
    #expect(own.effect.removed.isEmpty)
    let commit = try group.members[1].group.commit(at: noon, using: &group.random)
    #expect(commit.effect.removed == [LeafIndex(2)])
    _ = try group.members[0].process(commit.commit)
    #expect(try leaver.process(commit.commit) == .removed(commit.effect))
    let isOver = !leaver.group.isActive && !leaver.group.hasPendingCommit
    #expect(isOver)
    let keys = leaver.group.epoch.privateKeys
    #expect(keys.isEmpty)
  }
}
