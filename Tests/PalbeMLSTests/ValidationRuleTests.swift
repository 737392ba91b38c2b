import PalbeCrypto
import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

/// Expects the error of one rule, by its number in docs/mls-validation.md.
func expectRule(
  _ number: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("\(number): accepted", sourceLocation: sourceLocation)
  } catch let error as MLSError {
    #expect(error.rule == number, "\(error)", sourceLocation: sourceLocation)
  } catch { Issue.record("\(number): \(error)", sourceLocation: sourceLocation) }
}

@Suite("docs/mls-validation.md: rules one by one")
struct ValidationRuleTests {
  private static let unknown = ExtensionType(rawValue: 0xff00)

  @Test("V0: bytes, primitives and suites")
  func bytes0() throws {
    var group = try TestGroup(2)
    expectRule("V001") { _ = try group.members[0].group.process([0, 1, 0], at: noon) }
    expectRule("V003") { _ = try SuiteCrypto(CipherSuite(rawValue: 0xff00)) }
    let crypto = group.members[0].client.crypto
    expectRule("V002") { _ = try crypto.publicKey(of: Secret(copying: [1])) }
    try group.update(by: 0)
  }

  @Test("V1: a leaf and what the group asks of it")
  func leaves() throws {
    var group = try TestGroup(2)
    let first = group.members[0]
    let leaf = try #require(first.group.epoch.tree[LeafIndex(1)])
    func rules(_ extensions: [Extension]) throws -> LeafValidation {
      try LeafValidation(
        crypto: first.client.crypto, policy: AnyCredentialAccepted(), groupID: first.group.groupID,
        extensions: extensions)
    }
    func required(_ value: RequiredCapabilities) -> [Extension] {
      [Extension(type: .requiredCapabilities, data: value.encoded())]
    }
    var forged = leaf
    forged.signature[0] ^= 1
    expectRule("V101") { try rules([]).check(forged, at: LeafIndex(1)) }
    expectRule("V106") {
      try rules(required(RequiredCapabilities(extensions: [Self.unknown]))).checkCapabilities(leaf)
    }
    expectRule("V107") {
      try rules(required(RequiredCapabilities(proposals: [ProposalType(rawValue: 0xff00)])))
        .checkCapabilities(leaf)
    }
    expectRule("V108") {
      try rules(required(RequiredCapabilities(credentials: [CredentialType(rawValue: 0xff00)])))
        .checkCapabilities(leaf)
    }
    expectRule("V111") { try rules([Extension(type: Self.unknown, data: [])]).checkCapabilities(leaf) }
    var index = MemberIndex()
    var other = leaf
    other.capabilities.credentials = [.x509]
    index.insert(leaf)
    index.insert(other)
    expectRule("V113") { try rules([]).checkAgainstMembers(leaf, index) }
    // An Update, and a commit's leaf, that keep their key.
    var same = leaf
    same.source = .update
    try group.members[1].client.sign(&same, groupID: first.group.groupID, at: LeafIndex(1))
    expectRule("V119") {
      _ = try AppliedProposals(
        [SentProposal(proposal: .update(same), sender: .member(LeafIndex(1)))], to: first.group.epoch,
        crypto: first.client.crypto, policy: AnyCredentialAccepted()
      ) { _ throws(MLSError) in }
    }
    try group.update(by: 1)
  }

  @Test("V3: a tree has a largest size")
  func size() throws {
    let tree = try TestGroup(3).members[0].group.epoch.tree
    _ = try RatchetTree(tree.wire, crypto: tree.crypto, maximumLeafCount: 4)
    expectRule("V305") { _ = try RatchetTree(tree.wire, crypto: tree.crypto, maximumLeafCount: 2) }
  }

  /// A commit or proposal of a member, signed and tagged, with whatever it holds.
  private func message(
    _ content: MessageContent, by member: TestMember, confirmationTag: [UInt8]? = nil
  ) throws -> MLSMessage {
    let epoch = member.group.epoch
    let framed = FramedContent(
      groupID: epoch.context.groupID, epoch: epoch.context.epoch, sender: .member(epoch.ownLeaf),
      authenticatedData: [], content: content)
    let signature = try Framing.sign(
      framed, as: .publicMessage, context: epoch.contextBytes, key: member.client.signatureKey,
      crypto: member.client.crypto)
    return .publicMessage(
      Framing.publicMessage(
        AuthenticatedContent(
          wireFormat: .publicMessage, content: framed,
          authentication: ContentAuthentication(signature: signature, confirmationTag: confirmationTag)),
        context: epoch.contextBytes, membershipKey: epoch.secrets.membershipKey,
        crypto: member.client.crypto))
  }

