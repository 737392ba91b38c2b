import PalbeMLSMessages

/// Lists of leaves in ascending order, as `unmerged_leaves` is: searched by halves and compared in one pass, so that long
/// lists in many nodes cost no more than their length.
extension RandomAccessCollection where Element == LeafIndex, Index == Int {
  /// The place of the first leaf that is not before `leaf`.
  func insertionPlace(of leaf: LeafIndex) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < leaf { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// True when an ascending list holds `leaf`.
  func containsAscending(_ leaf: LeafIndex) -> Bool {
    let place = insertionPlace(of: leaf)
    return place < endIndex && self[place] == leaf
  }

  /// The places of the leaves below a node.
  func places(below node: NodeIndex) -> Range<Int> {
    let leaves = node.leaves
    let start = insertionPlace(of: LeafIndex(leaves.lowerBound))
    return start..<insertionPlace(of: LeafIndex(leaves.upperBound + 1))
  }

  /// The leaves that are not among `others`, which are ascending too.
  func ascending(without others: some RandomAccessCollection<LeafIndex>) -> [LeafIndex] {
    var rest = others[...]
    return filter { leaf in
      while let first = rest.first, first < leaf { rest = rest.dropFirst() }
      return rest.first != leaf
    }
  }
}
