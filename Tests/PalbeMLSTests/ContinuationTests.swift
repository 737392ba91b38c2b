import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

private struct Missing: Error {}

extension TestMember {
  /// The key, which must be there.
  func resumptionKey(epoch: UInt64? = nil) throws -> ResumptionKey {
    guard let key = group.resumptionKey(epoch: epoch) else { throw Missing() }
    return key
  }
}

extension ContinuedGroup {
  borrowing func invitation() throws -> MLSMessage {
    guard let welcome else { throw Missing() }
    return welcome
  }
}

@Suite("RFC 9420 §11.2, §11.3: groups that continue others")
struct ContinuationTests {
  /// Members of a closed group, each with a client of the next suite and a key package.
  private struct Closed {
    var group: TestGroup
    let parameters: ReInit
    var next: [(client: MLSClient, keyPackage: KeyPackageBundle)] = []

    init(_ count: Int, to suite: CipherSuite = .p256AES128GCM, extensions: [Extension] = []) throws {
      group = try TestGroup(count)
      try group.update(by: count - 1)
      parameters = ReInit(groupID: bytes("next"), cipherSuite: suite, extensions: extensions)
      let bundle = try group.members[0].group.commit(
        [.reInit(parameters)], path: false, at: noon, using: &group.random)
      try group.deliver(bundle, from: 0)
      for index in 0..<count {
        let client = try makeClient("member \(index)", suite: suite, using: &group.random)
        next.append((client, try client.makeKeyPackage(lifetime: day, using: &group.random)))
      }
    }

    mutating func found(by founder: Int) throws -> ContinuedGroup {
      let keyPackages = next.indices.filter { $0 != founder }.map { next[$0].keyPackage.keyPackage }
      return try group.members[founder].group.reInitialise(
        as: next[founder].client, with: keyPackages, lifetime: day, at: noon, using: &group.random)
    }

    func join(_ member: Int, _ welcome: MLSMessage, continuing: Bool = true) throws -> MLSGroup {
      let key = try group.members[member].resumptionKey()
      return try MLSGroup.join(
        try MLSMessage(decoding: welcome.encoded()), keyPackages: [next[member].keyPackage],
        client: next[member].client, resumptionKeys: [key], continuing: continuing ? key : nil)
    }
  }

  @Test(
    "§11.2: after a committed ReInit any member founds the next group, in another suite, and all others follow",
    arguments: [0, 1, 2])
  func reInit(founder: Int) throws {
    let required = Extension(
      type: .requiredCapabilities, data: RequiredCapabilities(credentials: [.basic]).encoded())
    var closed = try Closed(3, extensions: [required])
    #expect(closed.group.members[2].group.reInit == closed.parameters)
    let founded = try closed.found(by: founder)
    let welcome = try founded.invitation()
    var next = closed.group
    next.members = []
    next.members.append(TestMember(closed.next[founder].client, founded.take()))
    for index in 0..<3 where index != founder {
      next.members.append(
        TestMember(closed.next[index].client, try closed.join(index, welcome, continuing: index == 1)))
    }
    let context = next.members[1].group.context
    #expect(context.epoch == 1 && context.groupID == bytes("next"))
    #expect(context.cipherSuite == .p256AES128GCM && context.extensions == [required])
    try next.checkAgreement()
    try next.update(by: 2)
    try next.checkAgreement()
  }

