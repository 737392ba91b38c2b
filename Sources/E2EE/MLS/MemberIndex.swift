import PalbeCrypto
import PalbeMLSMessages
import PalbeWire

/// Counts of what the nodes of a tree use and support, kept while nodes change.
struct MemberIndex: Sendable {
  private(set) var memberCount = 0
  private var encryptionKeys = KeyCounts()
  private var signatureKeys = KeyCounts()
  private(set) var credentialsInUse: [CredentialType: Int] = [:]
  private var credentialsSupported: [CredentialType: Int] = [:]

  /// True when at most one node has this encryption key.
  func isUniqueEncryptionKey(_ key: [UInt8]) -> Bool { encryptionKeys[key] <= 1 }
  /// True when a node has this encryption key.
  func hasEncryptionKey(_ key: [UInt8]) -> Bool { encryptionKeys[key] > 0 }
  /// True when at most one member has this signature key.
  func isUniqueSignatureKey(_ key: [UInt8]) -> Bool { signatureKeys[key] <= 1 }
  /// True when a member has this signature key.
  func hasSignatureKey(_ key: [UInt8]) -> Bool { signatureKeys[key] > 0 }
  /// True when every member lists this credential type.
  func allSupport(_ type: CredentialType) -> Bool { credentialsSupported[type, default: 0] == memberCount }

  mutating func insert(_ leaf: LeafNode) { count(leaf, 1) }
  mutating func remove(_ leaf: LeafNode) { count(leaf, -1) }
  mutating func insert(_ parent: ParentNode) { encryptionKeys.add(1, to: parent.encryptionKey) }
  mutating func remove(_ parent: ParentNode) { encryptionKeys.add(-1, to: parent.encryptionKey) }

  /// As `remove` and `insert`, and cheaper where only the leaf's own key changes.
  mutating func replace(_ old: LeafNode, with new: LeafNode) {
    encryptionKeys.add(-1, to: old.encryptionKey)
    encryptionKeys.add(1, to: new.encryptionKey)
    if old.signatureKey != new.signatureKey {
      signatureKeys.add(-1, to: old.signatureKey)
      signatureKeys.add(1, to: new.signatureKey)
    }
    if old.credential.type != new.credential.type
      || old.capabilities.credentials != new.capabilities.credentials
    {
      countCredentials(old, -1)
      countCredentials(new, 1)
    }
  }

  private mutating func count(_ leaf: LeafNode, _ change: Int) {
    memberCount += change
    encryptionKeys.add(change, to: leaf.encryptionKey)
    signatureKeys.add(change, to: leaf.signatureKey)
    countCredentials(leaf, change)
  }

  private mutating func countCredentials(_ leaf: LeafNode, _ change: Int) {
    Self.add(change, to: &credentialsInUse, leaf.credential.type)
    let types = leaf.capabilities.credentials
    // One that is listed twice counts once.
    for (place, type) in types.enumerated() where !types[..<place].contains(type) {
      Self.add(change, to: &credentialsSupported, type)
    }
  }

  private static func add(_ change: Int, to counts: inout [CredentialType: Int], _ type: CredentialType) {
    let count = counts[type, default: 0] + change
    counts[type] = count == 0 ? nil : count
  }
}

/// How often each key is there, in many short lists: copies share those that neither changed.
struct KeyCounts: Sendable {
  /// A key of 32 bytes, or the SHA-256 of another: plain words, so that a list is copied without counting references.
  private struct Key: Hashable {
    private let words: [4 of UInt64]

    init(_ bytes: [UInt8]) {
      let bytes = bytes.count == 32 ? bytes : SHA256.hash(bytes.span)
      var words = [4 of UInt64](repeating: 0)
      for index in 0..<32 { words[index >> 3] = words[index >> 3] << 8 | UInt64(bytes[index]) }
      self.words = words
    }

    static func == (left: Key, right: Key) -> Bool {
      left.words[0] == right.words[0] && left.words[1] == right.words[1] && left.words[2] == right.words[2]
        && left.words[3] == right.words[3]
    }

    func hash(into hasher: inout Hasher) {
      for index in words.indices { hasher.combine(words[index]) }
    }
  }

  private struct Entry {
    let key: Key
    var count: Int
  }

  /// A power of two; a key's hash, which nobody outside can foresee, chooses the list.
  private var lists: [[Entry]] = [[]]
  private var keyCount = 0

  private func list(of key: Key) -> Int { key.hashValue & (lists.count - 1) }

  /// How often a key is there.
  subscript(bytes: [UInt8]) -> Int {
    let key = Key(bytes)
    return lists[list(of: key)].first { $0.key == key }?.count ?? 0
  }

  mutating func add(_ change: Int, to bytes: [UInt8]) {
    let key = Key(bytes)
    let list = list(of: key)
    guard let place = lists[list].firstIndex(where: { $0.key == key }) else {
      guard change != 0 else { return }
      lists[list].append(Entry(key: key, count: change))
      keyCount += 1
      if keyCount > 64 * lists.count { grow() }
      return
    }
    lists[list][place].count += change
    guard lists[list][place].count == 0 else { return }
    lists[list].swapAt(place, lists[list].count - 1)
    lists[list].removeLast()
    keyCount -= 1
  }

  private mutating func grow() {
    let old = lists
    lists = Array(repeating: [], count: 4 * old.count)
    for entry in old.joined() { lists[list(of: entry.key)].append(entry) }
  }
}
