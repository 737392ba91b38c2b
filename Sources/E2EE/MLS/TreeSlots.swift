import PalbeMLSMessages
import PalbeWire

/// A leaf in a box: a block of leaves is copied without touching what they hold.
final class BoxedLeaf: Sendable {
  let node: LeafNode
  init(_ node: LeafNode) { self.node = node }
}

struct LeafSlot: Sendable {
  var leaf: BoxedLeaf?
  var hash = CachedHash()
}

/// A parent in a box, but for its unmerged leaves, which change while the rest stays.
final class BoxedParent: Sendable {
  let encryptionKey: [UInt8]
  let parentHash: [UInt8]

  init(_ node: ParentNode) {
    encryptionKey = node.encryptionKey
    parentHash = node.parentHash
  }
}

struct ParentSlot: Sendable {
  private var parent: BoxedParent?
  /// Ascending; nil stands for none.
  private var unmerged: [LeafIndex]?
  var hash = CachedHash()
  /// Leaves below that have a member.
  var memberCount: UInt32 = 0

  var isBlank: Bool { parent == nil }
  var encryptionKey: [UInt8]? { parent?.encryptionKey }
  var unmergedLeaves: [LeafIndex] { unmerged ?? [] }

  var node: ParentNode? {
    get {
      parent.map {
        ParentNode(
          encryptionKey: $0.encryptionKey, parentHash: $0.parentHash, unmergedLeaves: unmergedLeaves)
      }
    }
    set {
      parent = newValue.map(BoxedParent.init)
      unmerged = newValue.flatMap { $0.unmergedLeaves.isEmpty ? nil : $0.unmergedLeaves }
    }
  }

  /// Nothing where blank: who is below is known from the leaves.
  mutating func addUnmerged(_ leaf: LeafIndex) {
    guard parent != nil else { return }
    let place = unmerged?.insertionPlace(of: leaf) ?? 0
    unmerged?.insert(leaf, at: place)
    if unmerged == nil { unmerged = [leaf] }
  }
}

/// A hash, or nothing where it must be computed again. Plain bytes, which a block copies at once.
struct CachedHash: Sendable {
  private var bytes = [64 of UInt8](repeating: 0)
  private var count: UInt8 = 0

  var isEmpty: Bool { count == 0 }

  var value: [UInt8]? { count == 0 ? nil : [UInt8](bytes.span.extracting(first: Int(count))) }

  mutating func set(_ hash: [UInt8]) {
    for index in hash.indices { bytes[index] = hash[index] }
    count = UInt8(hash.count)
  }

  mutating func clear() { count = 0 }
}
