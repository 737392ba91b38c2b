import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeMLS

@Suite("Trees: copies share what neither changed")
struct TreeSharingTests {
  @Test("blocks hold what an array would, at every length", arguments: [0, 1, 31, 32, 33, 100, 1_023, 1_024])
  func blocks(count: Int) {
    var random = RandomSource(seed: UInt64(count))
    var blocks = SharedBlocks(repeating: 0, count: count)
    var nodes = SharedInnerNodes(repeating: 0, count: count)
    var plain = [Int](repeating: 0, count: count)
    let (oldBlocks, oldNodes) = (blocks, nodes)
    for _ in 0..<min(500, 5 * count) {
      let place = Int.random(in: 0..<count, using: &random)
      let value = Int.random(in: 1...9, using: &random)
      blocks[place] = value
      nodes[place] = value
      plain[place] = value
    }
    #expect((0..<count).map { blocks[$0] } == plain)
    #expect((0..<count).map { nodes[$0] } == plain)
    #expect((0..<count).allSatisfy { oldBlocks[$0] == 0 && oldNodes[$0] == 0 })
    for newCount in [2 * count + 1, count / 2, 0] {
      blocks.resize(to: newCount, repeating: 7)
      nodes.resize(to: newCount, repeating: 7)
      plain = Array(plain.prefix(newCount))
      plain += repeatElement(7, count: newCount - plain.count)
      #expect((0..<newCount).map { blocks[$0] } == plain)
      #expect((0..<newCount).map { nodes[$0] } == plain)
    }
  }

  @Test("keys are counted as a dictionary would, whatever their length")
  func keyCounts() {
    var random = RandomSource(seed: 3)
    let keys = (0..<600).map { random.bytes([0, 5, 32, 33, 133][$0 % 5]) + [] }
    var counts = KeyCounts()
    var plain: [[UInt8]: Int] = [:]
    for round in 0..<5_000 {
      let key = keys[Int.random(in: 0..<keys.count, using: &random)]
      let change = round % 3 == 0 && plain[key, default: 0] > 0 ? -1 : 1
      counts.add(change, to: key)
      plain[key, default: 0] += change
    }
    let same = keys.allSatisfy { counts[$0] == plain[$0, default: 0] }
    #expect(same)
  }

  @Test("a tree that changed equals one read anew: hashes, shape, free leaves (RFC 9420 §7.7, §7.8)")
  func randomChanges() throws {
    var random = RandomSource(seed: 5)
    let client = try makeClient("member", using: &random)
    let crypto = client.crypto
    func leaf() throws -> LeafNode { try client.makeLeaf(source: .update, using: &random).leaf }
    var tree = RatchetTree(try leaf(), crypto: crypto)
    var present: Set<UInt32> = [0]
    for round in 0..<300 {
      let shrinking = round / 60 % 2 == 1
      if present.count > 1, Int.random(in: 0..<10, using: &random) < (shrinking ? 8 : 3) {
        let gone = try #require(present.sorted().randomElement(using: &random))
        tree.remove(LeafIndex(gone))
        present.remove(gone)
      } else {
        let free = (0...UInt32.max).first { !present.contains($0) }
        let added = try tree.add(leaf())
        #expect(added.value == free)
        present.insert(added.value)
      }
      if round % 4 == 0, let own = present.sorted().randomElement(using: &random) {
        for step in tree.filteredDirectPath(of: LeafIndex(own)) {
          let key = random.bytes(32)
          tree.set(step.node, ParentNode(encryptionKey: key, parentHash: random.bytes(32)))
        }
        tree.set(LeafIndex(own), try leaf())
      }
      let old = tree
      var read = try RatchetTree(tree.wire, crypto: crypto)
      #expect(tree.rootHash() == read.rootHash())
      #expect(tree.size == read.size && tree.members == read.members)
      #expect(Set(tree.members.map(\.value)) == present)
      #expect(tree.size == TreeSize(holding: Int(present.max() ?? 0) + 1))
      #expect(old.wire == tree.wire)
      for index in tree.members {
        #expect(
          tree.filteredDirectPath(of: index).map(\.node) == read.filteredDirectPath(of: index).map(\.node))
      }
    }
  }

  @Test("a commit makes the hashes of one path stale, not those of the group")
  func staleHashes() throws {
    for count in [64, 512] {
      var warm = try WarmMembers(count)
      let depth = TreeSize(holding: count).root.level
      var tree = warm.groups[0].group.epoch.tree
      _ = tree.rootHash()
      #expect(tree.staleHashCount == 0)
      tree.update(LeafIndex(7), try warm.clients[7].makeLeaf(source: .update, using: &warm.random).leaf)
      #expect(tree.staleHashCount == Int(depth) + 1)
      #expect(warm.groups[0].group.epoch.tree.staleHashCount == 0)
    }
  }

  @Test("many unmerged leaves: kept in order, checked, and out of the original hash (RFC 9420 §7.9)")
  func unmergedLeaves() throws {
    var warm = try WarmMembers(40, lifetime: day)
    let clients = try (0..<200).map { try makeClient("new \($0)", using: &warm.random) }
    let joiners = try clients.map { try $0.makeKeyPackage(lifetime: day, using: &warm.random) }
    let adder = warm.groups[3]
    let bundle = try adder.group.add(
      joiners.map(\.keyPackage), path: false, at: noon, using: &warm.random)
    try adder.group.mergePendingCommit(at: noon)
    // Leaves 40 to 63 were free in the tree of 64; what is above it is blank.
    let top = try #require(adder.group.epoch.tree.parent(NodeIndex(63)))
    #expect(top.unmergedLeaves == (40..<64).map { LeafIndex($0) })
    let joined = try MLSGroup.join(
      try #require(bundle.welcome), keyPackages: [joiners[150]], client: clients[150])
    #expect(joined.epochAuthenticator == adder.group.epochAuthenticator)
    #expect(joined.epoch.tree.wire == adder.group.epoch.tree.wire)
  }

  @Test("lists of leaves in ascending order")
  func ascendingLeaves() {
    let list = [1, 3, 4, 9, 12].map { LeafIndex($0) }
    #expect(list.insertionPlace(of: LeafIndex(4)) == 2 && list.insertionPlace(of: LeafIndex(20)) == 5)
    #expect(list.containsAscending(LeafIndex(9)) && !list.containsAscending(LeafIndex(10)))
    #expect(
      list.ascending(without: [0, 3, 9, 13].map { LeafIndex($0) }) == [1, 4, 12].map { LeafIndex($0) })
    // Leaves 0 to 3.
    #expect(list.places(below: NodeIndex(3)) == 0..<2)
  }
}
