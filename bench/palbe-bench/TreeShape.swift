import PalbeMLSMessages

/// Which nodes of a public tree are blank, and what an operation on it costs at least.
///
/// Read from the wire form and independent of the engine's own tree. The counts:
///
///     a path of the member at a leaf    a key pair for the leaf and for each node of the filtered direct path; a
///                                       message to each node of the copath's resolutions but the leaves just added;
///                                       a signature of the leaf
///     a commit                          a signature of its own
///     an added member                   verifications of its key package and of the leaf in it; a message of the Welcome
///     a Welcome                         a signature of the GroupInfo
///     processing a commit               verifications of the commit and of the path's leaf; one message opened; the
///                                       public key of each path node from the one above both members up
///     joining                           verifications of every leaf and of the GroupInfo; one message opened; the
///                                       public key of each path node above both that the path secret gives
///
/// A message sealed is a key pair and a shared secret, one opened a shared secret.
struct TreeShape {
  let nodes: [TreeNode?]
  let leafCount: Int

  init(_ tree: RatchetTreeExtension) {
    nodes = tree.nodes
    var count = 1
    while count < nodes.count / 2 + 1 { count *= 2 }
    leafCount = count
  }

  /// A tree of so many leaves and nothing else; only which nodes are there counts.
  init(width: Int) {
    let leaf = TreeNode.parent(ParentNode(encryptionKey: [], parentHash: []))
    self.init(RatchetTreeExtension(nodes: (0..<2 * width - 1).map { $0 % 2 == 0 ? leaf : nil }))
  }

  /// The tree with one more leaf, at the first free place.
  func adding() -> (shape: TreeShape, leaf: Int) {
    var leaf = 0
    while node(2 * leaf) != nil { leaf += 1 }
    var nodes = nodes
    while nodes.count <= 2 * leaf { nodes.append(nil) }
    nodes[2 * leaf] = .parent(ParentNode(encryptionKey: [], parentHash: []))
    return (TreeShape(RatchetTreeExtension(nodes: nodes)), leaf)
  }

  var memberCount: Int { nodes.enumerated().count { $0.offset % 2 == 0 && $0.element != nil } }

  private func node(_ place: Int) -> TreeNode? { place < nodes.count ? nodes[place] : nil }

  /// How many keys reach everybody in the subtree of `width` leaves from `first` on, without `added` ones.
  private func resolutionCount(first: Int, width: Int, without added: Set<Int>) -> Int {
    guard width > 1 else { return node(2 * first) == nil || added.contains(first) ? 0 : 1 }
    if case .parent(let parent)? = node(2 * first + width - 1) {
      return 1 + parent.unmergedLeaves.count { !added.contains(Int($0.value)) }
    }
    return resolutionCount(first: first, width: width / 2, without: added)
      + resolutionCount(first: first + width / 2, width: width / 2, without: added)
  }

  private func isEmpty(first: Int, width: Int) -> Bool {
    (first..<first + width).allSatisfy { node(2 * $0) == nil }
  }

  /// The filtered direct path of a leaf, from below: the leaves under each node, and how many keys it is sealed to.
  func path(of leaf: Int, without added: Set<Int> = []) -> [(leaves: Range<Int>, keys: Int)] {
    var path: [(leaves: Range<Int>, keys: Int)] = []
    var width = 1
    while width < leafCount {
      let sibling = (leaf / width ^ 1) * width
      let first = leaf / (2 * width) * (2 * width)
      if !isEmpty(first: sibling, width: width) {
        path.append(
          (first..<first + 2 * width, resolutionCount(first: sibling, width: width, without: added)))
      }
      width *= 2
    }
    return path
  }

  /// A commit with a path, which adds `added`. Signatures come last: the lengths are the caller's to know.
  func commit(by leaf: Int, adding added: Set<Int> = []) -> RawWork {
    let path = path(of: leaf, without: added)
    var work = RawWork(publicKeys: 1 + path.count)
    work.seal(path.reduce(0) { $0 + $1.keys } + added.count)
    return work
  }

  /// Opening a path of `sender` at `receiver`.
  func open(from sender: Int, at receiver: Int) -> RawWork {
    RawWork(publicKeys: path(of: sender).count { $0.leaves.contains(receiver) }, sharedSecrets: 1)
  }
}
