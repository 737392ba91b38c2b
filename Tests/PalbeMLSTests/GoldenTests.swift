import Foundation
import PalbeCrypto
import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

/// Vectors of our own making, so that a checkout without the published ones tests the same code.
/// `PALBE_RECORD_GOLDEN=1` writes them anew; they were first written when all published vectors passed.
@Suite("Golden vectors of our own")
struct GoldenTests {
  private static let folder = "Tests/PalbeMLSTests/Golden/"
  private static let records = ProcessInfo.processInfo.environment["PALBE_RECORD_GOLDEN"] != nil

  private func golden(_ name: String, recording produce: () throws -> String) throws -> Data {
    if Self.records {
      let url = Vectors.projectRoot.appendingPathComponent(Self.folder + name)
      try Data(try produce().utf8).write(to: url)
    }
    return try Vectors.golden(Self.folder + name)
  }

  @Test("RFC 9420 §5, §8, §9: derivations keep their values")
  func derivations() throws {
    let produced = try trace()
    let stored = try golden("derivations.txt") { produced }
    #expect(String(decoding: stored, as: UTF8.self) == produced)
  }

  @Test("RFC 9420 §12: a client that only listens follows a stored history of every kind of commit")
  func history() throws {
    let stored = try golden("passive-client.json") { try makeHistory() }
    let cases = try JSONDecoder().decode([PassiveClientCase].self, from: stored)
    #expect(cases.count == 1)
    for item in cases { try item.run() }
  }

