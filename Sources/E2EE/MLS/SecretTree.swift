import PalbeMLSMessages

/// How far a receiver goes along with loss and disorder.
public struct RatchetLimits: Sendable, Hashable {
  /// How many generations one message may be ahead; refused before any hashing beyond it.
  public var maximumForwardDistance: UInt32
  /// How many keys of messages not seen yet are kept for each sender and kind.
  public var maximumSkippedKeys: Int
  /// For how long they are kept, in seconds.
  public var maximumSkippedSeconds: UInt64

  /// Limits as given.
  public init(
    maximumForwardDistance: UInt32 = 1_024, maximumSkippedKeys: Int = 1_024,
    maximumSkippedSeconds: UInt64 = 7 * 86_400
  ) {
    self.maximumForwardDistance = maximumForwardDistance
    self.maximumSkippedKeys = maximumSkippedKeys
    self.maximumSkippedSeconds = maximumSkippedSeconds
  }
}

/// The key of a message that was passed over, and when, in Unix seconds.
struct SkippedKey: Sendable {
  let key: MessageKey
  /// 0 where it was stored without (schema 1): it gets the time when that is noticed.
  var storedAt: UInt64
}

/// A sender's chain of message keys, RFC 9420 §9.1: each key is derived once and erased once used.
struct HashRatchet: Sendable {
  private(set) var generation: UInt32
  private(set) var secret: Secret
  private(set) var skipped: [UInt32: SkippedKey]

  init(_ secret: Secret, at generation: UInt32 = 0, skipped: [UInt32: SkippedKey] = [:]) {
    self.secret = secret
    self.generation = generation
    self.skipped = skipped
  }

  /// What `accept` does once a message proved genuine.
  struct Step: Sendable {
    fileprivate let generation: UInt32
    fileprivate let ahead: HashRatchet?
    /// When keys were passed over.
    fileprivate let time: UInt64
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
    _ wanted: UInt32, at time: UInt64 = 0, limits: RatchetLimits, crypto: SuiteCrypto
  ) throws(MLSError) -> (key: MessageKey, step: Step) {
    if wanted < generation {
      guard let item = skipped[wanted] else { throw .message(.generationUsed(wanted)) }
      return (item.key, Step(generation: wanted, ahead: nil, time: time))
    }
    guard wanted < UInt32.max, wanted - generation <= limits.maximumForwardDistance else {
      throw .message(.generationTooFarAhead(wanted))
    }
    var ahead = self
    while ahead.generation < wanted {
      let passed = ahead.generation
      ahead.skipped[passed] = SkippedKey(key: ahead.advance(crypto), storedAt: time)
    }
    let key = ahead.advance(crypto)
    ahead.dropOldest(keeping: limits.maximumSkippedKeys)
    return (key, Step(generation: wanted, ahead: ahead, time: time))
  }

  /// Erases the key of a message that proved genuine, and moves past it.
  mutating func accept(_ step: Step) {
    if let ahead = step.ahead { self = ahead } else { skipped[step.generation] = nil }
  }

  /// Erases what was passed over before `start`, and gives keys without a time `now`. Returns the oldest time left.
  fileprivate mutating func dropSkipped(before start: UInt64, now: UInt64) -> UInt64 {
    var oldest = UInt64.max
    for (generation, item) in skipped {
      let time = item.storedAt == 0 ? now : item.storedAt
      if time < start {
        skipped[generation] = nil
      } else {
        if item.storedAt == 0 { skipped[generation]?.storedAt = now }
        oldest = min(oldest, time)
      }
    }
    return oldest
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
  /// No key was passed over before this time.
  private var oldestSkipped: UInt64

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
    oldestSkipped = ratchets.isEmpty ? .max : 0
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

  /// How many keys of a sender were used or passed, of our own leaf: how many messages were sent.
  func nextGeneration(_ leaf: LeafIndex, _ type: ContentType) -> UInt32 {
    ratchets[leaf]?[keyPath: Self.path(type)].generation ?? 0
  }

  /// The key of a received message; erased by `accept` only.
  mutating func peek(
    _ leaf: LeafIndex, _ type: ContentType, generation: UInt32, at time: UInt64 = 0, limits: RatchetLimits,
    crypto: SuiteCrypto
  ) throws(MLSError) -> (key: MessageKey, step: HashRatchet.Step) {
    guard size.contains(leaf) else { throw .message(.unknownSender) }
    prepare(leaf, crypto)
    guard let theirs = ratchets[leaf] else { throw .message(.unknownSender) }
    return try theirs[keyPath: Self.path(type)].peek(generation, at: time, limits: limits, crypto: crypto)
  }

  mutating func accept(_ step: HashRatchet.Step, _ leaf: LeafIndex, _ type: ContentType) {
    ratchets[leaf]?[keyPath: Self.path(type)].accept(step)
    changedRatchets.insert(leaf)
    oldestSkipped = min(oldestSkipped, step.time)
  }

  /// True when `dropSkipped` may find something.
  func hasSkipped(before start: UInt64) -> Bool { oldestSkipped < start }

  /// Erases keys that were passed over before `start`. Its cost is that of one look at all of them, once in a while.
  mutating func dropSkipped(before start: UInt64, now: UInt64) {
    oldestSkipped = .max
    for (leaf, old) in ratchets where !(old.handshake.skipped.isEmpty && old.application.skipped.isEmpty) {
      var own = old
      let oldest = min(
        own.handshake.dropSkipped(before: start, now: now),
        own.application.dropSkipped(before: start, now: now))
      oldestSkipped = min(oldestSkipped, oldest)
      ratchets[leaf] = own
      changedRatchets.insert(leaf)
    }
  }
}
