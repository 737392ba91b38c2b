import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

/// Changes one byte of a message.
func flip(_ message: MLSMessage, at place: Int) -> [UInt8] {
  var bytes = message.encoded()
  bytes[place] ^= 1
  return bytes
}

@Suite("e2ee §3.3, §6: where other engines fail")
struct RobustnessTests {
  private func expectData(_ data: [UInt8], _ result: ProcessedMessage) {
    guard case .application(let message) = result else {
      Issue.record("expected application data, got \(result)")
      return
    }
    #expect(message.data == data)
  }

  @Test("e2ee 3.3: a tampered copy, whichever byte, does not cost the genuine message")
  func tampered() throws {
    var group = try TestGroup(2)
    let message = try group.members[0].group.encrypt([1, 2, 3], using: &group.random)
    let receiver = group.members[1]
    for place in message.encoded().indices {
      #expect(throws: MLSError.self) { try receiver.group.process(flip(message, at: place), at: noon) }
    }
    expectData([1, 2, 3], try receiver.process(message))
  }

  // Rules: V507
  @Test("e2ee 3.3: a member who forges another's message is refused and burns nothing")
  func forgedByMember() throws {
    var group = try TestGroup(3)
    let genuine = try group.members[0].group.encrypt([1], using: &group.random)
    // Member 1 knows the keys that member 0 sends with, but not its signature key.
    let insider = group.members[1].group.epoch
    var keys = insider.keys
    let content = FramedContent(
      groupID: insider.context.groupID, epoch: insider.context.epoch, sender: .member(LeafIndex(0)),
      authenticatedData: [], content: .application([6, 6, 6]))
    let signature = try Framing.sign(
      content, as: .privateMessage, context: insider.contextBytes, key: group.members[1].client.signatureKey,
      crypto: insider.tree.crypto)
    let forged = try keys.encrypt(
      AuthenticatedContent(
        wireFormat: .privateMessage, content: content,
        authentication: ContentAuthentication(signature: signature)),
      from: LeafIndex(0), padding: .none, crypto: insider.tree.crypto, using: &group.random)
    let receiver = group.members[2]
    #expect(throws: MLSError.message(.invalidSignature)) { try receiver.process(.privateMessage(forged)) }
    expectData([1], try receiver.process(genuine))
  }

