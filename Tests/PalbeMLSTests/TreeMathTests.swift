import PalbeMLSMessages
import PalbeTestKit
import Testing

@testable import PalbeMLS

private struct TreeMathCase: Decodable {
  let n_leaves: Int
  let n_nodes: Int
  let root: UInt32
  let left: [UInt32?]
  let right: [UInt32?]
  let parent: [UInt32?]
  let sibling: [UInt32?]
}

@Suite("RFC 9420 appendix C: tree math")
struct TreeMathTests {
  @Test(
    "tree-math.json", .enabled(if: Vectors.has("mls/tree-math.json"), "mls/tree-math.json absent: skipped"))
  func vectors() throws {
    let cases = try Vectors.load("mls/tree-math.json", as: [TreeMathCase].self)
    for item in cases {
      let size = TreeSize(holding: item.n_leaves)
      #expect(size.leafCount == item.n_leaves)
      #expect(size.nodeCount == item.n_nodes)
      #expect(size.root.value == item.root)
      for index in 0..<item.n_nodes {
        let node = NodeIndex(UInt32(index))
        #expect(node.left?.value == item.left[index])
        #expect(node.right?.value == item.right[index])
        #expect(size.parent(of: node)?.value == item.parent[index])
        #expect(size.sibling(of: node)?.value == item.sibling[index])
      }
    }
    print("tree-math.json: \(cases.count) cases")
  }

  @Test("Parents, children, siblings and leaf ranges agree with each other", arguments: [1, 2, 4, 8, 64])
  func consistency(leaves: Int) {
    let size = TreeSize(holding: leaves)
    for index in 0..<UInt32(size.nodeCount) {
      let node = NodeIndex(index)
      if let left = node.left, let right = node.right {
        #expect(size.parent(of: left) == node)
        #expect(size.parent(of: right) == node)
        #expect(size.sibling(of: left) == right)
        #expect(node.leaves == left.leaves.lowerBound...right.leaves.upperBound)
      }
    }
    for leaf in 0..<UInt32(leaves) {
      let path = size.directPath(of: LeafIndex(leaf))
      #expect(path.last == (leaves == 1 ? nil : size.root))
      #expect(path.allSatisfy { $0.isAncestor(of: LeafIndex(leaf)) })
    }
  }

  @Test("e2ee 6.11: a leaf outside the tree is nobody")
  func outside() {
    let size = TreeSize(holding: 5)
    #expect(size.leafCount == 8)
    #expect(!size.contains(LeafIndex(8)))
    #expect(!size.contains(LeafIndex(UInt32.max)))
    #expect(TreeSize(holdingNodes: 1).leafCount == 1)
    #expect(TreeSize(holdingNodes: 4).leafCount == 4)
    #expect(TreeSize(holdingNodes: 9).leafCount == 8)
  }
}
