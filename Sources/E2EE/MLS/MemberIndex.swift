import PalbeMLSMessages

/// Counts of what the nodes of a tree use and support, kept while nodes change.
struct MemberIndex: Sendable {
  private(set) var memberCount = 0
  private var encryptionKeys: [[UInt8]: Int] = [:]
  private var signatureKeys: [[UInt8]: Int] = [:]
  private(set) var credentialsInUse: [CredentialType: Int] = [:]
  private var credentialsSupported: [CredentialType: Int] = [:]

  /// True when at most one node has this encryption key.
  func isUniqueEncryptionKey(_ key: [UInt8]) -> Bool { encryptionKeys[key, default: 0] <= 1 }
  /// True when a node has this encryption key.
  func hasEncryptionKey(_ key: [UInt8]) -> Bool { encryptionKeys[key] != nil }
  /// True when at most one member has this signature key.
  func isUniqueSignatureKey(_ key: [UInt8]) -> Bool { signatureKeys[key, default: 0] <= 1 }
  /// True when a member has this signature key.
  func hasSignatureKey(_ key: [UInt8]) -> Bool { signatureKeys[key] != nil }
  /// True when every member lists this credential type.
  func allSupport(_ type: CredentialType) -> Bool { credentialsSupported[type, default: 0] == memberCount }

  mutating func insert(_ leaf: LeafNode) { count(leaf, 1) }
  mutating func remove(_ leaf: LeafNode) { count(leaf, -1) }
  mutating func insert(_ parent: ParentNode) { Self.add(1, to: &encryptionKeys, parent.encryptionKey) }
  mutating func remove(_ parent: ParentNode) { Self.add(-1, to: &encryptionKeys, parent.encryptionKey) }

  private mutating func count(_ leaf: LeafNode, _ change: Int) {
    memberCount += change
    Self.add(change, to: &encryptionKeys, leaf.encryptionKey)
    Self.add(change, to: &signatureKeys, leaf.signatureKey)
    Self.add(change, to: &credentialsInUse, leaf.credential.type)
    for type in Set(leaf.capabilities.credentials) { Self.add(change, to: &credentialsSupported, type) }
  }

  private static func add<Key: Hashable>(_ change: Int, to counts: inout [Key: Int], _ key: Key) {
    let count = counts[key, default: 0] + change
    counts[key] = count == 0 ? nil : count
  }
}
