import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

/// Signs a changed key package again, so that only the change can be refused.
func keyPackage(
  of client: MLSClient, using random: inout RandomSource, change: (inout KeyPackage) -> Void
) throws -> KeyPackage {
  var result = try client.makeKeyPackage(lifetime: day, using: &random).keyPackage
  change(&result)
  try client.sign(&result.leafNode, groupID: bytes("group"), at: LeafIndex(0))
  result.signature = try client.crypto.sign(
    result.toBeSigned, label: "KeyPackageTBS", key: client.signatureKey)
  return result
}

@Suite("RFC 9420 §12.2: lists of proposals")
struct ProposalRuleTests {
  private static let me = Sender.member(LeafIndex(0))
  private static let nonce = [UInt8](repeating: 1, count: 32)

  private static func sent(_ proposal: Proposal, by sender: Sender = me) -> SentProposal {
    SentProposal(proposal: proposal, sender: sender)
  }

  private static func psk(_ nonce: [UInt8], _ usage: ResumptionUsage? = nil) -> SentProposal {
    let source: PreSharedKeyID.Source =
      usage.map { .resumption(usage: $0, groupID: [1], epoch: 1) } ?? .external(id: [1])
    return sent(.preSharedKey(PreSharedKeyID(source: source, nonce: nonce)))
  }

  private func refused(
    _ list: [SentProposal], by committer: Sender = me, _ error: ProposalError,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(throws: MLSError.proposals(error), sourceLocation: sourceLocation) {
      try ProposalRules.check(list, committer: committer, hashByteCount: 32, version: .mls10)
    }
  }

  // Rules: V402 V403 V404 V406 V407 V408 V409 V411 V412 V414 V415 V416
  @Test("e2ee 6.14: RFC 9420 §12.2, §12.1.8: each rule of the list has its own error")
  func rules() throws {
    var random = RandomSource(seed: 1)
    let client = try makeClient("a", using: &random)
    let leaf = try client.makeLeaf(source: .update, using: &random).leaf
    let other = Sender.member(LeafIndex(1))
    let reInit = Proposal.reInit(ReInit(groupID: [2], cipherSuite: .x25519AES128GCM))
    refused([Self.sent(.update(leaf))], .updateByCommitter)
    refused([Self.sent(.remove(LeafIndex(0)), by: other)], .removesCommitter)
    refused(
      [Self.sent(.remove(LeafIndex(1))), Self.sent(.update(leaf), by: other)], .severalForLeaf(LeafIndex(1)))
    refused(
      [Self.sent(.update(leaf), by: other), Self.sent(.update(leaf), by: other)],
      .severalForLeaf(LeafIndex(1)))
    refused([Self.psk(Self.nonce), Self.psk(Self.nonce)], .duplicatePreSharedKey)
    refused([Self.psk(Self.nonce, .branch)], .wrongPreSharedKeyUsage)
    refused([Self.psk(Self.nonce, .reInit)], .wrongPreSharedKeyUsage)
    refused([Self.psk([1])], .wrongPreSharedKeyNonceLength)
    refused(
      [Self.sent(.groupContextExtensions([])), Self.sent(.groupContextExtensions([]))],
      .severalGroupContextExtensions)
    let twice = Extension(type: ExtensionType(rawValue: 99), data: [])
    refused([Self.sent(.groupContextExtensions([twice, twice]))], .duplicateExtension)
    refused([Self.sent(reInit), Self.psk(Self.nonce)], .reInitWithOthers)
    refused(
      [Self.sent(.reInit(ReInit(groupID: [2], version: .init(rawValue: 0), cipherSuite: .x25519AES128GCM)))],
      .reInitVersionTooLow)
    refused([Self.sent(.externalInit(kemOutput: []))], .externalInitByMember)
    refused([Self.sent(.update(leaf), by: .external(index: 0))], .notAllowedForSender(.update))
    refused(
      [Self.sent(.remove(LeafIndex(1)), by: .newMemberProposal)], .notAllowedForSender(.remove))
    try ProposalRules.check(
      [Self.sent(.remove(LeafIndex(1))), Self.psk(Self.nonce), Self.sent(.groupContextExtensions([]))],
      committer: Self.me, hashByteCount: 32, version: .mls10)
  }

