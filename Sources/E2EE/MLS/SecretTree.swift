import PalbeMLSMessages

/// How far a receiver goes along with loss and disorder.
public struct RatchetLimits: Sendable, Hashable {
  /// How many generations one message may be ahead; refused before any hashing beyond it.
  public var maximumForwardDistance: UInt32
  /// How many keys of messages not seen yet are kept for each sender and kind.
  public var maximumSkippedKeys: Int

  /// Limits as given.
  public init(maximumForwardDistance: UInt32 = 1_024, maximumSkippedKeys: Int = 1_024) {
    self.maximumForwardDistance = maximumForwardDistance
    self.maximumSkippedKeys = maximumSkippedKeys
  }
}

/// A sender's chain of message keys, RFC 9420 §9.1: each key is derived once and erased once used.
struct HashRatchet: Sendable {
  private(set) var generation: UInt32
  private(set) var secret: Secret
  private(set) var skipped: [UInt32: MessageKey]

  init(_ secret: Secret, at generation: UInt32 = 0, skipped: [UInt32: MessageKey] = [:]) {
    self.secret = secret
    self.generation = generation
    self.skipped = skipped
  }

  /// What `accept` does once a message proved genuine.
  struct Step: Sendable {
    fileprivate let generation: UInt32
    fileprivate let ahead: HashRatchet?
  }

  private mutating func advance(_ crypto: SuiteCrypto) -> MessageKey {
    let key = MessageKey(
      key: crypto.deriveTree(
        secret, label: "key", generation: generation, byteCount: crypto.keyByteCount),
      nonce: crypto.deriveTree(
        secret, label: "nonce", generation: generation, byteCount: crypto.nonceByteCount))
    secret = crypto.deriveTree(
      secret, label: "secret", generation: generation, byteCount: crypto.hashByteCount)
    generation += 1
    return key
  }

  /// The sender's next key; gone from here when it returns.
  mutating func next(_ crypto: SuiteCrypto) throws(MLSError) -> (generation: UInt32, key: MessageKey) {
    guard generation < UInt32.max else { throw .message(.generationsExhausted) }
    let used = generation
    return (used, advance(crypto))
  }

  /// The key of a received generation. Nothing changes until `accept`: a forged message costs no key.
  func peek(
    _ wanted: UInt32, limits: RatchetLimits, crypto: SuiteCrypto
  ) throws(MLSError) -> (key: MessageKey, step: Step) {
    if wanted < generation {
      guard let key = skipped[wanted] else { throw .message(.generationUsed(wanted)) }
      return (key, Step(generation: wanted, ahead: nil))
    }
    guard wanted < UInt32.max, wanted - generation <= limits.maximumForwardDistance else {
      throw .message(.generationTooFarAhead(wanted))
    }
    var ahead = self
    while ahead.generation < wanted {
      let passed = ahead.generation
      ahead.skipped[passed] = ahead.advance(crypto)
    }
    let key = ahead.advance(crypto)
    ahead.dropOldest(keeping: limits.maximumSkippedKeys)
    return (key, Step(generation: wanted, ahead: ahead))
  }

  /// Erases the key of a message that proved genuine, and moves past it.
  mutating func accept(_ step: Step) {
    if let ahead = step.ahead { self = ahead } else { skipped[step.generation] = nil }
  }

  private mutating func dropOldest(keeping limit: Int) {
    guard skipped.count > limit else { return }
    for generation in skipped.keys.sorted().prefix(skipped.count - limit) { skipped[generation] = nil }
  }
}

/// The keys of an epoch's messages, RFC 9420 §9. Inner secrets go as soon as their children exist.
struct SecretTree: Sendable {
  let size: TreeSize
  private(set) var nodes: [NodeIndex: Secret]
  private(set) var ratchets: [LeafIndex: Ratchets]
  /// What changed since `markStored`, so that storage writes no more than that.
  private(set) var changedNodes: Set<NodeIndex> = []
  private(set) var changedRatchets: Set<LeafIndex> = []

  struct Ratchets: Sendable {
    var handshake: HashRatchet
    var application: HashRatchet
  }

  init(encryptionSecret: Secret, size: TreeSize) {
    self.init(size: size, nodes: [size.root: encryptionSecret], ratchets: [:])
  }

  init(size: TreeSize, nodes: [NodeIndex: Secret], ratchets: [LeafIndex: Ratchets]) {
    self.size = size
    self.nodes = nodes
    self.ratchets = ratchets
  }

  mutating func markStored() {
    if !changedNodes.isEmpty { changedNodes = [] }
    if !changedRatchets.isEmpty { changedRatchets = [] }
  }

  private mutating func prepare(_ leaf: LeafIndex, _ crypto: SuiteCrypto) {
    guard ratchets[leaf] == nil else { return }
    // The lowest node above the leaf whose secret is still whole.
    var node = NodeIndex(leaf)
    while nodes[node] == nil {
      guard let parent = size.parent(of: node) else { return }
      node = parent
    }
    while let left = node.left, let right = node.right, let secret = nodes.removeValue(forKey: node) {
      let count = crypto.hashByteCount
      nodes[left] = crypto.expand(secret, label: "tree", context: Array("left".utf8), byteCount: count)
      nodes[right] = crypto.expand(secret, label: "tree", context: Array("right".utf8), byteCount: count)
      changedNodes.formUnion([node, left, right])
      node = left.isAncestor(of: leaf) ? left : right
    }
    guard let secret = nodes.removeValue(forKey: node) else { return }
    changedNodes.insert(node)
    changedRatchets.insert(leaf)
    ratchets[leaf] = Ratchets(
      handshake: HashRatchet(crypto.derive(secret, label: "handshake")),
      application: HashRatchet(crypto.derive(secret, label: "application")))
  }

  private static func path(_ type: ContentType) -> WritableKeyPath<Ratchets, HashRatchet> {
    type == .application ? \.application : \.handshake
  }

  /// The next key to send with.
  mutating func next(
    _ leaf: LeafIndex, _ type: ContentType, crypto: SuiteCrypto
  ) throws(MLSError) -> (generation: UInt32, key: MessageKey) {
    prepare(leaf, crypto)
    guard var own = ratchets[leaf] else { throw .message(.unknownSender) }
    let result = try own[keyPath: Self.path(type)].next(crypto)
    ratchets[leaf] = own
    changedRatchets.insert(leaf)
    return result
  }

  /// The key of a received message; erased by `accept` only.
  mutating func peek(
    _ leaf: LeafIndex, _ type: ContentType, generation: UInt32, limits: RatchetLimits, crypto: SuiteCrypto
  ) throws(MLSError) -> (key: MessageKey, step: HashRatchet.Step) {
    guard size.contains(leaf) else { throw .message(.unknownSender) }
    prepare(leaf, crypto)
    guard let theirs = ratchets[leaf] else { throw .message(.unknownSender) }
    return try theirs[keyPath: Self.path(type)].peek(generation, limits: limits, crypto: crypto)
  }

  mutating func accept(_ step: HashRatchet.Step, _ leaf: LeafIndex, _ type: ContentType) {
    ratchets[leaf]?[keyPath: Self.path(type)].accept(step)
    changedRatchets.insert(leaf)
  }
}
