import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §12.4.3.2: external commits, sent")
struct ExternalJoinTests {
  private func read(_ message: MLSMessage) throws -> MLSMessage {
    try MLSMessage(decoding: message.encoded())
  }

  @Test(
    "Somebody outside joins by the published GroupInfo, in every suite",
    arguments: [1, 2, 3, 4, 5, 6, 7].map(CipherSuite.init(rawValue:)))
  func join(suite: CipherSuite) throws {
    var group = try TestGroup(3, suite: suite)
    try group.update(by: 1)
    let outsider = try makeClient("outsider", suite: suite, using: &group.random)
    let published = try read(try group.members[2].group.groupInfo())
    let join = try MLSGroup.joinExternally(published, client: outsider, using: &group.random)
    #expect(join.effect.committer == LeafIndex(3))
    let commit = join.commit
    let effect = join.effect
    let joined = TestMember(outsider, join.accepted())
    for member in group.members { #expect(try member.process(commit) == .commit(effect)) }
    // The echo of the own commit, which the server sends to the new member as well.
    #expect(try joined.process(commit) == .own)
    group.members.append(joined)
    try group.checkAgreement()
    try group.update(by: 3)
    try group.checkAgreement()
    try group.checkPrivateKeys()
  }

  // Rules: V705
  @Test("A member that lost its state comes back: its old leaf goes in the same commit")
  func resync() throws {
    var group = try TestGroup(4)
    let lost = group.members[1]
    let oldLeaf = lost.group.ownLeaf
    let published = try group.members[0].group.groupInfo(ratchetTree: false)
    let tree = group.members[0].group.ratchetTree
    #expect(throws: MLSError.welcome(.treeMissing)) {
      _ = try MLSGroup.joinExternally(published, client: lost.client, using: &group.random)
    }
    let join = try MLSGroup.joinExternally(
      published, client: lost.client, ratchetTree: tree, using: &group.random)
    #expect(join.effect.removed == [oldLeaf])
    let commit = join.commit
    for index in [0, 2, 3] { _ = try group.members[index].process(commit) }
    guard case .removed = try lost.process(commit) else {
      Issue.record("expected the old membership to end")
      return
    }
    group.members[1] = TestMember(lost.client, join.accepted())
    try group.checkAgreement()
  }

