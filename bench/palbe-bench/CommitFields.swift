/// The size of an empty commit by RFC 9420 §6 and §12.4, from its fields: what no encoder can go below.
struct CommitFields {
  let identityByteCount: Int
  let groupIDByteCount: Int
  /// Nodes of the filtered direct path, each sealed to one key.
  let pathNodes: Int
  /// What a leaf lists beside version and suite.
  let credentialTypes: Int

  /// `opaque value<V>`, RFC 9420 §2.1.2.
  private func vector(_ count: Int) -> Int { count + (count < 64 ? 1 : count < 16_384 ? 2 : 4) }

  var leafNode: Int {
    let keys = vector(32) + vector(32)
    let credential = 2 + vector(identityByteCount)
    let capabilities = vector(2) + vector(2) + vector(0) + vector(0) + vector(2 * credentialTypes)
    let source = 1 + vector(32)
    return keys + credential + capabilities + source + vector(0) + vector(64)
  }

  var updatePath: Int {
    let ciphertext = vector(32) + vector(32 + 16)
    let node = vector(32) + vector(ciphertext)
    return leafNode + vector(pathNodes * node)
  }

  /// As an `MLSMessage` that holds a `PublicMessage`.
  var publicMessage: Int {
    let header = 2 + 2
    let sender = 1 + 4
    let framed = vector(groupIDByteCount) + 8 + sender + vector(0) + 1
    let commit = vector(0) + 1 + updatePath
    let signature = vector(64)
    let confirmationTag = vector(32)
    let membershipTag = vector(32)
    return header + framed + commit + signature + confirmationTag + membershipTag
  }
}
