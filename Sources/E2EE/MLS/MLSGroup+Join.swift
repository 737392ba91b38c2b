public import PalbeMLSMessages
import PalbeWire

extension MLSGroup {
  /// Joins by a Welcome to one of `keyPackages`, RFC 9420 §12.4.3.1, after checking the whole tree.
  ///
  /// `ratchetTree` is needed where the Welcome does not carry it. Pre-shared keys that it names are looked for in
  /// `preSharedKeys` and `resumptionKeys`. A group that continues another (RFC 9420 §11.2, §11.3) is checked against
  /// it; with `continuing`, the Welcome must be of a group that continues that one. The used bundle is named by
  /// `keyPackageReference`; drop it then. Throws `welcome`, `tree`, `leafNode`, `malformed`, `crypto`.
  public static func join(
    _ message: MLSMessage, keyPackages: [KeyPackageBundle], client: MLSClient,
    ratchetTree: RatchetTreeExtension? = nil, preSharedKeys: [PreSharedKey] = [],
    resumptionKeys: any ResumptionKeySource = [ResumptionKey](), continuing old: ResumptionKey? = nil
  ) throws(MLSError) -> MLSGroup {
    guard case .welcome(let welcome) = message else { throw .message(.notAGroupMessage) }
    return try join(
      welcome, keyPackages: keyPackages, client: client, ratchetTree: ratchetTree,
      preSharedKeys: preSharedKeys, resumptionKeys: resumptionKeys, continuing: old)
  }

  /// Joins by a Welcome.
  public static func join(
    _ welcome: Welcome, keyPackages: [KeyPackageBundle], client: MLSClient,
    ratchetTree: RatchetTreeExtension? = nil, preSharedKeys: [PreSharedKey] = [],
    resumptionKeys: any ResumptionKeySource = [ResumptionKey](), continuing old: ResumptionKey? = nil
  ) throws(MLSError) -> MLSGroup {
    let crypto = client.crypto
    guard welcome.cipherSuite == crypto.suite else {
      throw .welcome(.wrongCipherSuite(welcome.cipherSuite))
    }
    let (bundle, entry) = try find(welcome, keyPackages)
    let secrets = try openSecrets(entry, welcome, bundle, crypto)

    var pskKeys: [(id: PreSharedKeyID, key: Secret)] = []
    var continued: (key: ResumptionKey, usage: ResumptionUsage)?
    for id in secrets.preSharedKeys {
      switch id.source {
      case .external(let name):
        guard let known = preSharedKeys.first(where: { $0.id == name }) else {
          throw .welcome(.unknownPreSharedKey)
        }
        pskKeys.append((id, known.secret))
      case .resumption(let usage, let group, let epoch):
        let given = old.flatMap { $0.groupID == group && $0.epoch == epoch ? $0 : nil }
        guard let known = given ?? resumptionKeys.resumptionKey(groupID: group, epoch: epoch) else {
          throw .welcome(.unknownPreSharedKey)
        }
        pskKeys.append((id, known.secret))
        guard usage != .application else { continue }
        guard continued == nil else { throw .welcome(.severalContinuations) }
        continued = (known, usage)
      }
    }
    if let old {
      guard let continued, continued.key.groupID == old.groupID, continued.key.epoch == old.epoch else {
        throw .welcome(.continuationMissing)
      }
    }
    let pskSecret = KeySchedule.pskSecret(pskKeys, crypto: crypto)
    let groupInfo = try openGroupInfo(welcome, secrets, pskSecret, crypto)
    let (tree, _) = try check(groupInfo, ratchetTree, client)
    if let continued {
      try check(
        groupInfo.context, tree, continues: continued.key, continued.usage,
        client.configuration.credentialPolicy)
    }
    guard let own = tree.members.first(where: { tree[$0] == bundle.keyPackage.leafNode }) else {
      throw .welcome(.notInTree)
    }
    let privateKeys = try privateKeys(
      bundle, at: own, pathSecret: secrets.pathSecret, signer: groupInfo.signer, tree)
    let schedule = KeySchedule(
      joinerSecret: secrets.joinerSecret, pskSecret: pskSecret, context: groupInfo.context.encoded(),
      crypto: crypto)
    guard
      crypto.isValidMAC(
        groupInfo.confirmationTag, of: groupInfo.context.confirmedTranscriptHash,
        key: schedule.secrets.confirmationKey)
    else { throw .welcome(.invalidConfirmationTag) }

    var group = MLSGroup(
      client: client,
      epoch: EpochState(
        context: groupInfo.context, tree: tree, ownLeaf: own, privateKeys: privateKeys,
        secrets: schedule.secrets, confirmationTag: groupInfo.confirmationTag, crypto: crypto))
    group.keyPackageReference = bundle.reference
    for key in preSharedKeys { group.register(key) }
    return group
  }

