import PalbeMLSMessages
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeMLS

private struct ExporterCase: Decodable {
  let label: String
  let context: HexBytes
  let length: Int
  let secret: HexBytes
}

private struct EpochCase: Decodable {
  let commit_secret, psk_secret, confirmed_transcript_hash, tree_hash: HexBytes
  let group_context, joiner_secret, welcome_secret, init_secret, sender_data_secret: HexBytes
  let encryption_secret, exporter_secret, epoch_authenticator, external_secret, external_pub: HexBytes
  let confirmation_key, membership_key, resumption_psk: HexBytes
  let exporter: ExporterCase
}

private struct KeyScheduleCase: SuiteCase {
  let cipher_suite: UInt16
  let group_id: HexBytes
  let initial_init_secret: HexBytes
  let epochs: [EpochCase]
}

private struct TranscriptCase: SuiteCase {
  let cipher_suite: UInt16
  let confirmation_key, authenticated_content, interim_transcript_hash_before: HexBytes
  let confirmed_transcript_hash_after, interim_transcript_hash_after: HexBytes
}

private struct SecretTreeCase: SuiteCase {
  struct SenderDataCase: Decodable { let sender_data_secret, ciphertext, key, nonce: HexBytes }
  struct Generation: Decodable {
    let generation: UInt32
    let application_key, application_nonce, handshake_key, handshake_nonce: HexBytes
  }
  let cipher_suite: UInt16
  let encryption_secret: HexBytes
  let sender_data: SenderDataCase
  let leaves: [[Generation]]
}

private struct PSKCase: SuiteCase {
  struct PSK: Decodable { let psk_id, psk, psk_nonce: HexBytes }
  let cipher_suite: UInt16
  let psks: [PSK]
  let psk_secret: HexBytes
}

@Suite("RFC 9420 §8, §9: key schedule and secret tree")
struct KeyScheduleTests {
  @Test(
    "RFC 9420 §8: key-schedule.json",
    .enabled(if: Vectors.has("mls/key-schedule.json"), "mls/key-schedule.json absent: skipped"))
  func keySchedule() throws {
    for item: KeyScheduleCase in try implementedCases("key-schedule") {
      let crypto = try item.crypto()
      var initSecret = item.initial_init_secret.secret
      for (number, epoch) in item.epochs.enumerated() {
        let context = GroupContext(
          cipherSuite: crypto.suite, groupID: item.group_id.bytes, epoch: UInt64(number),
          treeHash: epoch.tree_hash.bytes, confirmedTranscriptHash: epoch.confirmed_transcript_hash.bytes)
        #expect(context.encoded() == epoch.group_context.bytes)
        let schedule = KeySchedule(
          initSecret: initSecret, commitSecret: epoch.commit_secret.secret,
          pskSecret: epoch.psk_secret.secret, context: context.encoded(), crypto: crypto)
        let secrets = schedule.secrets
        #expect(schedule.joinerSecret.bytes == epoch.joiner_secret.bytes)
        #expect(schedule.welcomeSecret.bytes == epoch.welcome_secret.bytes)
        #expect(secrets.initSecret.bytes == epoch.init_secret.bytes)
        #expect(secrets.senderData.bytes == epoch.sender_data_secret.bytes)
        #expect(secrets.encryption?.bytes == epoch.encryption_secret.bytes)
        #expect(secrets.exporter?.bytes == epoch.exporter_secret.bytes)
        #expect(secrets.authenticator.bytes == epoch.epoch_authenticator.bytes)
        #expect(secrets.external.bytes == epoch.external_secret.bytes)
        #expect(secrets.confirmationKey.bytes == epoch.confirmation_key.bytes)
        #expect(secrets.membershipKey.bytes == epoch.membership_key.bytes)
        #expect(secrets.resumption.bytes == epoch.resumption_psk.bytes)
        #expect(try crypto.deriveKeyPair(secrets.external).publicKey == epoch.external_pub.bytes)
        let exported = secrets.export(
          label: bytes(epoch.exporter.label), context: epoch.exporter.context.bytes,
          byteCount: epoch.exporter.length, crypto: crypto)
        #expect(exported?.bytes == epoch.exporter.secret.bytes)
        initSecret = secrets.initSecret
      }
    }
  }

  @Test(
    "RFC 9420 §8.4: psk_secret.json",
    .enabled(if: Vectors.has("mls/psk_secret.json"), "mls/psk_secret.json absent: skipped"))
  func preSharedKeys() throws {
    for item: PSKCase in try implementedCases("psk_secret") {
      let keys = item.psks.map {
        (
          id: PreSharedKeyID(source: .external(id: $0.psk_id.bytes), nonce: $0.psk_nonce.bytes),
          key: $0.psk.secret
        )
      }
      #expect(KeySchedule.pskSecret(keys, crypto: try item.crypto()).bytes == item.psk_secret.bytes)
    }
  }