  // Rules: V417 V418
  @Test("RFC 9420 §12.2: each rule of an external commit's list has its own error")
  func externalRules() {
    let new = Sender.newMemberCommit
    let start = Self.sent(.externalInit(kemOutput: [1]), by: new)
    refused([], by: new, .externalInitCount(0))
    refused([start, start], by: new, .externalInitCount(2))
    let remove = Self.sent(.remove(LeafIndex(1)), by: new)
    refused([start, remove, remove], by: new, .notAllowedInExternalCommit(.remove))
    refused(
      [start, Self.sent(.groupContextExtensions([]), by: new)], by: new,
      .notAllowedInExternalCommit(.groupContextExtensions))
  }

  @Test("RFC 9420 §12.4: which proposals need a path")
  func path() {
    #expect(ProposalRules.needPath([]))
    #expect(ProposalRules.needPath([Self.psk(Self.nonce), Self.sent(.remove(LeafIndex(1)))]))
    #expect(ProposalRules.needPath([Self.sent(.groupContextExtensions([]))]))
    #expect(ProposalRules.needPath([Self.sent(.externalInit(kemOutput: []))]))
    #expect(!ProposalRules.needPath([Self.psk(Self.nonce)]))
    #expect(
      !ProposalRules.needPath([Self.sent(.reInit(ReInit(groupID: [], cipherSuite: .x25519AES128GCM)))]))
  }

  // Rules: V102 V104 V105 V109 V110 V112 V114 V115 V116 V117 V118 V201 V202 V203 V204 V205 V206 V405
  @Test("RFC 9420 §10.1, §7.3: each rule for an added key package has its own error")
  func keyPackages() throws {
    var group = try TestGroup(2)
    var random = RandomSource(seed: 77)
    let client = try makeClient("new", using: &random)
    func refused(
      _ error: MLSError, at time: UInt64 = noon, sourceLocation: SourceLocation = #_sourceLocation,
      _ change: (inout KeyPackage) -> Void
    ) throws {
      let changed = try keyPackage(of: client, using: &random, change: change)
      #expect(throws: error, sourceLocation: sourceLocation) {
        _ = try group.members[0].group.add([changed], at: time, using: &group.random)
      }
    }
    try refused(.keyPackage(.wrongVersion(.init(rawValue: 2)))) { $0.version = .init(rawValue: 2) }
    try refused(.keyPackage(.wrongCipherSuite(.x25519ChaCha20Poly1305))) {
      $0.cipherSuite = .x25519ChaCha20Poly1305
    }
    try refused(.keyPackage(.initKeyIsEncryptionKey)) { $0.initKey = $0.leafNode.encryptionKey }
    try refused(.keyPackage(.invalidInitKey)) { $0.initKey = [1] }
    let twice = Extension(type: ExtensionType(rawValue: 99), data: [])
    try refused(.keyPackage(.duplicateExtension)) { $0.extensions = [twice, twice] }
    try refused(.leafNode(.invalidEncryptionKey)) { $0.leafNode.encryptionKey = [1] }
    try refused(.leafNode(.versionNotSupported)) { $0.leafNode.capabilities.versions = [] }
    try refused(.leafNode(.cipherSuiteNotSupported)) { $0.leafNode.capabilities.cipherSuites = [] }
    try refused(.leafNode(.extensionNotListed(twice.type))) { $0.leafNode.extensions = [twice] }
    try refused(.leafNode(.duplicateExtension)) { $0.leafNode.extensions = [twice, twice] }
    try refused(.leafNode(.wrongSource)) { $0.leafNode.source = .update }
    try refused(.leafNode(.memberCredentialNotSupported(.basic))) {
      $0.leafNode.capabilities.credentials = [.x509]
    }
    try refused(.leafNode(.expired(notAfter: day.notAfter)), at: day.notAfter + 1) { _ in }
    try refused(.leafNode(.notYetValid(notBefore: day.notBefore)), at: day.notBefore - 1) { _ in }
    try refused(.leafNode(.encryptionKeyInUse)) {
      $0.leafNode.encryptionKey = group.members[1].group.epoch.tree[LeafIndex(0)]?.encryptionKey ?? []
    }
    var unsigned = try keyPackage(of: client, using: &random) { _ in }
    unsigned.signature[3] ^= 1
    #expect(throws: MLSError.keyPackage(.invalidSignature)) {
      _ = try group.members[0].group.add([unsigned], at: noon, using: &group.random)
    }
    let again = try group.members[1].client.makeKeyPackage(lifetime: day, using: &random)
    #expect(throws: MLSError.leafNode(.signatureKeyInUse)) {
      _ = try group.members[0].group.add([again.keyPackage], at: noon, using: &group.random)
    }
    #expect(throws: MLSError.proposals(.removesNobody(LeafIndex(9)))) {
      _ = try group.members[0].group.remove([LeafIndex(9)], at: noon, using: &group.random)
    }
    #expect(throws: MLSError.proposals(.removesNobody(LeafIndex(UInt32.max)))) {
      _ = try group.members[0].group.remove([LeafIndex(UInt32.max)], at: noon, using: &group.random)
    }
    let waits = group.members[0].group.hasPendingCommit
    #expect(!waits)
    // The group still works, and the client comes in.
    try group.add(1, by: 0)
    try group.checkAgreement()
  }

  // Rules: V115 V116
  @Test("RFC 9420 §7.3: what a receiver accepts of a lifetime may miss its clock by a day")
  func lifetimeTolerance() throws {
    var random = RandomSource(seed: 1)
    let leaf = try makeClient("a", using: &random).makeLeaf(source: .keyPackage(day), using: &random).leaf
    try LeafValidation.checkLifetime(leaf, at: day.notAfter + 100, tolerance: 100)
    try LeafValidation.checkLifetime(leaf, at: day.notBefore - 100, tolerance: 100)
    #expect(throws: MLSError.leafNode(.expired(notAfter: day.notAfter))) {
      try LeafValidation.checkLifetime(leaf, at: day.notAfter + 101, tolerance: 100)
    }
    #expect(throws: MLSError.leafNode(.notYetValid(notBefore: day.notBefore))) {
      try LeafValidation.checkLifetime(leaf, at: day.notBefore - 101, tolerance: 100)
    }
    try LeafValidation.checkLifetime(leaf, at: noon, tolerance: UInt64.max)
  }

  // Rules: V413
  @Test("RFC 9420 §12.1.7: group extensions reach everybody, and must be supported by all")
  func groupExtensions() throws {
    var group = try TestGroup(3)
    let required = Extension(
      type: .requiredCapabilities, data: RequiredCapabilities(credentials: [.basic]).encoded())
    let bundle = try group.members[0].group.commit(
      [.groupContextExtensions([required])], path: false, at: noon, using: &group.random)
    #expect(bundle.effect.hasPath)
    try group.deliver(bundle, from: 0)
    #expect(group.members[2].group.context.extensions == [required])
    try group.add(1, by: 1)
    try group.checkAgreement()
    for unsupported in [
      Extension(type: ExtensionType(rawValue: 0xff00), data: []),
      Extension(
        type: .requiredCapabilities,
        data: RequiredCapabilities(proposals: [ProposalType(rawValue: 0xff00)]).encoded()),
    ] {
      #expect(throws: MLSError.proposals(.extensionNotSupportedByAll(LeafIndex(0)))) {
        _ = try group.members[0].group.commit(
          [.groupContextExtensions([unsupported])], at: noon, using: &group.random)
      }
    }
  }

  // Rules: V506 V507 V515
  @Test("RFC 9420 §12.1.8: external senders and new members may propose what they may")
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
    let context = group.members[0].group.context
    func propose(_ proposal: Proposal, _ sender: Sender, by client: MLSClient) throws -> MLSMessage {
      let content = FramedContent(
        groupID: context.groupID, epoch: context.epoch, sender: sender, authenticatedData: [],
        content: .proposal(proposal))
      let signature = try Framing.sign(
        content, as: .publicMessage, context: context.encoded(), key: client.signatureKey,
        crypto: client.crypto)
      return .publicMessage(
        PublicMessage(
          content: content, authentication: ContentAuthentication(signature: signature),
          membershipTag: nil))
    }
    let newcomer = try makeClient("newcomer", using: &group.random)
    let bundle = try newcomer.makeKeyPackage(lifetime: day, using: &group.random)
    let add = Proposal.add(bundle.keyPackage)
    let remove = Proposal.remove(LeafIndex(2))
    let first = group.members[0]
    #expect(throws: MLSError.message(.unknownSender)) {
      try first.process(try propose(remove, .external(index: 1), by: server))
    }
    #expect(throws: MLSError.message(.invalidSignature)) {
      try first.process(try propose(remove, .external(index: 0), by: newcomer))
    }
    #expect(throws: MLSError.message(.wrongSenderType)) {
      try first.process(try propose(remove, .newMemberProposal, by: newcomer))
    }
    #expect(throws: MLSError.message(.invalidSignature)) {
      try first.process(try propose(add, .newMemberProposal, by: server))
    }
    let messages = [
      try propose(remove, .external(index: 0), by: server),
      try propose(add, .newMemberProposal, by: newcomer),
    ]
    for message in messages { for member in group.members { _ = try member.process(message) } }
    let commit = try first.group.commit(at: noon, using: &group.random)
    #expect(commit.effect.removed == [LeafIndex(2)])
    #expect(commit.effect.added == [LeafIndex(2)])
    #expect(try group.members[1].process(commit.commit) == .commit(commit.effect))
    #expect(try group.members[2].process(commit.commit) == .removed(commit.effect))
    try first.group.mergePendingCommit(at: noon)
    group.members.removeLast()
    group.members.append(
      TestMember(
        newcomer,
        try MLSGroup.join(try #require(commit.welcome), keyPackages: [bundle], client: newcomer)))
    try group.checkAgreement()
  }

  @Test("RFC 9420 §12.1.5: a ReInit closes the group")
  func reInit() throws {
    var group = try TestGroup(2)
    let parameters = ReInit(groupID: bytes("next"), cipherSuite: .x25519AES128GCM)
    let bundle = try group.members[0].group.commit(
      [.reInit(parameters)], path: false, at: noon, using: &group.random)
    #expect(bundle.effect.reInit == parameters)
    try group.deliver(bundle, from: 0)
    for member in group.members {
      let isActive = member.group.isActive
      #expect(!isActive)
      #expect(throws: MLSError.state(.reInitialised)) {
        _ = try member.group.commit(at: noon, using: &group.random)
      }
    }
  }

  // Rules: V103
  @Test("RFC 9420 §5.3.1: the application's word on credentials is final")
  func credentials() throws {
    struct Refuse: CredentialPolicy {
      let identity: [UInt8]
      func accepts(_ credential: Credential, signatureKey: [UInt8]) -> Bool {
        credential != .basic(identity: identity)
      }
    }
    var configuration = MLSConfiguration()
    configuration.credentialPolicy = Refuse(identity: bytes("mallory"))
    var group = try TestGroup(2, configuration)
    let mallory = try makeClient("mallory", using: &group.random)
    let bundle = try mallory.makeKeyPackage(lifetime: day, using: &group.random)
    #expect(throws: MLSError.leafNode(.credentialRefused)) {
      _ = try group.members[0].group.add([bundle.keyPackage], at: noon, using: &group.random)
    }
  }
}