  /// One line a value: a name and hexadecimal.
  private func trace() throws -> String {
    var lines: [String] = []
    func line(_ name: String, _ bytes: [UInt8]) { lines.append("\(name) \(Hex.encode(bytes))") }
    func secret(_ byte: UInt8) -> Secret { Secret(copying: [UInt8](repeating: byte, count: 32)) }
    for suite in [1, 3, 2, 4, 5, 6, 7].map(CipherSuite.init(rawValue:)) {
      lines.append("suite \(suite.rawValue)")
      let crypto = try SuiteCrypto(suite)
      line("ref_hash", crypto.refHash(label: "label", [1, 2, 3]))
      line("expand", crypto.expand(secret(1), label: "label", context: [4], byteCount: 40).bytes)
      line("derive_tree", crypto.deriveTree(secret(1), label: "key", generation: 7, byteCount: 16).bytes)
      let keys = try crypto.deriveKeyPair(secret(2))
      line("hpke_private", keys.privateKey.bytes)
      line("hpke_public", keys.publicKey)
      // Below the order of every group.
      var seed = [UInt8](repeating: 3, count: crypto.signatures.privateKeyByteCount)
      if !crypto.isEdwards { seed[0] = 0 }
      let signer = try SignatureKey(crypto.signatures, rawRepresentation: seed.span)
      let signature = try crypto.sign([1, 2, 3], label: "Test", key: signer)
      if crypto.isEdwards {
        line("signature", signature)
      } else {
        // Another one at every call.
        line("signature_public", signer.publicKey)
        #expect(crypto.isValid(signature, of: [1, 2, 3], label: "Test", key: signer.publicKey))
      }
      var random = RandomSource(seed: 1)
      let sealed = try crypto.encrypt(
        secret(4), to: keys.publicKey, label: "Test", context: [5], using: &random)
      line("encrypt_with_label", sealed.encoded())

      let context = GroupContext(
        cipherSuite: suite, groupID: [1], epoch: 2, treeHash: [3], confirmedTranscriptHash: [4],
        extensions: [Extension(type: .requiredCapabilities, data: [0, 0, 0])])
      line("group_context", context.encoded())
      let psk = KeySchedule.pskSecret(
        [
          (PreSharedKeyID(source: .external(id: [1]), nonce: [2]), secret(6)),
          (
            PreSharedKeyID(source: .resumption(usage: .application, groupID: [1], epoch: 1), nonce: [3]),
            secret(7)
          ),
        ], crypto: crypto)
      line("psk_secret", psk.bytes)
      let schedule = KeySchedule(
        initSecret: secret(8), commitSecret: secret(9), pskSecret: psk, context: context.encoded(),
        crypto: crypto)
      line("joiner", schedule.joinerSecret.bytes)
      line("welcome", schedule.welcomeSecret.bytes)
      let secrets = schedule.secrets
      for (name, value) in [
        ("sender_data", secrets.senderData), ("encryption", try #require(secrets.encryption)),
        ("exporter", try #require(secrets.exporter)), ("external", secrets.external),
        ("confirmation", secrets.confirmationKey), ("membership", secrets.membershipKey),
        ("resumption", secrets.resumption), ("authenticator", secrets.authenticator),
        ("init", secrets.initSecret),
        (
          "exported",
          try #require(secrets.export(label: bytes("label"), context: [1], byteCount: 32, crypto: crypto))
        ),
      ] {
        line(name, value.bytes)
      }
      var tree = SecretTree(encryptionSecret: try #require(secrets.encryption), size: TreeSize(holding: 5))
      for leaf: UInt32 in [0, 3, 7] {
        for type in [ContentType.application, .proposal] {
          for generation: UInt32 in [0, 2] {
            let (key, _) = try tree.peek(
              LeafIndex(leaf), type, generation: generation, limits: RatchetLimits(), crypto: crypto)
            line("ratchet_\(leaf)_\(type)_\(generation)", key.key.bytes + key.nonce.bytes)
          }
        }
      }
      let senderKey = MessageKeys.senderDataKey(
        secrets.senderData, ciphertext: [UInt8](0..<100), crypto: crypto)
      line("sender_data_key", senderKey.key.bytes + senderKey.nonce.bytes)
      let commit = AuthenticatedContent(
        wireFormat: .privateMessage,
        content: FramedContent(
          groupID: [1], epoch: 2, sender: .member(LeafIndex(1)), authenticatedData: [],
          content: .commit(Commit(proposals: [], path: nil))),
        authentication: ContentAuthentication(signature: [1], confirmationTag: [2]))
      let confirmed = Transcript.confirmed(interimBefore: [1], commit: commit, crypto: crypto)
      line("confirmed", confirmed)
      line("interim", Transcript.interim(confirmed: confirmed, confirmationTag: [2], crypto: crypto))
      line("proposal_ref", crypto.reference(to: commit).bytes)
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// A history in the form of the published passive-client files.
  private func makeHistory() throws -> String {
    var publicHandshakes = MLSConfiguration()
    publicHandshakes.handshakeFormat = .publicMessage
    var group = try TestGroup(3, seed: 2_024)
    let bob = try makeClient("bob", publicHandshakes, using: &group.random)
    let bobsPackage = try bob.makeKeyPackage(lifetime: day, using: &group.random)
    let bobsWelcome = try group.members[0].group.add(
      [bobsPackage.keyPackage], at: noon, using: &group.random)
    try group.deliver(bobsWelcome, from: 0)
    group.members.append(
      TestMember(
        bob,
        try MLSGroup.join(
          try #require(bobsWelcome.welcome), keyPackages: [bobsPackage], client: bob)))
    let key: [UInt8] = [1, 2, 3, 4]
    for member in group.members {
      member.group.register(PreSharedKey(id: [7], key: SymmetricKey(copying: key)))
    }

    // The listener joins by a commit with a pre-shared key.
    let listener = try makeClient("listener", using: &group.random)
    let package = try listener.makeKeyPackage(lifetime: day, using: &group.random)
    let psk = try group.members[0].group.proposePreSharedKey(id: [7], using: &group.random)
    for member in group.members { _ = try member.process(psk) }
    let joining = try group.members[0].group.add([package.keyPackage], at: noon, using: &group.random)
    try group.deliver(joining, from: 0)
    let initial = group.members[0].group.epochAuthenticator

    var epochs: [String] = []
    func epoch(_ proposals: [MLSMessage], _ committer: Int, _ list: [Proposal] = [], path: Bool = true) throws
    {
      for proposal in proposals { for member in group.members { _ = try member.process(proposal) } }
      let sender = group.members[committer]
      let bundle = try sender.group.commit(
        list, path: path, at: noon, using: &group.random)
      for member in group.members { _ = try member.process(bundle.commit) }
      group.members.removeAll { !$0.group.isActive }
      let hex = proposals.map { "\"\(Hex.encode($0.encoded()))\"" }.joined(separator: ",")
      epochs.append(
        """
        {"proposals":[\(hex)],"commit":"\(Hex.encode(bundle.commit.encoded()))",
        "epoch_authenticator":"\(Hex.encode(sender.group.epochAuthenticator))"}
        """)
    }
    try epoch([], 1)
    try epoch([try group.members[3].group.proposeUpdate(using: &group.random)], 0)
    let late = try makeClient("late", using: &group.random)
    let latePackage = try late.makeKeyPackage(lifetime: day, using: &group.random)
    try epoch([], 3, [.add(latePackage.keyPackage)], path: false)
    try epoch([try group.members[0].group.proposePreSharedKey(id: [7], using: &group.random)], 1, path: false)
    try epoch([], 0, [.groupContextExtensions([Extension(type: .requiredCapabilities, data: [0, 0, 0])])])
    try epoch(
      [try group.members[2].group.proposeRemove(group.members[2].group.ownLeaf, using: &group.random)], 3)
    try epoch([], 0)

    func hex(_ secret: Secret) -> String { Hex.encode(secret.bytes) }
    let signatureKey = Secret(listener.signatureKey.key.rawRepresentation)
    return """
      [{"cipher_suite":1,"external_psks":[{"psk_id":"07","psk":"\(Hex.encode(key))"}],
      "key_package":"\(Hex.encode(package.message.encoded()))",
      "signature_priv":"\(hex(signatureKey))","encryption_priv":"\(hex(package.encryptionKey))",
      "init_priv":"\(hex(package.initKey))","ratchet_tree":null,
      "welcome":"\(Hex.encode(try #require(joining.welcome).encoded()))",
      "initial_epoch_authenticator":"\(Hex.encode(initial))",
      "epochs":[
      \(epochs.joined(separator: ",\n"))
      ]}]

      """
  }
}

extension SuiteCrypto {
  /// True where a signature is the same for the same message.
  fileprivate var isEdwards: Bool { signatures == .ed25519 || signatures == .ed448 }
}
