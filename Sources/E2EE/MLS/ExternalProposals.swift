public import PalbeMLSMessages

/// Proposals of those who are no members, RFC 9420 §12.1.8. They travel as PublicMessages.
extension MLSClient {
  /// A proposal as one of a group's external senders, RFC 9420 §12.1.8.1, for instance of a server that removes
  /// somebody. `senderIndex` is the place in the group's `external_senders`; that entry must have this client's key.
  ///
  /// Throws `proposals(.notAllowedForSender)` for an Update, `proposals(.externalInitByMember)` for an ExternalInit,
  /// `proposals(.typeNotSupported)`.
  public func externalProposal(
    _ proposal: Proposal, senderIndex: UInt32, groupID: [UInt8], epoch: UInt64,
    authenticatedData: [UInt8] = []
  ) throws(MLSError) -> MLSMessage {
    try outside(proposal, .external(index: senderIndex), groupID, epoch, authenticatedData)
  }

  /// A proposal to be added oneself, RFC 9420 §12.1.8.2; a member must commit it, and the Welcome is to `keyPackage`,
  /// one of this client's.
  public func joinProposal(
    _ keyPackage: KeyPackage, groupID: [UInt8], epoch: UInt64, authenticatedData: [UInt8] = []
  ) throws(MLSError) -> MLSMessage {
    try outside(.add(keyPackage), .newMemberProposal, groupID, epoch, authenticatedData)
  }

  private func outside(
    _ proposal: Proposal, _ sender: Sender, _ groupID: [UInt8], _ epoch: UInt64, _ authenticatedData: [UInt8]
  ) throws(MLSError) -> MLSMessage {
    try ProposalRules.check(proposal, from: sender, declared: configuration.applicationProposals)
    let content = FramedContent(
      groupID: groupID, epoch: epoch, sender: sender, authenticatedData: authenticatedData,
      content: .proposal(proposal))
    // The group's context is no part of what somebody outside signs, RFC 9420 §6.1.
    let signature = try Framing.sign(
      content, as: .publicMessage, context: [], key: signatureKey, crypto: crypto)
    return .publicMessage(
      PublicMessage(
        content: content, authentication: ContentAuthentication(signature: signature), membershipTag: nil))
  }
}
