import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

private struct MessageProtectionCase: SuiteCase {
  let cipher_suite: UInt16
  let group_id, tree_hash, confirmed_transcript_hash, signature_priv, signature_pub: HexBytes
  let encryption_secret, sender_data_secret, membership_key: HexBytes
  let epoch: UInt64
  let proposal, proposal_pub, proposal_priv, commit, commit_pub, commit_priv: HexBytes
  let application, application_priv: HexBytes
}

private struct WelcomeCase: SuiteCase {
  let cipher_suite: UInt16
  let init_priv, signer_pub, key_package, welcome: HexBytes
}

@Suite("RFC 9420 §6, §12.4.3: messages")
struct MessageVectorTests {
  private static let sender = LeafIndex(1)

  private func content(
    _ item: MessageProtectionCase, _ content: MessageContent
  ) -> FramedContent {
    FramedContent(
      groupID: item.group_id.bytes, epoch: item.epoch, sender: .member(Self.sender),
      authenticatedData: [], content: content)
  }

  private func keys(_ item: MessageProtectionCase) -> MessageKeys {
    MessageKeys(
      senderData: item.sender_data_secret.secret, encryption: item.encryption_secret.secret,
      size: TreeSize(holding: 2))
  }

  @Test(
    "RFC 9420 §6: message-protection.json, theirs opened and ours made and opened",
    .enabled(if: Vectors.has("mls/message-protection.json"), "mls/message-protection.json absent: skipped"))
  func protection() throws {
    var random = RandomSource(seed: 1)
    for item: MessageProtectionCase in try implementedCases("message-protection") {
      let crypto = try item.crypto()
      let context = GroupContext(
        cipherSuite: crypto.suite, groupID: item.group_id.bytes, epoch: item.epoch,
        treeHash: item.tree_hash.bytes, confirmedTranscriptHash: item.confirmed_transcript_hash.bytes
      ).encoded()
      let proposal = MessageContent.proposal(try Proposal(decoding: item.proposal.bytes))
      let commit = MessageContent.commit(try Commit(decoding: item.commit.bytes))
      let application = MessageContent.application(item.application.bytes)

      for (expected, wire) in [(proposal, item.proposal_pub), (commit, item.commit_pub)] {
        guard case .publicMessage(let message) = try MLSMessage(decoding: wire.bytes) else {
          Issue.record("expected a PublicMessage")
          continue
        }
        #expect(message.content.content == expected)
        try Framing.checkMembership(
          message, context: context, membershipKey: item.membership_key.secret, crypto: crypto)
        try Framing.verify(
          message.authenticatedContent, context: context, key: item.signature_pub.bytes, crypto: crypto)
      }
      for (expected, wire) in [
        (proposal, item.proposal_priv), (commit, item.commit_priv), (application, item.application_priv),
      ] {
        guard case .privateMessage(let message) = try MLSMessage(decoding: wire.bytes) else {
          Issue.record("expected a PrivateMessage")
          continue
        }
        let opened = try open(message, item, context, crypto)
        #expect(opened.content.content == expected)
      }

      let signatureKey = try item.signature_priv.signatureKey(crypto)
      for body in [proposal, commit, application] {
        for format in [WireFormat.publicMessage, .privateMessage] {
          let framed = content(item, body)
          let signature = try Framing.sign(
            framed, as: format, context: context, key: signatureKey, crypto: crypto)
          let tag: [UInt8]? = body.type == .commit ? [1, 2, 3] : nil
          let message = AuthenticatedContent(
            wireFormat: format, content: framed,
            authentication: ContentAuthentication(signature: signature, confirmationTag: tag))
          if format == .publicMessage {
            let made = Framing.publicMessage(
              message, context: context, membershipKey: item.membership_key.secret, crypto: crypto)
            let read = try PublicMessage(decoding: made.encoded())
            try Framing.checkMembership(
              read, context: context, membershipKey: item.membership_key.secret, crypto: crypto)
            try Framing.verify(
              read.authenticatedContent, context: context, key: item.signature_pub.bytes, crypto: crypto)
          } else {
            var sending = keys(item)
            let made = try sending.encrypt(
              message, from: Self.sender, padding: .multiple(of: 64), crypto: crypto, using: &random)
            #expect(made.ciphertext.count % 64 == 16)
            #expect(try open(made, item, context, crypto) == message)
          }
        }
      }
    }
  }

