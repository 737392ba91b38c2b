public import PalbeMLSMessages
public import PalbeUnits

extension MLSGroup {
  /// Encrypts application data to the members of this epoch.
  ///
  /// RFC 9420 §12.4 asks a client with proposals waiting to commit before it sends; the caller decides when.
  public mutating func encrypt(
    _ data: [UInt8], authenticatedData: [UInt8] = [], using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    try requireActive()
    return try send(
      .application(data), as: .privateMessage, authenticatedData: authenticatedData, using: &random
    ).outgoing
  }

  /// Proposes to add a client; some member must commit it.
  public mutating func proposeAdd(
    _ keyPackage: KeyPackage, using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage { try propose(.add(keyPackage), using: &random) }

  /// Proposes to remove a member. A client that leaves proposes its own removal; another member must commit it.
  public mutating func proposeRemove(
    _ leaf: LeafIndex, using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    try propose(.remove(leaf), using: &random)
  }

  /// Proposes to mix a registered pre-shared key into the next epoch.
  public mutating func proposePreSharedKey(
    id: [UInt8], using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    try propose(try preSharedKeyProposal(id: id, using: &random), using: &random)
  }

  /// A proposal to mix a registered pre-shared key into the next epoch, for a commit of our own, with a fresh nonce.
  ///
  /// Throws `proposals(.unknownPreSharedKey)`.
  public func preSharedKeyProposal(
    id: [UInt8], using random: inout RandomSource
  ) throws(MLSError) -> Proposal {
    guard preSharedKeys[id] != nil else { throw .proposals(.unknownPreSharedKey) }
    let nonce = random.bytes(crypto.hashByteCount)
    return .preSharedKey(PreSharedKeyID(source: .external(id: id), nonce: nonce))
  }

  /// Proposes a leaf of ours with a fresh encryption key; another member must commit it.
  ///
  /// `newClient` gives it another signing key, credential and capabilities; the group speaks for it once committed.
  public mutating func proposeUpdate(
    as newClient: MLSClient? = nil, authenticatedData: [UInt8] = [], using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    try requireActive()
    guard newClient.map({ $0.cipherSuite == crypto.suite }) ?? true else {
      throw .state(.clientOfOtherSuite)
    }
    guard var leaf = epoch.tree[ownLeaf] else { throw .tree(.noMember(ownLeaf)) }
    let keys = try crypto.generateKeyPair(using: &random)
    if let newClient { newClient.describe(in: &leaf) }
    leaf.encryptionKey = keys.publicKey
    leaf.source = .update
    try (newClient ?? client).sign(&leaf, groupID: groupID, at: ownLeaf)
    let message = try send(.update(leaf), authenticatedData, using: &random)
    proposals.keep(keys.privateKey, newClient, forUpdate: keys.publicKey)
    return message
  }

  /// Proposes to leave: another member must commit it, and this client learns of it as `removed`.
  public mutating func proposeLeave(using random: inout RandomSource) throws(MLSError) -> MLSMessage {
    try propose(.remove(ownLeaf), using: &random)
  }

  /// Proposes anything but an Update, which `proposeUpdate` makes; some member must commit it.
  ///
  /// Throws `proposals`, `keyPackage` or `leafNode` for what the others would refuse.
  public mutating func propose(
    _ proposal: Proposal, authenticatedData: [UInt8] = [], using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    try requireActive()
    if case .update = proposal { throw .proposals(.notAllowedForSender(.update)) }
    try check(proposal, from: .member(ownLeaf))
    return try send(proposal, authenticatedData, using: &random)
  }

  private mutating func send(
    _ proposal: Proposal, _ authenticatedData: [UInt8], using random: inout RandomSource
  ) throws(MLSError) -> MLSMessage {
    let format: WireFormat =
      client.configuration.handshakeFormat == .publicMessage ? .publicMessage : .privateMessage
    let (outgoing, content) = try send(
      .proposal(proposal), as: format, authenticatedData: authenticatedData, using: &random)
    try proposals.insert(
      SentProposal(proposal: proposal, sender: .member(ownLeaf)), crypto.reference(to: content),
      limit: client.configuration.maximumPendingProposals)
    remember(outgoing, .own)
    return outgoing
  }

  private mutating func send(
    _ content: MessageContent, as format: WireFormat, authenticatedData: [UInt8],
    using random: inout RandomSource
  ) throws(MLSError) -> (outgoing: MLSMessage, content: AuthenticatedContent) {
    let framed = FramedContent(
      groupID: groupID, epoch: epochNumber, sender: .member(ownLeaf), authenticatedData: authenticatedData,
      content: content)
    let signature = try Framing.sign(
      framed, as: format, context: epoch.contextBytes, key: client.signatureKey, crypto: crypto)
    let message = AuthenticatedContent(
      wireFormat: format, content: framed, authentication: ContentAuthentication(signature: signature))
    return (try protect(message, using: &random), message)
  }
}