  @Test(
    "§11.2: the old group still reads late messages, takes no more changes, and knows its own ReInit again")
  func closed() throws {
    var group = try TestGroup(2)
    let late = try group.members[1].group.encrypt([7], using: &group.random)
    let proposal = try group.members[1].group.proposeUpdate(using: &group.random)
    let parameters = ReInit(groupID: bytes("next"), cipherSuite: .x25519AES128GCM)
    let bundle = try group.members[0].group.commit(
      [.reInit(parameters)], path: false, at: noon, using: &group.random)
    #expect(bundle.effect.reInit == parameters, "a proposal that waits is left out: a ReInit stands alone")
    try group.deliver(bundle, from: 0)
    #expect(try group.members[0].process(bundle.commit) == .own)
    #expect(try group.members[1].process(bundle.commit) == .duplicate)
    guard case .application(let message) = try group.members[0].process(late) else {
      Issue.record("expected application data")
      return
    }
    #expect(message.data == [7])
    #expect(throws: MLSError.message(.staleProposal(epoch: 1))) { try group.members[0].process(proposal) }
    #expect(throws: MLSError.state(.reInitialised)) {
      _ = try group.members[0].group.encrypt([1], using: &group.random)
    }
  }

  // Rules: V714 V715 V716 V717 V718 V721
  @Test("§11.2: a Welcome that does not continue the group as the ReInit says is refused")
  func reInitRules() throws {
    var closed = try Closed(3)
    let old = try closed.group.members[1].resumptionKey()
    let policy = AnyCredentialAccepted()
    let founded = try closed.found(by: 0)
    let welcome = try founded.invitation()
    let group = founded.take()
    let tree = group.epoch.tree
    func refused(
      _ error: WelcomeError, _ key: ResumptionKey? = nil, sourceLocation: SourceLocation = #_sourceLocation,
      _ change: (inout GroupContext) -> Void = { _ in }
    ) {
      var context = group.context
      change(&context)
      #expect(throws: MLSError.welcome(error), sourceLocation: sourceLocation) {
        try MLSGroup.check(context, tree, continues: key ?? old, .reInit, policy)
      }
    }
    try MLSGroup.check(group.context, tree, continues: old, .reInit, policy)
    refused(.continuationNotInFirstEpoch(epoch: 2)) { $0.epoch = 2 }
    refused(.wrongReInitParameters) { $0.groupID = [1] }
    refused(.wrongReInitParameters) { $0.cipherSuite = .x25519AES128GCM }
    refused(.wrongReInitParameters) { $0.version = ProtocolVersion(rawValue: 2) }
    refused(.wrongReInitParameters) { $0.extensions = [Extension(type: .applicationID, data: [])] }
    let before = try closed.group.members[1].resumptionKey(epoch: 2)
    #expect(before.reInit == nil)
    refused(.continuesWithoutReInit, before)
    // Nobody may be missing, and nobody else may be there.
    let fewer = Array(closed.next[1...1]).map(\.keyPackage.keyPackage)
    #expect(throws: MLSError.welcome(.wrongMembers)) {
      _ = try closed.group.members[0].group.reInitialise(
        as: closed.next[0].client, with: fewer, lifetime: day, at: noon, using: &closed.group.random)
    }
    let stranger = try makeClient("stranger", suite: .p256AES128GCM, using: &closed.group.random)
    let strange = try stranger.makeKeyPackage(lifetime: day, using: &closed.group.random).keyPackage
    #expect(throws: MLSError.welcome(.wrongMembers)) {
      _ = try closed.group.members[0].group.reInitialise(
        as: closed.next[0].client, with: fewer + [strange], lifetime: day, at: noon,
        using: &closed.group.random)
    }
    // Without the key the Welcome opens nothing; with another group in mind it is not taken.
    #expect(throws: MLSError.welcome(.unknownPreSharedKey)) {
      _ = try MLSGroup.join(
        welcome, keyPackages: [closed.next[1].keyPackage], client: closed.next[1].client)
    }
    let other = try TestGroup(1, seed: 5)
    let otherKey = try other.members[0].resumptionKey()
    #expect(throws: MLSError.welcome(.continuationMissing)) {
      _ = try MLSGroup.join(
        welcome, keyPackages: [closed.next[1].keyPackage], client: closed.next[1].client,
        resumptionKeys: [old], continuing: otherKey)
    }
    // Two keys of these usages in one Welcome.
    let joiner = closed.next[1]
    let key = try crafted(
      by: group, to: joiner.keyPackage, ids: [.reInit, .branch].map { old.id(usage: $0, nonce: [1]) })
    #expect(throws: MLSError.welcome(.severalContinuations)) {
      _ = try MLSGroup.join(
        key, keyPackages: [joiner.keyPackage], client: joiner.client, resumptionKeys: [old])
    }
  }

  /// A Welcome whose secrets name these keys; what comes after them does not matter.
  private func crafted(
    by group: borrowing MLSGroup, to keyPackage: KeyPackageBundle, ids: [PreSharedKeyID]
  ) throws -> Welcome {
    var random = RandomSource(seed: 3)
    let secrets = GroupSecrets(
      joinerSecret: .zeros(group.crypto.hashByteCount), pathSecret: nil, preSharedKeys: ids)
    return Welcome(
      cipherSuite: group.crypto.suite,
      secrets: [
        EncryptedGroupSecrets(
          newMember: keyPackage.reference,
          encryptedGroupSecrets: try group.crypto.encrypt(
            secrets.encoded(), to: keyPackage.keyPackage.initKey, label: "Welcome", context: [1],
            using: &random))
      ], encryptedGroupInfo: [1])
  }

  @Test("§11.2: only a committed ReInit is followed, by a client of its suite")
  func states() throws {
    var group = try TestGroup(2)
    #expect(throws: MLSError.state(.notReInitialised)) {
      _ = try group.members[0].group.reInitialise(
        as: group.members[0].client, with: [], lifetime: day, at: noon, using: &group.random)
    }
    var closed = try Closed(2)
    let wrong = closed.group.members[0].client
    #expect(throws: MLSError.state(.clientOfOtherSuite)) {
      _ = try closed.group.members[0].group.reInitialise(
        as: wrong, with: [], lifetime: day, at: noon, using: &closed.group.random)
    }
    let version = ProtocolVersion(rawValue: 2)
    try group.deliver(
      try group.members[0].group.commit(
        [.reInit(ReInit(groupID: [1], version: version, cipherSuite: .p256AES128GCM))], at: noon,
        using: &group.random), from: 0)
    #expect(throws: MLSError.state(.versionNotSupported(version))) {
      _ = try group.members[0].group.reInitialise(
        as: wrong, with: [], lifetime: day, at: noon, using: &group.random)
    }
  }

  // Rules: V718 V719 V720
  @Test("§11.3: some members branch off; others than members are not taken along")
  func branch() throws {
    var group = try TestGroup(4)
    try group.update(by: 2)
    let partner = group.members[2]
    let keyPackage = try partner.client.makeKeyPackage(lifetime: day, using: &group.random)
    let founded = try group.members[0].group.branch(
      groupID: bytes("branch"), with: [keyPackage.keyPackage], lifetime: day, at: noon, using: &group.random)
    let welcome = try founded.invitation()
    let first = TestMember(group.members[0].client, founded.take())
    let key = try partner.resumptionKey()
    let second = TestMember(
      partner.client,
      try MLSGroup.join(
        welcome, keyPackages: [keyPackage], client: partner.client, continuing: key))
    var branch = group
    branch.members = [first, second]
    try branch.checkAgreement()
    try group.checkAgreement()

    let stranger = try makeClient("stranger", using: &group.random)
    let strange = try stranger.makeKeyPackage(lifetime: day, using: &group.random)
    #expect(throws: MLSError.welcome(.wrongMembers)) {
      _ = try group.members[0].group.branch(
        groupID: bytes("other"), with: [strange.keyPackage], lifetime: day, at: noon, using: &group.random)
    }
    let (context, tree) = (first.group.context, first.group.epoch.tree)
    var changed = context
    changed.cipherSuite = .p256AES128GCM
    #expect(throws: MLSError.welcome(.wrongBranchParameters)) {
      try MLSGroup.check(changed, tree, continues: key, .branch, AnyCredentialAccepted())
    }
    // The tree of an epoch is kept as long as its messages are.
    for _ in 0..<6 { try group.update(by: 1) }
    let forgotten = try partner.resumptionKey(epoch: key.epoch)
    #expect(forgotten.members == nil)
    #expect(throws: MLSError.welcome(.membersForgotten)) {
      try MLSGroup.check(context, tree, continues: forgotten, .branch, AnyCredentialAccepted())
    }
  }

  // Rules: V410
  @Test("§8.4: resumption keys of this and other groups, and external ones, in one commit and its Welcome")
  func resumptionKeys() throws {
    var group = try TestGroup(2)
    let early = group.members[0].group.epochNumber
    try group.update(by: 0)
    let other = try TestGroup(1, seed: 8)
    other.members[0].group = try MLSGroup.create(
      groupID: bytes("other"), client: other.members[0].client, lifetime: day, using: &group.random)
    let foreign = try other.members[0].resumptionKey()
    #expect(throws: MLSError.proposals(.unknownPreSharedKey)) {
      _ = try group.members[0].group.preSharedKeyProposal(
        resumptionOf: foreign.groupID, epoch: foreign.epoch, using: &group.random)
    }
    func external() -> PreSharedKey { PreSharedKey(id: [1], key: SymmetricKey(copying: [5, 5])) }
    for member in group.members {
      member.group.register(external())
      member.group.register(foreign)
    }
    let first = group.members[0]
    let list = [
      try first.group.preSharedKeyProposal(epoch: early, using: &group.random),
      try first.group.preSharedKeyProposal(
        resumptionOf: foreign.groupID, epoch: foreign.epoch, using: &group.random),
      try first.group.preSharedKeyProposal(id: [1], using: &group.random),
    ]
    let newcomer = try makeClient("newcomer", using: &group.random)
    let keyPackage = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try first.group.commit(
      list + [.add(keyPackage.keyPackage)], at: noon, using: &group.random)
    let own = try group.members[1].resumptionKey(epoch: early)
    try group.deliver(bundle, from: 0)
    let welcome = try #require(bundle.welcome)
    // Found through the client's other groups; an array is such a source, too.
    struct Groups: ResumptionKeySource {
      let keys: [ResumptionKey]
      func resumptionKey(groupID: [UInt8], epoch: UInt64) -> ResumptionKey? {
        keys.first { $0.groupID == groupID && $0.epoch == epoch }
      }
    }
    group.members.append(
      TestMember(
        newcomer,
        try MLSGroup.join(
          welcome, keyPackages: [keyPackage], client: newcomer, preSharedKeys: [external()],
          resumptionKeys: Groups(keys: [own, foreign]))))
    try group.checkAgreement()
  }

  @Test("§12.4.3.2: who lost its place proves by a resumption key that it had one")
  func externalResumption() throws {
    var group = try TestGroup(3)
    let lost = group.members[2]
    let key = try lost.resumptionKey()
    try group.update(by: 0)
    let join = try MLSGroup.joinExternally(
      try group.members[0].group.groupInfo(), client: lost.client, resumptionKeys: [key],
      using: &group.random)
    let commit = join.commit
    for index in 0..<2 { _ = try group.members[index].process(commit) }
    group.members[2] = TestMember(lost.client, join.accepted())
    try group.checkAgreement()
    try group.remove([2], by: 0)
    let gone = lost.group.isActive
    #expect(gone, "the old membership never heard of it")
  }
}