  @Test("V4: lists of proposals")
  func proposals() throws {
    var configuration = MLSConfiguration()
    configuration.maximumPendingProposals = 1
    var group = try TestGroup(3, configuration)
    let first = group.members[0]
    _ = try first.process(try group.members[1].group.proposeRemove(LeafIndex(2), using: &group.random))
    let second = try group.members[2].group.proposeUpdate(using: &group.random)
    expectRule("V420") { _ = try first.process(second) }
    let commit = Commit(proposals: [.reference(ProposalRef(bytes: [1, 2, 3]))], path: nil)
    expectRule("V401") {
      _ = try first.process(
        try message(.commit(commit), by: group.members[1], confirmationTag: [0]))
    }

    let outsider = try makeClient("outsider", using: &group.random)
    let join = try MLSGroup.joinExternally(
      try first.group.groupInfo(), client: outsider, using: &group.random)
    guard case .publicMessage(var changed) = join.commit, case .commit(var list) = changed.content.content
    else {
      Issue.record("expected a commit")
      return
    }
    list.proposals.append(.reference(ProposalRef(bytes: [1])))
    changed.content.content = .commit(list)
    changed.authentication.signature = try Framing.sign(
      changed.content, as: .publicMessage, context: first.group.epoch.contextBytes,
      key: outsider.signatureKey, crypto: outsider.crypto)
    expectRule("V419") { _ = try first.process(.publicMessage(changed)) }
    _ = consume join
  }

  @Test("V5: messages")
  func messages() throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var group = try TestGroup(3, configuration)
    let first = group.members[0]
    let proposal = try group.members[1].group.proposeUpdate(using: &group.random)
    guard case .publicMessage(var untagged) = proposal else { return }
    untagged.membershipTag?[0] ^= 1
    expectRule("V508") { _ = try first.process(.publicMessage(untagged)) }
    untagged.membershipTag = nil
    expectRule("V508") { _ = try first.process(.publicMessage(untagged)) }

    let application = try group.members[1].group.encrypt([1], using: &group.random)
    guard case .privateMessage(let genuine) = application else { return }
    var broken = genuine
    broken.ciphertext[broken.ciphertext.count - 1] ^= 1
    expectRule("V510") { _ = try first.process(.privateMessage(broken)) }
    broken = genuine
    broken.encryptedSenderData[0] ^= 1
    expectRule("V510") { _ = try first.process(.privateMessage(broken)) }
    expectRule("V511") { _ = try first.process(try padded(by: group.members[1], with: [0, 1])) }

    let crypto = first.client.crypto
    var ratchet = HashRatchet(Secret(copying: [1]), at: UInt32.max - 1)
    _ = try ratchet.next(crypto)
    expectRule("V514") { _ = try ratchet.next(crypto) }