  private func open(
    _ message: PrivateMessage, _ item: MessageProtectionCase, _ context: [UInt8], _ crypto: SuiteCrypto
  ) throws -> AuthenticatedContent {
    var receiving = keys(item)
    let sender = try receiving.sender(of: message, crypto: crypto)
    #expect(sender.leaf == Self.sender)
    let opened = try receiving.decrypt(message, from: sender, limits: RatchetLimits(), crypto: crypto)
    try Framing.verify(opened.message, context: context, key: item.signature_pub.bytes, crypto: crypto)
    return opened.message
  }

  @Test(
    "RFC 9420 §12.4.3.1: welcome.json",
    .enabled(if: Vectors.has("mls/welcome.json"), "mls/welcome.json absent: skipped"))
  func welcome() throws {
    for item: WelcomeCase in try implementedCases("welcome") {
      let crypto = try item.crypto()
      guard case .keyPackage(let keyPackage) = try MLSMessage(decoding: item.key_package.bytes),
        case .welcome(let welcome) = try MLSMessage(decoding: item.welcome.bytes)
      else {
        Issue.record("expected a key package and a Welcome")
        continue
      }
      let bundle = KeyPackageBundle(
        keyPackage: keyPackage, reference: crypto.reference(to: keyPackage),
        initKey: item.init_priv.hpkeKey(crypto), encryptionKey: .zeros(32))
      let entry = try #require(welcome.secrets.first { $0.newMember == bundle.reference })
      let secrets = try MLSGroup.openSecrets(entry, welcome, bundle, crypto)
      let none = Secret.zeros(crypto.hashByteCount)
      let groupInfo = try MLSGroup.openGroupInfo(welcome, secrets, none, crypto)
      #expect(
        crypto.isValid(
          groupInfo.signature, of: groupInfo.toBeSigned, label: "GroupInfoTBS", key: item.signer_pub.bytes))
      let schedule = KeySchedule(
        joinerSecret: secrets.joinerSecret, pskSecret: none, context: groupInfo.context.encoded(),
        crypto: crypto)
      #expect(
        crypto.isValidMAC(
          groupInfo.confirmationTag, of: groupInfo.context.confirmedTranscriptHash,
          key: schedule.secrets.confirmationKey))
    }
  }

  @Test(
    "RFC 9420 §12.4.3.1: group_secrets of messages.json decode and encode byte for byte",
    .enabled(if: Vectors.has("mls/messages.json"), "mls/messages.json absent: skipped"))
  func groupSecrets() throws {
    struct Case: Decodable { let group_secrets: HexBytes }
    for item in try Vectors.load("mls/messages.json", as: [Case].self) {
      let secrets = try GroupSecrets(decoding: item.group_secrets.secret)
      #expect(secrets.encoded().bytes == item.group_secrets.bytes)
    }
  }

  @Test("RFC 9420 §12.4.3.1: every truncation of GroupSecrets is refused")
  func groupSecretsTruncation() throws {
    let whole = GroupSecrets(
      joinerSecret: Secret(copying: [1, 2, 3]), pathSecret: Secret(copying: [4]),
      preSharedKeys: [PreSharedKeyID(source: .external(id: [5]), nonce: [6])]
    ).encoded().bytes
    for count in whole.indices {
      #expect(throws: WireError.self) {
        try GroupSecrets(decoding: Secret(copying: Array(whole.prefix(count))))
      }
    }
    #expect(throws: WireError.trailing(count: 1)) {
      try GroupSecrets(decoding: Secret(copying: whole + [0]))
    }
  }
}
