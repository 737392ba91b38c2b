import PalbeMLSMessages
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@testable import PalbeMLS

private struct TreeOperationCase: SuiteCase {
  let cipher_suite: UInt16
  let proposal, tree_before, tree_after, tree_hash_before, tree_hash_after: HexBytes
  let proposal_sender: UInt32
}

private struct TreeValidationCase: SuiteCase {
  let cipher_suite: UInt16
  let tree, group_id: HexBytes
  let tree_hashes: [HexBytes]
  let resolutions: [[UInt32]]
}

private struct TreeKEMCase: SuiteCase {
  struct PathSecret: Decodable {
    let node: UInt32
    let path_secret: HexBytes
  }
  struct Leaf: Decodable {
    let index: UInt32
    let encryption_priv, signature_priv: HexBytes
    let path_secrets: [PathSecret]
  }
  struct Path: Decodable {
    let sender: UInt32
    let update_path, commit_secret, tree_hash_after: HexBytes
    let path_secrets: [HexBytes?]
  }
  let cipher_suite: UInt16
  let group_id, confirmed_transcript_hash, ratchet_tree: HexBytes
  let epoch: UInt64
  let leaves_private: [Leaf]
  let update_paths: [Path]
}

@Suite("RFC 9420 §7: ratchet trees")
struct TreeVectorTests {
  @Test(
    "RFC 9420 §7.7, §7.8: tree-operations.json",
    .enabled(if: Vectors.has("mls/tree-operations.json"), "mls/tree-operations.json absent: skipped"))
  func operations() throws {
    for item: TreeOperationCase in try implementedCases("tree-operations") {
      var tree = try RatchetTree(
        RatchetTreeExtension(decoding: item.tree_before.bytes), crypto: try item.crypto())
      #expect(tree.rootHash() == item.tree_hash_before.bytes)
      switch try Proposal(decoding: item.proposal.bytes) {
      case .add(let keyPackage): _ = try tree.add(keyPackage.leafNode)
      case .update(let leaf): tree.update(LeafIndex(item.proposal_sender), leaf)
      case .remove(let leaf): tree.remove(leaf)
      default: Issue.record("unexpected proposal")
      }
      #expect(tree.wire.encoded() == item.tree_after.bytes)
      #expect(tree.rootHash() == item.tree_hash_after.bytes)
    }
  }

  @Test(
    "RFC 9420 §7.9, §4.1.1: tree-validation.json",
    .enabled(if: Vectors.has("mls/tree-validation.json"), "mls/tree-validation.json absent: skipped"))
  func validation() throws {
    for item: TreeValidationCase in try implementedCases("tree-validation") {
      let crypto = try item.crypto()
      var tree = try RatchetTree(RatchetTreeExtension(decoding: item.tree.bytes), crypto: crypto)
      #expect(tree.size.nodeCount == item.tree_hashes.count)
      for index in 0..<min(tree.size.nodeCount, item.tree_hashes.count) {
        let node = NodeIndex(UInt32(index))
        #expect(tree.hash(node) == item.tree_hashes[index].bytes)
        #expect(tree.resolution(node).map(\.value) == item.resolutions[index])
      }
      try TreeValidation.checkUniqueKeys(tree)
      try TreeValidation.checkUnmergedLeaves(tree)
      try TreeValidation.checkParentHashes(&tree)
      let rules = try LeafValidation(
        crypto: crypto, policy: AnyCredentialAccepted(), groupID: item.group_id.bytes, extensions: [])
      for index in tree.members { try rules.checkSignature(try #require(tree[index]), at: index) }
      #expect(tree.wire.encoded() == item.tree.bytes)
    }
  }

  private func privateKeys(_ leaf: TreeKEMCase.Leaf, crypto: SuiteCrypto) throws -> [NodeIndex: Secret] {
    var keys = [NodeIndex(LeafIndex(leaf.index)): leaf.encryption_priv.hpkeKey(crypto)]
    for item in leaf.path_secrets {
      let node = crypto.derive(item.path_secret.secret, label: "node")
      keys[NodeIndex(item.node)] = try crypto.deriveKeyPair(node).privateKey
    }
    return keys
  }

  @Test(
    "RFC 9420 §7.6: treekem.json, every leaf opens every path, and a path of ours",
    .enabled(if: Vectors.has("mls/treekem.json"), "mls/treekem.json absent: skipped"))
  func treeKEM() throws {
    var random = RandomSource(seed: 1)
    for item: TreeKEMCase in try implementedCases("treekem") {
      let crypto = try item.crypto()
      let before = try RatchetTree(
        RatchetTreeExtension(decoding: item.ratchet_tree.bytes), crypto: crypto)
      var context = GroupContext(
        cipherSuite: crypto.suite, groupID: item.group_id.bytes, epoch: item.epoch, treeHash: [],
        confirmedTranscriptHash: item.confirmed_transcript_hash.bytes)
      for vector in item.update_paths {
        let sender = LeafIndex(vector.sender)
        let path = try UpdatePath(decoding: vector.update_path.bytes)
        #expect(path.encoded() == vector.update_path.bytes)
        var tree = before
        let steps = try TreeKEM.merge(path, from: sender, into: &tree, added: [])
        #expect(tree.rootHash() == vector.tree_hash_after.bytes)
        let rules = try LeafValidation(
          crypto: crypto, policy: AnyCredentialAccepted(), groupID: item.group_id.bytes, extensions: [])
        try rules.checkSignature(path.leafNode, at: sender)
        context.treeHash = vector.tree_hash_after.bytes
        for leaf in item.leaves_private where leaf.index != vector.sender {
          let opened = try TreeKEM.open(
            path, steps, at: LeafIndex(leaf.index), holding: try privateKeys(leaf, crypto: crypto),
            in: tree, context: context.encoded(), added: [])
          #expect(opened.pathSecret.bytes == vector.path_secrets[Int(leaf.index)]?.bytes)
          #expect(opened.commitSecret.bytes == vector.commit_secret.bytes)
        }

        // A path of our own from the same leaf.
        let own = try #require(item.leaves_private.first { $0.index == vector.sender })
        let template = TreeKEM.LeafTemplate(
          leaf: try #require(before[sender]),
          signatureKey: try own.signature_priv.signatureKey(crypto),
          groupID: item.group_id.bytes)
        var ours = before
        let created = try TreeKEM.create(
          in: &ours, at: sender, template, context: context, added: [], using: &random)
        var theirs = before
        let theirSteps = try TreeKEM.merge(created.path, from: sender, into: &theirs, added: [])
        #expect(theirs.rootHash() == created.context.treeHash)
        try rules.checkSignature(created.path.leafNode, at: sender)
        for leaf in item.leaves_private where leaf.index != vector.sender {
          let opened = try TreeKEM.open(
            created.path, theirSteps, at: LeafIndex(leaf.index),
            holding: try privateKeys(leaf, crypto: crypto), in: theirs,
            context: created.context.encoded(), added: [])
          #expect(opened.commitSecret.bytes == created.commitSecret.bytes)
        }
      }
    }
  }
}