  // Rules: V405
  @Test("A device with a new signing key replaces the leaf it names; a pre-shared key is mixed in")
  func replacing() throws {
    var group = try TestGroup(3)
    let key = SymmetricKey(copying: [1, 2, 3])
    for member in group.members { member.group.register(PreSharedKey(id: [9], key: key.copy())) }
    let fresh = try makeClient("member 2", using: &group.random)
    let join = try MLSGroup.joinExternally(
      try group.members[0].group.groupInfo(), client: fresh, replacing: LeafIndex(2),
      preSharedKeys: [PreSharedKey(id: [9], key: key.copy())], using: &group.random)
    let commit = join.commit
    _ = try group.members[0].process(commit)
    _ = try group.members[1].process(commit)
    group.members[2] = TestMember(fresh, join.accepted())
    try group.checkAgreement()
    #expect(throws: MLSError.proposals(.removesNobody(LeafIndex(7)))) {
      _ = try MLSGroup.joinExternally(
        try group.members[0].group.groupInfo(), client: fresh, replacing: LeafIndex(7), using: &group.random)
    }
  }

  // Rules: V504
  @Test(
    "e2ee 6.15: of two external commits for one epoch one is taken; the other's group never comes out")
  func race() throws {
    var group = try TestGroup(2)
    let published = try group.members[0].group.groupInfo()
    let first = try makeClient("first", using: &group.random)
    let second = try makeClient("second", using: &group.random)
    let winner = try MLSGroup.joinExternally(published, client: first, using: &group.random)
    let loser = try MLSGroup.joinExternally(published, client: second, using: &group.random)
    let (taken, refused) = (winner.commit, loser.commit)
    for member in group.members {
      _ = try member.process(taken)
      #expect(throws: MLSError.message(.staleCommit(epoch: 1))) { try member.process(refused) }
    }
    group.members.append(TestMember(first, winner.accepted()))
    try group.checkAgreement()
    _ = consume loser
  }

  @Test("A GroupInfo that was changed anywhere is refused")
  func tampered() throws {
    var group = try TestGroup(2)
    let outsider = try makeClient("outsider", using: &group.random)
    let published = try group.members[0].group.groupInfo().encoded()
    for place in stride(from: 0, to: published.count, by: 3) {
      var changed = published
      changed[place] ^= 1
      guard let message = try? MLSMessage(decoding: changed) else { continue }
      #expect(throws: MLSError.self) {
        _ = try MLSGroup.joinExternally(message, client: outsider, using: &group.random)
      }
    }
  }

  // Rules: V001 V108 V306 V516 V704 V706 V707 V712 V713
  @Test("RFC 9420 §12.4.3: each rule for a GroupInfo has its own error")
  func rules() throws {
    var group = try TestGroup(2)
    let outsider = try makeClient("outsider", using: &group.random)
    let member = group.members[0]
    guard case .groupInfo(let genuine) = try member.group.groupInfo() else {
      Issue.record("expected a GroupInfo")
      return
    }
    func refused(
      _ error: MLSError, sourceLocation: SourceLocation = #_sourceLocation,
      _ change: (inout GroupInfo) -> Void
    ) throws {
      var changed = genuine
      change(&changed)
      changed.signature = try member.client.crypto.sign(
        changed.toBeSigned, label: "GroupInfoTBS", key: member.client.signatureKey)
      #expect(throws: error, sourceLocation: sourceLocation) {
        _ = try MLSGroup.joinExternally(.groupInfo(changed), client: outsider, using: &group.random)
      }
    }
    try refused(.welcome(.externalPubMissing)) { $0.extensions.removeAll { $0.type == .externalPub } }
    try refused(.welcome(.externalPubMissing)) {
      $0.extensions[0].data = [32] + [UInt8](repeating: 0, count: 32)
    }
    try refused(.malformed(.trailing(count: 1))) { $0.extensions[0].data.append(0) }
    try refused(.welcome(.duplicateExtension)) { $0.extensions.append($0.extensions[0]) }
    try refused(.welcome(.wrongGroupInfo)) { $0.context.cipherSuite = .p256AES128GCM }
    try refused(.welcome(.unknownSigner)) { $0.signer = LeafIndex(2) }
    try refused(.welcome(.invalidSignature)) { $0.signer = LeafIndex(1) }
    try refused(.tree(.wrongTreeHash)) { $0.context.treeHash[0] ^= 1 }
    #expect(throws: MLSError.message(.notAGroupMessage)) {
      let keyPackage = try outsider.makeKeyPackage(lifetime: day, using: &group.random)
      _ = try MLSGroup.joinExternally(keyPackage.message, client: outsider, using: &group.random)
    }
    // What the members would refuse is not sent.
    let required = Extension(
      type: .requiredCapabilities,
      data: RequiredCapabilities(credentials: [CredentialType(rawValue: 0xff00)]).encoded())
    try refused(.leafNode(.requiredCredentialNotSupported(CredentialType(rawValue: 0xff00)))) {
      $0.context.extensions = [required]
    }
  }

  // Rules: V504
  @Test("A GroupInfo of an epoch that passed leads to a commit that members call stale")
  func stale() throws {
    var group = try TestGroup(2)
    let outsider = try makeClient("outsider", using: &group.random)
    let published = try group.members[0].group.groupInfo()
    try group.update(by: 0)
    let join = try MLSGroup.joinExternally(published, client: outsider, using: &group.random)
    let commit = join.commit
    #expect(throws: MLSError.message(.staleCommit(epoch: 1))) { try group.members[0].process(commit) }
    _ = consume join
  }

  /// The published GroupInfo with another context, signed again by the member that made it.
  private func resigned(
    _ group: TestGroup, _ change: (inout GroupContext) -> Void
  ) throws -> MLSMessage {
    let member = group.members[0]
    guard case .groupInfo(var info) = try member.group.groupInfo() else { throw MLSError.state(.nothingToDo) }
    change(&info.context)
    info.signature = try member.client.crypto.sign(
      info.toBeSigned, label: "GroupInfoTBS", key: member.client.signatureKey)
    return .groupInfo(info)
  }

  // Found by the fuzz target mls-welcome: the number of the next epoch trapped.
  @Test("No epoch follows the largest one: joining by its GroupInfo is refused, and so is a commit in it")
  func largestEpoch() throws {
    var group = try TestGroup(2)
    let info = try resigned(group) { $0.epoch = .max }
    let outsider = try makeClient("outsider", using: &group.random)
    expectRule("V605") {
      _ = try MLSGroup.joinExternally(info, client: outsider, using: &group.random)
    }
    let last = try resigned(group) { $0.epoch = .max - 1 }
    var joined = try MLSGroup.joinExternally(last, client: outsider, using: &group.random).accepted()
    #expect(joined.epochNumber == .max)
    expectRule("V605") { _ = try joined.commit(at: noon, using: &group.random) }
    _ = try joined.encrypt([1], using: &group.random)
  }

  // Found by the fuzz target mls-group-info: the join succeeded, and no commit did after it.
  @Test("A group whose external senders are no list cannot be joined")
  func malformedExternalSenders() throws {
    var group = try TestGroup(2)
    let info = try resigned(group) { $0.extensions = [Extension(type: .externalSenders, data: [7])] }
    let outsider = try makeClient("outsider", using: &group.random)
    expectRule("V001") {
      _ = try MLSGroup.joinExternally(info, client: outsider, using: &group.random)
    }
  }
}