  @Test(
    "RFC 9420 §8.2: transcript-hashes.json",
    .enabled(if: Vectors.has("mls/transcript-hashes.json"), "mls/transcript-hashes.json absent: skipped"))
  func transcriptHashes() throws {
    for item: TranscriptCase in try implementedCases("transcript-hashes") {
      let crypto = try item.crypto()
      let commit = try AuthenticatedContent(decoding: item.authenticated_content.bytes)
      #expect(commit.encoded() == item.authenticated_content.bytes)
      let confirmed = Transcript.confirmed(
        interimBefore: item.interim_transcript_hash_before.bytes, commit: commit, crypto: crypto)
      #expect(confirmed == item.confirmed_transcript_hash_after.bytes)
      let tag = try #require(commit.authentication.confirmationTag)
      #expect(crypto.isValidMAC(tag, of: confirmed, key: item.confirmation_key.secret))
      #expect(
        Transcript.interim(confirmed: confirmed, confirmationTag: tag, crypto: crypto)
          == item.interim_transcript_hash_after.bytes)
    }
  }

  @Test(
    "RFC 9420 §9: secret-tree.json",
    .enabled(if: Vectors.has("mls/secret-tree.json"), "mls/secret-tree.json absent: skipped"))
  func secretTree() throws {
    for item: SecretTreeCase in try implementedCases("secret-tree") {
      let crypto = try item.crypto()
      let senderKey = MessageKeys.senderDataKey(
        item.sender_data.sender_data_secret.secret, ciphertext: item.sender_data.ciphertext.bytes,
        crypto: crypto)
      #expect(senderKey.key.bytes == item.sender_data.key.bytes)
      #expect(senderKey.nonce.bytes == item.sender_data.nonce.bytes)
      var tree = SecretTree(
        encryptionSecret: item.encryption_secret.secret, size: TreeSize(holding: item.leaves.count))
      for (leaf, generations) in item.leaves.enumerated() {
        for generation in generations {
          for type in [ContentType.application, .commit] {
            let (key, _) = try tree.peek(
              LeafIndex(UInt32(leaf)), type, generation: generation.generation, limits: RatchetLimits(),
              crypto: crypto)
            let application = type == .application
            #expect(
              key.key.bytes
                == (application ? generation.application_key : generation.handshake_key).bytes)
            #expect(
              key.nonce.bytes
                == (application ? generation.application_nonce : generation.handshake_nonce).bytes)
          }
        }
      }
    }
  }

  // Rules: V512
  @Test("RFC 9420 §9.1: a key is there once, in any order within the window")
  func ratchetOrder() throws {
    let crypto = try SuiteCrypto(.x25519AES128GCM)
    let secret = Secret(copying: [UInt8](repeating: 7, count: 32))
    var sender = HashRatchet(secret)
    let sent = try (0..<6).map { _ in try sender.next(crypto).key.key.bytes }
    var receiver = HashRatchet(secret)
    for wanted: UInt32 in [3, 0, 5, 1, 4, 2] {
      let (key, step) = try receiver.peek(wanted, limits: RatchetLimits(), crypto: crypto)
      #expect(key.key.bytes == sent[Int(wanted)])
      receiver.accept(step)
      #expect(throws: MLSError.message(.generationUsed(wanted))) {
        try receiver.peek(wanted, limits: RatchetLimits(), crypto: crypto)
      }
    }
  }

  // Rules: V512 V513
  @Test("e2ee 3.3: the forward ratchet is capped, and a refused jump changes nothing")
  func ratchetCap() throws {
    let crypto = try SuiteCrypto(.x25519AES128GCM)
    var ratchet = HashRatchet(Secret(copying: [UInt8](repeating: 7, count: 32)))
    let limits = RatchetLimits(maximumForwardDistance: 100, maximumSkippedKeys: 10)
    for wanted: UInt32 in [101, 1 << 31, UInt32.max] {
      #expect(throws: MLSError.message(.generationTooFarAhead(wanted))) {
        try ratchet.peek(wanted, limits: limits, crypto: crypto)
      }
    }
    let (_, step) = try ratchet.peek(100, limits: limits, crypto: crypto)
    #expect(ratchet.generation == 0)
    ratchet.accept(step)
    #expect(ratchet.generation == 101)
    // Only the ten youngest skipped keys stay.
    _ = try ratchet.peek(90, limits: limits, crypto: crypto)
    #expect(throws: MLSError.message(.generationUsed(89))) {
      try ratchet.peek(89, limits: limits, crypto: crypto)
    }
  }
}