  // Rules: V001
  @Test("e2ee 3.3: bytes after a message are refused")
  func trailing() throws {
    var group = try TestGroup(2)
    let message = try group.members[0].group.encrypt([1], using: &group.random)
    #expect(throws: MLSError.malformed(.trailing(count: 1))) {
      try group.members[1].group.process(message.encoded() + [0], at: noon)
    }
  }

  @Test("e2ee 6.1: messages in any order, gaps filled late, each once")
  func disorder() throws {
    var group = try TestGroup(2)
    let messages = try (0..<20).map { index in
      try group.members[0].group.encrypt([UInt8(index)], using: &group.random)
    }
    var order = Array(0..<20)
    var random = RandomSource(seed: 5)
    order.shuffle(using: &random)
    for index in order { expectData([UInt8(index)], try group.members[1].process(messages[index])) }
    for message in messages { #expect(try group.members[1].process(message) == .duplicate) }
  }

  // Rules: V513
  @Test("e2ee 3.3: a message too far ahead is refused; the next one is read")
  func farAhead() throws {
    var configuration = MLSConfiguration()
    configuration.ratchetLimits = RatchetLimits(maximumForwardDistance: 8, maximumSkippedKeys: 8)
    var group = try TestGroup(2, configuration)
    let messages = try (0..<10).map { index in
      try group.members[0].group.encrypt([UInt8(index)], using: &group.random)
    }
    #expect(throws: MLSError.message(.generationTooFarAhead(9))) {
      try group.members[1].process(messages[9])
    }
    expectData([8], try group.members[1].process(messages[8]))
    expectData([9], try group.members[1].process(messages[9]))
    expectData([1], try group.members[1].process(messages[1]))
  }

  // Rules: V502
  @Test("e2ee 6.5: the last five epochs stay readable, an older one is stale, a time limit holds")
  func pastEpochs() throws {
    var group = try TestGroup(2)
    var late: [MLSMessage] = []
    for epoch in 0..<7 {
      late.append(try group.members[0].group.encrypt([UInt8(epoch)], using: &group.random))
      try group.update(by: epoch % 2)
    }
    for index in 0..<2 {
      #expect(throws: MLSError.message(.staleMessage(epoch: UInt64(index + 1)))) {
        try group.members[1].process(late[index])
      }
    }
    for index in 2..<6 { expectData([UInt8(index)], try group.members[1].process(late[index])) }
    #expect(try group.members[0].process(late[6]) == .own)
    let tooLate = noon + MLSConfiguration().pastEpochSeconds + 1
    #expect(throws: MLSError.message(.staleMessage(epoch: 7))) {
      try group.members[1].process(late[6], at: tooLate)
    }
  }

  // Rules: V501 V503 V504 V516
  @Test("e2ee 6.20: future, stale, duplicate, foreign and own are told apart")
  func distinctions() throws {
    var group = try TestGroup(3)
    let epoch = group.members[0].group.epochNumber
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    try group.members[0].group.mergePendingCommit(at: noon)
    let early = try group.members[0].group.encrypt([1], using: &group.random)
    #expect(throws: MLSError.message(.futureEpoch(epoch: epoch + 1))) {
      try group.members[1].process(early)
    }
    #expect(try group.members[1].process(bundle.commit) == .commit(bundle.effect))
    expectData([1], try group.members[1].process(early))
    #expect(try group.members[1].process(bundle.commit) == .duplicate)
    let competing = try group.members[2].group.commit(at: noon, using: &group.random)
    #expect(throws: MLSError.message(.staleCommit(epoch: epoch))) {
      try group.members[1].process(competing.commit)
    }
    #expect(try group.members[0].process(bundle.commit) == .own)
    var other = try TestGroup(1, seed: 9)
    let foreign = try MLSGroup.create(
      groupID: [1], client: other.members[0].client, lifetime: day, using: &other.random)
    other.members[0].group = foreign
    let message = try other.members[0].group.encrypt([1], using: &other.random)
    #expect(throws: MLSError.message(.wrongGroup)) { try group.members[1].process(message) }
    let keyPackage = try other.members[0].client.makeKeyPackage(lifetime: day, using: &other.random)
    #expect(throws: MLSError.message(.notAGroupMessage)) {
      try group.members[1].process(keyPackage.message)
    }
  }

  // Rules: V603
  @Test("e2ee 6.16: a pending commit can be cleared, replaced, and overtaken by another's")
  func pendingCommit() throws {
    var group = try TestGroup(3)
    let first = try group.members[0].group.commit(at: noon, using: &group.random)
    #expect(throws: MLSError.state(.commitPending)) {
      _ = try group.members[0].group.commit(at: noon, using: &group.random)
    }
    group.members[0].group.clearPendingCommit()
    #expect(throws: MLSError.state(.noCommitPending)) {
      _ = try group.members[0].group.mergePendingCommit(at: noon)
    }
    let message = try group.members[0].group.encrypt([4], using: &group.random)
    expectData([4], try group.members[1].process(message))
    #expect(throws: MLSError.commit(.ownCommitNotPending)) { try group.members[0].process(first.commit) }
    // Both commit; the server takes member 1's.
    _ = try group.members[0].group.commit(at: noon, using: &group.random)
    let winner = try group.members[1].group.commit(at: noon, using: &group.random)
    try group.deliver(winner, from: 1)
    let waits = group.members[0].group.hasPendingCommit
    #expect(!waits)
    try group.checkAgreement()
    try group.update(by: 0)
    try group.checkAgreement()
  }

  // Rules: V401
  @Test("A commit that names a proposal not seen yet is refused, and accepted once the proposal came")
  func missingProposal() throws {
    var group = try TestGroup(3)
    let proposal = try group.members[1].group.proposeUpdate(using: &group.random)
    _ = try group.members[0].process(proposal)
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    #expect(throws: MLSError.proposals(.unknownReference)) { try group.members[2].process(bundle.commit) }
    _ = try group.members[2].process(proposal)
    try group.deliver(bundle, from: 0)
    try group.checkAgreement()
  }

  @Test(
    "Any changed byte of a commit is refused, and the genuine one is still accepted",
    arguments: [true, false])
  func tamperedCommit(isPublic: Bool) throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = isPublic ? .publicMessage : .privateMessage
    var group = try TestGroup(3, configuration)
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    let receiver = group.members[1]
    let before = receiver.group.epochAuthenticator
    for place in bundle.commit.encoded().indices {
      #expect(throws: MLSError.self) {
        try receiver.group.process(flip(bundle.commit, at: place), at: noon)
      }
    }
    #expect(receiver.group.epochAuthenticator == before)
    try group.deliver(bundle, from: 0)
    try group.checkAgreement()
  }

  // Rules: V509
  @Test("RFC 9420 §6.2: application data in a PublicMessage is refused")
  func publicApplication() throws {
    let group = try TestGroup(2)
    let epoch = group.members[0].group.epoch
    let content = FramedContent(
      groupID: epoch.context.groupID, epoch: epoch.context.epoch, sender: .member(LeafIndex(0)),
      authenticatedData: [], content: .application([1]))
    let signature = try Framing.sign(
      content, as: .publicMessage, context: epoch.contextBytes, key: group.members[0].client.signatureKey,
      crypto: epoch.tree.crypto)
    let message = Framing.publicMessage(
      AuthenticatedContent(
        wireFormat: .publicMessage, content: content,
        authentication: ContentAuthentication(signature: signature)),
      context: epoch.contextBytes, membershipKey: epoch.secrets.membershipKey, crypto: epoch.tree.crypto)
    #expect(throws: MLSError.message(.publicApplicationData)) {
      try group.members[1].process(.publicMessage(message))
    }
  }

  // Rules: V701
  @Test("RFC 9420 §12.4.3.1: a Welcome is refused by others, and when any byte is changed")
  func welcome() throws {
    var group = try TestGroup(2)
    let client = try makeClient("late", using: &group.random)
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let unused = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    let welcome = try #require(bundle.welcome)
    #expect(throws: MLSError.welcome(.noKeyPackage)) {
      _ = try MLSGroup.join(welcome, keyPackages: [unused], client: client)
    }
    for place in stride(from: 0, to: welcome.encoded().count, by: 7) {
      #expect(throws: (any Error).self) {
        let changed = try MLSMessage(decoding: flip(welcome, at: place))
        _ = try MLSGroup.join(changed, keyPackages: [keyPackage], client: client)
      }
    }
    let joined = try MLSGroup.join(welcome, keyPackages: [unused, keyPackage], client: client)
    #expect(joined.epochNumber == 2)
  }

  // Rules: V203
  @Test("A bad proposal of one member does not keep the group from changing")
  func badProposal() throws {
    var group = try TestGroup(4)
    let client = try makeClient("twice", using: &group.random)
    let first = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let second = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let proposals = [
      try group.members[1].group.proposeAdd(first.keyPackage, using: &group.random),
      // The same client again: each is right alone, both together are not.
      try group.members[2].group.proposeAdd(second.keyPackage, using: &group.random),
      try group.members[3].group.proposeUpdate(using: &group.random),
    ]
    for proposal in proposals { for member in group.members { _ = try member.process(proposal) } }
    let bundle = try group.members[0].group.commit(at: noon, using: &group.random)
    #expect(bundle.effect.added.count == 1)
    #expect(bundle.effect.updated.count == 1)
    try group.deliver(bundle, from: 0)
    // A key package whose signature is wrong is not even kept.
    var broken = second.keyPackage
    broken.signature[0] ^= 1
    #expect(throws: MLSError.keyPackage(.invalidSignature)) {
      _ = try group.members[1].group.proposeAdd(broken, using: &group.random)
    }
  }

  @Test("Item 3: proposals left out of our own commits are still found when another member commits them")
  func setAside() throws {
    var group = try TestGroup(4)
    let receiver = group.members[1]
    let proposal = try group.members[0].group.proposeRemove(LeafIndex(3), using: &group.random)
    for member in group.members.dropFirst() { _ = try member.process(proposal) }
    let own = try receiver.group.proposeUpdate(using: &group.random)
    for member in group.members where member !== receiver { _ = try member.process(own) }
    receiver.group.clearPendingProposals()
    #expect(receiver.group.pendingProposals.isEmpty)
    // None of them is in a commit of its own.
    let mine = try receiver.group.commit(at: noon, using: &group.random)
    #expect(mine.effect.removed.isEmpty && mine.effect.updated.isEmpty)
    receiver.group.clearPendingCommit()
    // But in another member's they are known.
    let bundle = try group.members[2].group.commit(at: noon, using: &group.random)
    #expect(bundle.effect.removed == [LeafIndex(3)] && bundle.effect.updated == [LeafIndex(1)])
    guard case .commit(let effect) = try receiver.process(bundle.commit) else {
      Issue.record("expected a commit")
      return
    }
    #expect(effect.removed == [LeafIndex(3)])
    try group.members[2].group.mergePendingCommit(at: noon)
    #expect(receiver.group.epochAuthenticator == group.members[2].group.epochAuthenticator)
  }

  @Test("Item 4: the key of a commit is gone once it was processed, and before that it can be read again")
  func commitKey() throws {
    var group = try TestGroup(3)
    let receiver = group.members[1]
    let proposal = try group.members[0].group.proposeUpdate(using: &group.random)
    for member in group.members.dropFirst() where member !== receiver { _ = try member.process(proposal) }
    let bundle = try group.members[2].group.commit(at: noon, using: &group.random)
    #expect(throws: MLSError.proposals(.unknownReference)) { try receiver.process(bundle.commit) }
    _ = try receiver.process(proposal)
    _ = try receiver.process(bundle.commit)
    guard case .privateMessage(let message) = bundle.commit, var keys = receiver.group.past.last?.keys else {
      Issue.record("expected an encrypted commit and a past epoch")
      return
    }
    let crypto = receiver.group.crypto
    let sender = try keys.sender(of: message, crypto: crypto)
    var failure: MLSError?
    do throws(MLSError) {
      _ = try keys.decrypt(message, from: sender, at: noon, limits: RatchetLimits(), crypto: crypto)
    } catch { failure = error }
    #expect(failure == .message(.generationUsed(sender.generation)))
  }

  @Test("RFC 9420 §12.1.8.2: a stranger's wish to be added is refused unless the application allows it")
  func strangersWish() throws {
    var group = try TestGroup(2)
    let stranger = try makeClient("stranger", using: &group.random)
    let keyPackage = try stranger.makeKeyPackage(lifetime: day, using: &group.random).keyPackage
    let wish = try stranger.joinProposal(
      keyPackage, groupID: group.members[0].group.groupID, epoch: group.members[0].group.epochNumber)
    for member in group.members {
      #expect(throws: MLSError.proposals(.notAllowedForSender(.add))) { try member.process(wish) }
    }
    #expect(group.members[0].group.pendingProposals.isEmpty)
  }

  @Test("RFC 9420 §12.4.3.2: a stranger's external commit does not remove a member, whatever its keys say")
  func strangersCommit() throws {
    struct Careless: CredentialPolicy {
      func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool { true }
      func accepts(_ presented: PresentedCredential, asSuccessorOf old: Member) -> Bool { true }
    }
    var group = try TestGroup(3)
    var configuration = MLSConfiguration()
    configuration.credentialPolicy = Careless()
    let stranger = try makeClient("stranger", configuration, using: &group.random)
    let join = try MLSGroup.joinExternally(
      try group.members[0].group.groupInfo(), client: stranger, replacing: LeafIndex(1),
      using: &group.random)
    for member in group.members {
      #expect(throws: MLSError.leafNode(.successorRefused)) { try member.process(join.commit) }
      let isActive = member.group.isActive
      #expect(isActive)
    }
  }
}