  /// The rules for a GroupInfo and the tree that belongs to it.
  static func check(
    _ groupInfo: GroupInfo, _ ratchetTree: RatchetTreeExtension?, _ client: MLSClient
  ) throws(MLSError) -> (RatchetTree, LeafValidation) {
    let crypto = client.crypto
    guard groupInfo.context.cipherSuite == crypto.suite, groupInfo.context.version == .mls10 else {
      throw .welcome(.wrongGroupInfo)
    }
    guard !groupInfo.extensions.hasDuplicates, !groupInfo.context.extensions.hasDuplicates else {
      throw .welcome(.duplicateExtension)
    }
    var tree = try findTree(groupInfo, ratchetTree, crypto)
    guard let signer = tree[groupInfo.signer] else { throw .welcome(.unknownSigner) }
    guard
      crypto.isValid(
        groupInfo.signature, of: groupInfo.toBeSigned, label: "GroupInfoTBS", key: signer.signatureKey)
    else { throw .welcome(.invalidSignature) }
    guard tree.rootHash() == groupInfo.context.treeHash else { throw .tree(.wrongTreeHash) }
    let rules = try LeafValidation(
      crypto: crypto, policy: client.configuration.credentialPolicy, groupID: groupInfo.context.groupID,
      extensions: groupInfo.context.extensions)
    try rules.checkExternalSenders()
    try TreeValidation.check(&tree, rules)
    return (tree, rules)
  }

  private static func find(
    _ welcome: Welcome, _ bundles: [KeyPackageBundle]
  ) throws(MLSError) -> (KeyPackageBundle, EncryptedGroupSecrets) {
    for entry in welcome.secrets {
      if let bundle = bundles.first(where: { $0.reference == entry.newMember }) {
        guard bundle.keyPackage.cipherSuite == welcome.cipherSuite else {
          throw .welcome(.wrongCipherSuite(welcome.cipherSuite))
        }
        return (bundle, entry)
      }
    }
    throw .welcome(.noKeyPackage)
  }

  static func openSecrets(
    _ entry: EncryptedGroupSecrets, _ welcome: Welcome, _ bundle: KeyPackageBundle, _ crypto: SuiteCrypto
  ) throws(MLSError) -> GroupSecrets {
    let plaintext: Secret
    do {
      plaintext = try crypto.decrypt(
        entry.encryptedGroupSecrets, privateKey: bundle.initKey,
        publicKey: bundle.keyPackage.initKey, label: "Welcome", context: welcome.encryptedGroupInfo)
    } catch { throw .welcome(.decryptionFailed) }
    do { return try GroupSecrets(decoding: plaintext) } catch { throw .malformed(error) }
  }

  static func openGroupInfo(
    _ welcome: Welcome, _ secrets: GroupSecrets, _ pskSecret: Secret, _ crypto: SuiteCrypto
  ) throws(MLSError) -> GroupInfo {
    let welcomeSecret = KeySchedule.welcomeSecret(
      joinerSecret: secrets.joinerSecret, pskSecret: pskSecret, crypto: crypto)
    let key = KeySchedule.welcomeKey(welcomeSecret, crypto: crypto)
    let bytes: [UInt8]
    do {
      bytes = try crypto.open(
        welcome.encryptedGroupInfo, key: key.key, nonce: [UInt8](key.nonce.span), authenticating: [])
    } catch { throw .welcome(.decryptionFailed) }
    do { return try GroupInfo(decoding: bytes) } catch { throw .malformed(error) }
  }

  private static func findTree(
    _ groupInfo: GroupInfo, _ given: RatchetTreeExtension?, _ crypto: SuiteCrypto
  ) throws(MLSError) -> RatchetTree {
    if let data = groupInfo.extensions.data(of: .ratchetTree) {
      let wire: RatchetTreeExtension
      do { wire = try RatchetTreeExtension(decoding: data) } catch { throw .malformed(error) }
      return try RatchetTree(wire, crypto: crypto)
    }
    guard let given else { throw .welcome(.treeMissing) }
    return try RatchetTree(given, crypto: crypto)
  }

  /// Our leaf's key, and those of the nodes above that the path secret gives.
  private static func privateKeys(
    _ bundle: KeyPackageBundle, at own: LeafIndex, pathSecret: Secret?, signer: LeafIndex,
    _ tree: RatchetTree
  ) throws(MLSError) -> [NodeIndex: Secret] {
    var keys = [NodeIndex(own): bundle.encryptionKey]
    guard let pathSecret else { return keys }
    let nodes = tree.filteredDirectPath(of: signer).map(\.node)
    guard let first = nodes.firstIndex(where: { $0.isAncestor(of: own) }) else {
      throw .welcome(.pathKeyMismatch)
    }
    let above = Array(nodes[first...])
    let derived = try TreeKEM.deriveKeys(pathSecret, above, crypto: tree.crypto)
    for (node, publicKey) in zip(above, derived.publicKeys) where tree.encryptionKey(node) != publicKey {
      throw .welcome(.pathKeyMismatch)
    }
    keys.merge(derived.privateKeys) { $1 }
    return keys
  }
}
