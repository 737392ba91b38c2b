import PalbeCrypto
import PalbeMLSMessages
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeMLS

struct PassiveClientCase: SuiteCase {
  struct PSK: Decodable { let psk_id, psk: HexBytes }
  struct Epoch: Decodable {
    let proposals: [HexBytes]
    let commit, epoch_authenticator: HexBytes
  }
  let cipher_suite: UInt16
  let external_psks: [PSK]
  let key_package, signature_priv, encryption_priv, init_priv, welcome: HexBytes
  let ratchet_tree: HexBytes?
  let initial_epoch_authenticator: HexBytes
  let epochs: [Epoch]

  /// The vectors' key packages never end.
  private static var configuration: MLSConfiguration {
    var result = MLSConfiguration()
    result.maximumLifetimeSeconds = nil
    return result
  }

  func run() throws {
    let crypto = try crypto()
    guard case .keyPackage(let keyPackage) = try MLSMessage(decoding: key_package.bytes) else {
      Issue.record("expected a key package")
      return
    }
    let client = try MLSClient(
      cipherSuite: crypto.suite, credential: keyPackage.leafNode.credential,
      capabilities: keyPackage.leafNode.capabilities, configuration: Self.configuration,
      signatureKey: try signature_priv.signatureKey(crypto))
    let bundle = KeyPackageBundle(
      keyPackage: keyPackage, reference: crypto.reference(to: keyPackage), initKey: init_priv.hpkeKey(crypto),
      encryptionKey: encryption_priv.hpkeKey(crypto))
    let tree = try ratchet_tree.map { try RatchetTreeExtension(decoding: $0.bytes) }
    var group = try MLSGroup.join(
      try MLSMessage(decoding: welcome.bytes), keyPackages: [bundle], client: client, ratchetTree: tree,
      preSharedKeys: external_psks.map {
        PreSharedKey(id: $0.psk_id.bytes, key: SymmetricKey(copying: $0.psk.bytes))
      })
    #expect(HexBytes(group.epochAuthenticator) == initial_epoch_authenticator)
    // The key packages of the vectors are valid in 2023.
    guard case .keyPackage(let lifetime) = keyPackage.leafNode.source else { return }
    let time = lifetime.notBefore / 2 + lifetime.notAfter / 2
    for epoch in epochs {
      for proposal in epoch.proposals { _ = try group.process(proposal.bytes, at: time) }
      let result = try group.process(epoch.commit.bytes, at: time)
      guard case .commit = result else {
        Issue.record("expected a commit")
        return
      }
      #expect(HexBytes(group.epochAuthenticator) == epoch.epoch_authenticator)
    }
  }
}

@Suite("RFC 9420: a client that only listens")
struct PassiveClientTests {
  @Test(
    "e2ee 6.9: passive-client files, with every shape of tree",
    .enabled(if: Vectors.has("mls/passive-client-random.json"), "mls/passive-client-*.json absent: skipped"),
    arguments: ["passive-client-welcome", "passive-client-handling-commit", "passive-client-random"])
  func passive(name: String) throws {
    for (index, item) in try implementedCases(name, as: PassiveClientCase.self).enumerated() {
      do { try item.run() } catch { Issue.record("\(name) case \(index): \(error)") }
    }
  }
}
