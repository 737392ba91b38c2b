import PalbeCrypto
import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("RFC 9420 §7.3, RFC 9180 §7.1.4: keys that nothing can be sealed to")
struct PublicKeyTests {
  static let suites = [1, 2, 4, 5, 7].map(CipherSuite.init(rawValue:))

  /// Of the right length, but of small order or no point of the curve.
  private func badKeys(_ crypto: SuiteCrypto) -> [[UInt8]] {
    let count = crypto.hpke.kem.publicKeyByteCount
    let zeros = [UInt8](repeating: 0, count: count)
    if crypto.hpke.kem == .x25519 || crypto.hpke.kem == .x448 {
      return [zeros, [1] + zeros.dropFirst(), Array(zeros.dropLast())]
    }
    return [zeros, [4] + zeros.dropFirst(), [4] + [UInt8](repeating: 0xff, count: count - 1)]
  }

  // Rules: V102 V205
  @Test("A leaf with a small-order or invalid key comes in by no way", arguments: suites)
  func leaves(suite: CipherSuite) throws {
    var group = try TestGroup(3, suite: suite)
    let first = group.members[0]
    let crypto = first.client.crypto
    for key in badKeys(crypto) {
      // By a key package, its leaf's key or its init key.
      let client = try makeClient("new", suite: suite, using: &group.random)
      let leafKey = try keyPackage(of: client, using: &group.random) { $0.leafNode.encryptionKey = key }
      #expect(throws: MLSError.leafNode(.invalidEncryptionKey)) {
        _ = try first.group.add([leafKey], at: noon, using: &group.random)
      }
      let initKey = try keyPackage(of: client, using: &group.random) { $0.initKey = key }
      #expect(throws: MLSError.keyPackage(.invalidInitKey)) {
        _ = try first.group.add([initKey], at: noon, using: &group.random)
      }

      // By an Update.
      let other = group.members[1]
      var leaf = try #require(other.group.epoch.tree[LeafIndex(1)])
      leaf.encryptionKey = key
      leaf.source = .update
      try other.client.sign(&leaf, groupID: other.group.groupID, at: LeafIndex(1))
      #expect(throws: MLSError.leafNode(.invalidEncryptionKey)) {
        try LeafValidation(
          crypto: crypto, policy: AnyCredentialAccepted(), groupID: other.group.groupID, extensions: []
        ).check(leaf, at: LeafIndex(1))
      }
      let content = FramedContent(
        groupID: other.group.groupID, epoch: other.group.epochNumber, sender: .member(LeafIndex(1)),
        authenticatedData: [], content: .proposal(.update(leaf)))
      let signature = try Framing.sign(
        content, as: .publicMessage, context: other.group.epoch.contextBytes, key: other.client.signatureKey,
        crypto: crypto)
      let update = Framing.publicMessage(
        AuthenticatedContent(
          wireFormat: .publicMessage, content: content,
          authentication: ContentAuthentication(signature: signature)),
        context: other.group.epoch.contextBytes, membershipKey: other.group.epoch.secrets.membershipKey,
        crypto: crypto)
      #expect(throws: MLSError.leafNode(.invalidEncryptionKey)) {
        try first.process(.publicMessage(update))
      }
    }
    // Nobody's path fails.
    try group.update(by: 2)
    try group.checkAgreement()
  }

  // Rules: V301
  @Test("A tree with such a key in a leaf or a parent is refused by who joins", arguments: suites)
  func trees(suite: CipherSuite) throws {
    var group = try TestGroup(4, suite: suite)
    for committer in 0..<4 { try group.update(by: committer) }
    let epoch = group.members[0].group.epoch
    let rules = try LeafValidation(
      crypto: epoch.tree.crypto, policy: AnyCredentialAccepted(), groupID: epoch.context.groupID,
      extensions: [])
    let root = Int(epoch.tree.size.root.value)
    for key in badKeys(epoch.tree.crypto) {
      var wire = epoch.tree.wire
      guard case .parent(var parent)? = wire.nodes[root] else {
        Issue.record("expected a parent")
        return
      }
      parent.encryptionKey = key
      wire.nodes[root] = .parent(parent)
      #expect(throws: MLSError.tree(.invalidParentKey(node: root))) {
        var tree = try RatchetTree(wire, crypto: epoch.tree.crypto)
        try TreeValidation.check(&tree, rules)
      }
    }
  }
}
