import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §12.4.3.2: external commits, received")
struct ExternalCommitTests {
  /// What somebody outside makes of a group's public state: the commit, and the epoch it leads to.
  private func externalCommit(
    to epoch: EpochState, by client: MLSClient, removing removed: LeafIndex? = nil,
    using random: inout RandomSource
  ) throws -> (message: MLSMessage, authenticator: [UInt8]) {
    let crypto = client.crypto
    let externalPub = try crypto.deriveKeyPair(epoch.secrets.external).publicKey
    let sender = try HPKE.Sender(
      .x25519SHA256AES128GCM, to: externalPub.span, info: Span(), using: &random)
    let label = bytes("MLS 1.0 external init secret")
    let initSecret = Secret(sender.export(context: label.span, outputByteCount: 32))

    var tree = epoch.tree
    var proposals = [ProposalOrRef.proposal(.externalInit(kemOutput: sender.encapsulatedKey))]
    if let removed {
      tree.remove(removed)
      proposals.append(.proposal(.remove(removed)))
    }
    let leaf = try client.makeLeaf(source: .update, using: &random).leaf
    let own = try tree.add(leaf)
    var next = epoch.context
    next.epoch += 1
    let created = try TreeKEM.create(
      in: &tree, at: own,
      TreeKEM.LeafTemplate(leaf: leaf, signatureKey: client.signatureKey, groupID: next.groupID),
      context: next, added: [], using: &random)
    let content = FramedContent(
      groupID: next.groupID, epoch: epoch.context.epoch, sender: .newMemberCommit, authenticatedData: [],
      content: .commit(Commit(proposals: proposals, path: created.path)))
    let signature = try Framing.sign(
      content, as: .publicMessage, context: epoch.contextBytes, key: client.signatureKey, crypto: crypto)
    let message = AuthenticatedContent(
      wireFormat: .publicMessage, content: content,
      authentication: ContentAuthentication(signature: signature))
    next.treeHash = tree.rootHash()
    next.confirmedTranscriptHash = Transcript.confirmed(
      interimBefore: epoch.interimTranscriptHash, commit: message, crypto: crypto)
    let schedule = KeySchedule(
      initSecret: initSecret, commitSecret: created.commitSecret, pskSecret: .zeros(32),
      context: next.encoded(), crypto: crypto)
    let tag = crypto.mac(next.confirmedTranscriptHash, key: schedule.secrets.confirmationKey)
    return (
      .publicMessage(
        PublicMessage(
          content: content,
          authentication: ContentAuthentication(signature: signature, confirmationTag: tag),
          membershipTag: nil)), schedule.secrets.authenticator.bytes
    )
  }

  @Test("Members follow somebody who joins by an external commit", arguments: [2, 3, 5])
  func join(count: Int) throws {
    var group = try TestGroup(count)
    for committer in 0..<count { try group.update(by: committer) }
    let outsider = try makeClient("outsider", using: &group.random)
    let epoch = group.members[0].group.epoch
    let (message, authenticator) = try externalCommit(to: epoch, by: outsider, using: &group.random)
    for place in stride(from: 0, to: message.encoded().count, by: 5) {
      #expect(throws: MLSError.self) {
        try group.members[0].group.process(flip(message, at: place), at: noon)
      }
    }
    for member in group.members {
      guard case .commit(let effect) = try member.process(message) else {
        Issue.record("expected a commit")
        return
      }
      #expect(effect.committer == LeafIndex(UInt32(count)))
      #expect(member.group.epochAuthenticator == authenticator)
      #expect(member.group.members.count == count + 1)
    }
    try group.checkPrivateKeys()
  }

  @Test("A client that comes back removes its old leaf in the same commit")
  func resync() throws {
    var group = try TestGroup(4)
    let lost = group.members[1]
    let epoch = group.members[0].group.epoch
    let (message, authenticator) = try externalCommit(
      to: epoch, by: lost.client, removing: lost.group.ownLeaf, using: &group.random)
    for index in [0, 2, 3] {
      _ = try group.members[index].process(message)
      #expect(group.members[index].group.epochAuthenticator == authenticator)
    }
    guard case .removed = try lost.process(message) else {
      Issue.record("expected the old membership to end")
      return
    }
  }

  // Rules: V117
  @Test("A client already in the group cannot join a second time")
  func twice() throws {
    var group = try TestGroup(3)
    let epoch = group.members[0].group.epoch
    let (message, _) = try externalCommit(to: epoch, by: group.members[1].client, using: &group.random)
    #expect(throws: MLSError.leafNode(.signatureKeyInUse)) { try group.members[0].process(message) }
  }
}