    try group.update(by: 0)
    expectRule("V505") { _ = try first.process(proposal) }
  }

  /// An application message whose padding is not zero.
  private func padded(by member: TestMember, with padding: [UInt8]) throws -> MLSMessage {
    let epoch = member.group.epoch
    let crypto = member.client.crypto
    let content = FramedContent(
      groupID: epoch.context.groupID, epoch: epoch.context.epoch, sender: .member(epoch.ownLeaf),
      authenticatedData: [], content: .application([1]))
    let signature = try Framing.sign(
      content, as: .privateMessage, context: epoch.contextBytes, key: member.client.signatureKey,
      crypto: crypto)
    var plaintext = ByteWriter()
    content.content.encodeBody(into: &plaintext)
    ContentAuthentication(signature: signature).encode(into: &plaintext)
    plaintext.append(padding)
    var result = PrivateMessage(
      groupID: content.groupID, epoch: content.epoch, contentType: .application, authenticatedData: [],
      encryptedSenderData: [], ciphertext: [])
    var tree = epoch.keys.tree
    let (generation, key) = try tree.next(epoch.ownLeaf, .application, crypto: crypto)
    result.ciphertext = try crypto.seal(
      plaintext.bytes, key: key.key, nonce: [UInt8](key.nonce.span), authenticating: result.contentAAD)
    let senderKey = MessageKeys.senderDataKey(
      epoch.keys.senderData, ciphertext: result.ciphertext, crypto: crypto)
    let sender = MessageKeys.SenderData(
      leaf: epoch.ownLeaf, generation: generation, reuseGuard: [0, 0, 0, 0])
    result.encryptedSenderData = try crypto.seal(
      sender.encoded(), key: senderKey.key, nonce: [UInt8](senderKey.nonce.span),
      authenticating: result.senderDataAAD)
    return .privateMessage(result)
  }

  @Test("V6: commits")
  func commits() throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var group = try TestGroup(3, configuration)
    let first = group.members[0]
    let bare = Commit(proposals: [.proposal(.remove(LeafIndex(2)))], path: nil)
    expectRule("V601") {
      _ = try first.process(try message(.commit(bare), by: group.members[1], confirmationTag: [0]))
    }
    let bundle = try group.members[1].group.commit(at: noon, using: &group.random)
    guard case .publicMessage(let genuine) = bundle.commit else { return }
    let epoch = first.group.epoch
    var changed = genuine
    changed.authentication.confirmationTag?[0] ^= 1
    changed.membershipTag = first.client.crypto.mac(
      changed.toBeMACed(context: epoch.contextBytes), key: epoch.secrets.membershipKey)
    expectRule("V602") { _ = try first.process(.publicMessage(changed)) }
    expectRule("V604") { try MLSGroup.checkChanged(from: [1, 2], to: [1, 2]) }
    try MLSGroup.checkChanged(from: [1, 2], to: [1, 3])
    #expect(try first.process(bundle.commit) == .commit(bundle.effect))
  }

  @Test("V7: a Welcome, made by a member who breaks one rule at a time")
  func welcomes() throws {
    var group = try TestGroup(2)
    let before = group.members[0].group.epoch
    let joiner = try makeClient("joiner", using: &group.random)
    let bundle = try joiner.makeKeyPackage(lifetime: day, using: &group.random)
    let added = try group.members[0].group.add([bundle.keyPackage], at: noon, using: &group.random)
    try group.deliver(added, from: 0)
    let after = group.members[0].group.epoch
    let signer = group.members[0].client
    let crypto = signer.crypto
    var random = group.random

    func welcome(
      of epoch: EpochState, pathSecret: Secret? = nil, preSharedKeys: [PreSharedKeyID] = [],
      tag change: UInt8 = 0
    ) throws -> Welcome {
      let joinerSecret = Secret(byteCount: 32, using: &random)
      let schedule = KeySchedule(
        joinerSecret: joinerSecret, pskSecret: .zeros(32), context: epoch.contextBytes, crypto: crypto)
      var tag = crypto.mac(
        epoch.context.confirmedTranscriptHash, key: schedule.secrets.confirmationKey)
      tag[0] ^= change
      var groupInfo = GroupInfo(
        context: epoch.context,
        extensions: [Extension(type: .ratchetTree, data: epoch.tree.wire.encoded())],
        confirmationTag: tag, signer: epoch.ownLeaf)
      groupInfo.signature = try crypto.sign(
        groupInfo.toBeSigned, label: "GroupInfoTBS", key: signer.signatureKey)
      let key = KeySchedule.welcomeKey(schedule.welcomeSecret, crypto: crypto)
      let sealed = try crypto.seal(
        groupInfo.encoded(), key: key.key, nonce: [UInt8](key.nonce.span), authenticating: [])
      let secrets = GroupSecrets(
        joinerSecret: joinerSecret, pathSecret: pathSecret, preSharedKeys: preSharedKeys)
      return Welcome(
        cipherSuite: crypto.suite,
        secrets: [
          EncryptedGroupSecrets(
            newMember: bundle.reference,
            encryptedGroupSecrets: try crypto.encrypt(
              secrets.encoded(), to: bundle.keyPackage.initKey, label: "Welcome", context: sealed,
              using: &random))
        ], encryptedGroupInfo: sealed)
    }
    func join(_ welcome: Welcome) throws {
      _ = try MLSGroup.join(welcome, keyPackages: [bundle], client: joiner)
    }
    try join(try welcome(of: after))
    expectRule("V701") { _ = try MLSGroup.join(try welcome(of: after), keyPackages: [], client: joiner) }
    expectRule("V702") {
      var other = try welcome(of: after)
      other.cipherSuite = .x25519ChaCha20Poly1305
      try join(other)
    }
    expectRule("V703") {
      var other = try welcome(of: after)
      other.encryptedGroupInfo[0] ^= 1
      try join(other)
    }
    expectRule("V703") {
      var other = try welcome(of: after)
      other.secrets[0].encryptedGroupSecrets.ciphertext[0] ^= 1
      try join(other)
    }
    expectRule("V708") { try join(try welcome(of: before)) }
    expectRule("V709") { try join(try welcome(of: after, tag: 1)) }
    expectRule("V710") { try join(try welcome(of: after, pathSecret: .zeros(32))) }
    let psk = PreSharedKeyID(source: .external(id: [1]), nonce: [UInt8](repeating: 0, count: 32))
    expectRule("V711") { try join(try welcome(of: after, preSharedKeys: [psk])) }
  }

  @Test("Forward secrecy: an epoch keeps no encryption secret beside its secret tree")
  func encryptionSecret() throws {
    var group = try TestGroup(3)
    try group.update(by: 1)
    for member in group.members {
      let isGone = member.group.epoch.secrets.encryption == nil
      #expect(isGone)
    }
  }
}
