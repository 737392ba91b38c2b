import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

/// The faults of other engines that no other file tests.
@Suite("e2ee §6: faults reported elsewhere")
struct ReportedFaultTests {
  /// Every prefix and one more byte are refused, and the whole comes back.
  private func checkEnds<T: MLSCodable & Equatable>(
    _ value: T, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let bytes = value.encoded()
    #expect(try T(decoding: bytes) == value, sourceLocation: sourceLocation)
    for count in bytes.indices {
      #expect(throws: WireError.self, "\(T.self), \(count) bytes", sourceLocation: sourceLocation) {
        try T(decoding: Array(bytes.prefix(count)))
      }
    }
    #expect(throws: WireError.trailing(count: 1), sourceLocation: sourceLocation) {
      try T(decoding: bytes + [0])
    }
  }

  @Test("e2ee 6.7: every structure refuses short and trailing bytes, and nothing traps")
  func ends() throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var group = try TestGroup(3, configuration)
    try group.update(by: 1)
    let member = group.members[0]
    let client = try makeClient("new", using: &group.random)
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try member.group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    guard case .publicMessage(let commit) = bundle.commit, case .commit(let content) = commit.content.content,
      case .welcome(let welcome)? = bundle.welcome, case .groupInfo(let info) = try member.group.groupInfo()
    else {
      Issue.record("expected other messages")
      return
    }
    let path = try #require(content.path)
    try checkEnds(bundle.commit)
    try checkEnds(commit)
    try checkEnds(content)
    try checkEnds(path)
    try checkEnds(path.nodes[0])
    try checkEnds(path.leafNode)
    try checkEnds(path.leafNode.capabilities)
    try checkEnds(path.leafNode.credential)
    try checkEnds(path.leafNode.source)
    try checkEnds(keyPackage.keyPackage)
    try checkEnds(welcome)
    try checkEnds(welcome.secrets[0])
    try checkEnds(info)
    try checkEnds(info.context)
    try checkEnds(info.extensions[0])
    try checkEnds(member.group.ratchetTree)
    try checkEnds(RequiredCapabilities(extensions: [.applicationID], proposals: [.add], credentials: [.x509]))
    try checkEnds(ExternalSenderList([ExternalSender(signatureKey: [1], credential: .basic(identity: [2]))]))
    try checkEnds(Credential.x509(certificates: [[1, 2], []]))
    try checkEnds(PreSharedKeyID(source: .external(id: [1]), nonce: [2]))
    try checkEnds(ReInit(groupID: [1], cipherSuite: .p256AES128GCM))
    try checkEnds(Sender.external(index: 3))
    // Those that are secret themselves.
    let secrets = GroupSecrets(joinerSecret: .zeros(32), pathSecret: .zeros(32), preSharedKeys: []).encoded()
      .bytes
    for count in secrets.indices {
      #expect(throws: WireError.self) {
        try GroupSecrets(decoding: Secret(copying: Array(secrets.prefix(count))))
      }
    }
    #expect(throws: WireError.trailing(count: 1)) {
      try GroupSecrets(decoding: Secret(copying: secrets + [0]))
    }
    let sender = MessageKeys.SenderData(leaf: LeafIndex(1), generation: 2, reuseGuard: [1, 2, 3, 4]).encoded()
    for count in sender.indices {
      #expect(throws: WireError.self) { try MessageKeys.SenderData(decoding: Array(sender.prefix(count))) }
    }
    // A live group meets every prefix, too.
    let bytes = bundle.commit.encoded()
    for count in bytes.indices {
      #expect(throws: MLSError.self) {
        try group.members[1].group.process(Array(bytes.prefix(count)), at: noon)
      }
    }
  }

  @Test("e2ee 6.9: paths go to the resolution without the members that the same commit adds")
  func resolutions() throws {
    var group = try TestGroup(5)
    // Unmerged leaves, blanks and new members below the same nodes.
    try group.add(2, by: 4, path: false)
    try group.remove([1], by: 3)
    try group.add(2, by: 0)
    try group.checkPrivateKeys()
    try group.add(3, by: 2, path: false)
    try group.remove([0, 3], by: 4)
    try group.add(4, by: 1)
    try group.checkAgreement()
    for index in group.members.indices { try group.update(by: index) }
    try group.checkPrivateKeys()
    try group.checkAgreement()
  }

  // Rules: V303
  @Test("e2ee 6.10: a tree whose last node is blank is refused, in a Welcome, a GroupInfo, and beside them")
  func trailingBlank() throws {
    var configuration = MLSConfiguration()
    configuration.ratchetTreeInWelcome = false
    var group = try TestGroup(2, configuration)
    let client = try makeClient("late", configuration, using: &group.random)
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    let welcome = try #require(bundle.welcome)
    for blanks in [1, 2, 1_000] {
      var tree = try #require(bundle.ratchetTree)
      tree.nodes += [TreeNode?](repeating: nil, count: blanks)
      #expect(throws: MLSError.tree(.trailingBlank)) {
        _ = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: client, ratchetTree: tree)
      }
    }
    guard case .groupInfo(var info) = try group.members[0].group.groupInfo() else { return }
    var tree = group.members[0].group.ratchetTree
    tree.nodes.append(nil)
    for index in info.extensions.indices where info.extensions[index].type == .ratchetTree {
      info.extensions[index].data = tree.encoded()
    }
    #expect(throws: MLSError.tree(.trailingBlank)) {
      _ = try MLSGroup.joinExternally(.groupInfo(info), client: client, using: &group.random)
    }
  }

  // Rules: V405 V506
  @Test("e2ee 6.11: a sender that is beyond the tree, blank, or 2^32-1 is nobody, in every kind of message")
  func senders() throws {
    var configuration = MLSConfiguration()
    configuration.handshakeFormat = .publicMessage
    var group = try TestGroup(4, configuration)
    try group.remove([2], by: 0)
    let (insider, receiver) = (group.members[1], group.members[0])
    let epoch = insider.group.epoch
    let commit = MessageContent.commit(Commit(proposals: [], path: nil))
    for leaf in [LeafIndex(2), LeafIndex(4), LeafIndex(1 << 30), LeafIndex(1 << 31), LeafIndex(UInt32.max)] {
      for (content, tag) in [(MessageContent.proposal(.remove(LeafIndex(1))), nil), (commit, [UInt8(0)])] {
        let framed = FramedContent(
          groupID: epoch.context.groupID, epoch: epoch.context.epoch, sender: .member(leaf),
          authenticatedData: [], content: content)
        let signature = try Framing.sign(
          framed, as: .publicMessage, context: epoch.contextBytes, key: insider.client.signatureKey,
          crypto: insider.client.crypto)
        let message = Framing.publicMessage(
          AuthenticatedContent(
            wireFormat: .publicMessage, content: framed,
            authentication: ContentAuthentication(signature: signature, confirmationTag: tag)),
          context: epoch.contextBytes, membershipKey: epoch.secrets.membershipKey,
          crypto: insider.client.crypto)
        #expect(throws: MLSError.message(.unknownSender)) { try receiver.process(.publicMessage(message)) }
      }
      #expect(throws: MLSError.message(.unknownSender)) {
        try receiver.process(try encrypted(from: leaf, by: insider))
      }
      #expect(throws: MLSError.proposals(.removesNobody(leaf))) {
        _ = try receiver.group.propose(.remove(leaf), using: &group.random)
      }
    }
    try group.checkAgreement()
  }

  /// An application message whose sender data names a leaf.
  private func encrypted(from leaf: LeafIndex, by insider: TestMember) throws -> MLSMessage {
    let epoch = insider.group.epoch
    let crypto = insider.client.crypto
    var message = PrivateMessage(
      groupID: epoch.context.groupID, epoch: epoch.context.epoch, contentType: .application,
      authenticatedData: [], encryptedSenderData: [], ciphertext: [UInt8](repeating: 3, count: 64))
    let key = MessageKeys.senderDataKey(epoch.keys.senderData, ciphertext: message.ciphertext, crypto: crypto)
    message.encryptedSenderData = try crypto.seal(
      MessageKeys.SenderData(leaf: leaf, generation: 0, reuseGuard: [0, 0, 0, 0]).encoded(), key: key.key,
      nonce: [UInt8](key.nonce.span), authenticating: message.senderDataAAD)
    return .privateMessage(message)
  }

  @Test("e2ee 6.13: new extensions and a removal in one commit: the path is under the new context")
  func provisionalContext() throws {
    var group = try TestGroup(4)
    let required = Extension(
      type: .requiredCapabilities, data: RequiredCapabilities(credentials: [.basic]).encoded())
    let bundle = try group.members[0].group.commit(
      [.groupContextExtensions([required]), .remove(LeafIndex(3))], path: false, at: noon,
      using: &group.random)
    #expect(bundle.effect.hasPath)
    for index in 1..<3 { #expect(try group.members[index].process(bundle.commit) == .commit(bundle.effect)) }
    try group.members[0].group.mergePendingCommit(at: noon)
    group.members.removeLast()
    #expect(group.members[1].group.context.extensions == [required])
    try group.checkAgreement()
    // A path is forced wherever RFC 9420 §12.4 asks for one: new extensions, Remove, Update, an empty commit.
    for list in [[Proposal.groupContextExtensions([])], [.remove(LeafIndex(2))], []] {
      let commit = try group.members[0].group.commit(list, path: false, at: noon, using: &group.random)
      #expect(commit.effect.hasPath)
      group.members[0].group.clearPendingCommit()
    }
    let update = try group.members[1].group.proposeUpdate(using: &group.random)
    for index in [0, 2] { _ = try group.members[index].process(update) }
    let commit = try group.members[0].group.commit(path: false, at: noon, using: &group.random)
    #expect(commit.effect.hasPath)
    try group.deliver(commit, from: 0)
    try group.checkAgreement()
  }

  @Test(
    "e2ee 6.16: after a failed send the commit is replaced, or cleared; messages and the next commit work")
  func failedSend() throws {
    var group = try TestGroup(3)
    let sender = group.members[0]
    let first = try sender.group.commit(at: noon, using: &group.random)
    // What cannot be made leaves the first one in place.
    #expect(throws: MLSError.proposals(.removesNobody(LeafIndex(9)))) {
      _ = try sender.group.commit(
        [.remove(LeafIndex(9))], replacingPending: true, at: noon, using: &group.random)
    }
    let message = try sender.group.encrypt([1], using: &group.random)
    guard case .application = try group.members[1].process(message) else {
      Issue.record("expected application data")
      return
    }
    let second = try sender.group.commit(replacingPending: true, at: noon, using: &group.random)
    #expect(first.commit != second.commit)
    try group.deliver(second, from: 0)
    #expect(throws: MLSError.message(.staleCommit(epoch: 1))) { try sender.process(first.commit) }
    try group.checkAgreement()
    for _ in 0..<3 {
      _ = try sender.group.commit(at: noon, using: &group.random)
      sender.group.clearPendingCommit()
      sender.group.clearPendingCommit()
    }
    try group.update(by: 0)
    try group.checkAgreement()
  }

  // Rules: V701
  @Test("e2ee 6.20: an orphan Welcome is told apart: its key package is not here, or was used up")
  func orphanWelcome() throws {
    var group = try TestGroup(1)
    let client = try makeClient("late", using: &group.random)
    let keyPackage = try client.makeKeyPackage(lifetime: day, using: &group.random)
    let bundle = try group.members[0].group.add([keyPackage.keyPackage], at: noon, using: &group.random)
    let welcome = try #require(bundle.welcome)
    _ = try MLSGroup.join(welcome, keyPackages: [keyPackage], client: client)
    #expect(throws: MLSError.welcome(.noKeyPackage)) {
      _ = try MLSGroup.join(welcome, keyPackages: [], client: client)
    }
  }

  // Rules: V604
  @Test("e2ee 6.25: every epoch has another authenticator, whatever the commit holds")
  func authenticators() throws {
    var group = try TestGroup(4)
    var seen: Set<[UInt8]> = [group.members[0].group.epochAuthenticator]
    func check() {
      #expect(seen.insert(group.members[0].group.epochAuthenticator).inserted)
    }
    for index in 0..<4 {
      try group.update(by: index)
      check()
    }
    try group.add(1, by: 2, path: false)
    check()
    try group.remove([4], by: 1)
    check()
    for member in group.members {
      member.group.register(PreSharedKey(id: [1], key: SymmetricKey(copying: [1])))
    }
    let proposal = try group.members[0].group.preSharedKeyProposal(id: [1], using: &group.random)
    try group.deliver(
      try group.members[0].group.commit([proposal], path: false, at: noon, using: &group.random), from: 0)
    check()
    #expect(throws: MLSError.commit(.epochDidNotChange)) { try MLSGroup.checkChanged(from: [1], to: [1]) }
  }
}
