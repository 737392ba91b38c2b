import PalbeMLSMessages

/// Structures with every field filled, for round trips.
enum Sample {
  static let leaf = LeafNode(
    encryptionKey: [1, 2, 3], signatureKey: [4, 5], credential: .basic(identity: Array("alice".utf8)),
    capabilities: Capabilities(
      cipherSuites: [.x25519AES128GCM, CipherSuite(rawValue: 0x0a0a)],
      extensions: [ExtensionType(rawValue: 9)],
      proposals: [ProposalType(rawValue: 0x1a1a)], credentials: [.basic, .x509]),
    source: .keyPackage(Lifetime(notBefore: 1, notAfter: UInt64.max)),
    extensions: [Extension(type: .applicationID, data: [7])], signature: [6])
  static let pathLeaf = LeafNode(
    encryptionKey: [9], signatureKey: [8], credential: .x509(certificates: [[1, 2], [3]]),
    capabilities: Capabilities(cipherSuites: [.x25519AES128GCM]), source: .commit(parentHash: [1, 1]),
    signature: [5])
  static let keyPackage = KeyPackage(
    cipherSuite: .x25519AES128GCM, initKey: [3, 3], leafNode: leaf,
    extensions: [Extension(type: ExtensionType(rawValue: 0xaaaa), data: [])], signature: [2])
  static let proposals: [Proposal] = [
    .add(keyPackage), .update(pathLeaf), .remove(LeafIndex(77)),
    .preSharedKey(PreSharedKeyID(source: .external(id: [1]), nonce: [2])),
    .preSharedKey(
      PreSharedKeyID(source: .resumption(usage: .branch, groupID: [4], epoch: 1 << 40), nonce: [2, 3])),
    .reInit(ReInit(groupID: [5], cipherSuite: .x25519AES128GCM, extensions: [])),
    .externalInit(kemOutput: [6, 6]),
    .groupContextExtensions([
      Extension(type: .requiredCapabilities, data: RequiredCapabilities(credentials: [.basic]).encoded()),
      Extension(
        type: .externalSenders,
        data: ExternalSenderList([ExternalSender(signatureKey: [1], credential: .basic(identity: []))])
          .encoded()),
    ]),
  ]
  static let commit = Commit(
    proposals: proposals.map { .proposal($0) } + [.reference(ProposalRef(bytes: [1, 2, 3, 4]))],
    path: UpdatePath(
      leafNode: pathLeaf,
      nodes: [
        UpdatePathNode(
          encryptionKey: [1], encryptedPathSecrets: [HPKECiphertext(kemOutput: [2], ciphertext: [3, 4])]),
        UpdatePathNode(encryptionKey: [5], encryptedPathSecrets: []),
      ]))
  static let context = GroupContext(
    cipherSuite: .x25519AES128GCM, groupID: [1, 2], epoch: 3, treeHash: [4], confirmedTranscriptHash: [5],
    extensions: [Extension(type: .requiredCapabilities, data: [0, 0, 0])])
  static let groupInfo = GroupInfo(
    context: context,
    extensions: [
      Extension(
        type: .ratchetTree,
        data: RatchetTreeExtension(nodes: [
          .leaf(leaf), nil,
          .leaf(pathLeaf),
          .parent(
            ParentNode(encryptionKey: [1], parentHash: [], unmergedLeaves: [LeafIndex(0), LeafIndex(3)])),
        ]).encoded())
    ], confirmationTag: [6], signer: LeafIndex(1), signature: [7])

  static func content(_ content: MessageContent, from sender: Sender) -> FramedContent {
    FramedContent(groupID: [1, 2], epoch: 9, sender: sender, authenticatedData: [3], content: content)
  }

  static let messages: [MLSMessage] = [
    .publicMessage(
      PublicMessage(
        content: content(.commit(commit), from: .member(LeafIndex(2))),
        authentication: ContentAuthentication(signature: [1], confirmationTag: [2]), membershipTag: [3])),
    .publicMessage(
      PublicMessage(
        content: content(.proposal(proposals[2]), from: .external(index: 1)),
        authentication: ContentAuthentication(signature: [1]), membershipTag: nil)),
    .publicMessage(
      PublicMessage(
        content: content(.proposal(proposals[0]), from: .newMemberProposal),
        authentication: ContentAuthentication(signature: [1]), membershipTag: nil)),
    .publicMessage(
      PublicMessage(
        content: content(.commit(commit), from: .newMemberCommit),
        authentication: ContentAuthentication(signature: [1], confirmationTag: []), membershipTag: nil)),
    .publicMessage(
      PublicMessage(
        content: content(.application([1, 2, 3]), from: .member(LeafIndex(0))),
        authentication: ContentAuthentication(signature: [1]), membershipTag: [3])),
    .privateMessage(
      PrivateMessage(
        groupID: [1], epoch: 2, contentType: .application, authenticatedData: [3], encryptedSenderData: [4],
        ciphertext: [UInt8](repeating: 5, count: 100))),
    .welcome(
      Welcome(
        cipherSuite: .x25519AES128GCM,
        secrets: [
          EncryptedGroupSecrets(
            newMember: [1], encryptedGroupSecrets: HPKECiphertext(kemOutput: [2], ciphertext: [3]))
        ], encryptedGroupInfo: [4, 5])),
    .groupInfo(groupInfo), .keyPackage(keyPackage),
  ]
}
