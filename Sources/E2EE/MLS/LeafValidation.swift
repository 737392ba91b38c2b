import PalbeMLSMessages
import PalbeWire

/// The rules of RFC 9420 §7.3 for one leaf of a group.
struct LeafValidation {
  let crypto: SuiteCrypto
  let policy: any CredentialPolicy
  let groupID: [UInt8]
  let extensions: [Extension]
  let required: RequiredCapabilities?

  init(
    crypto: SuiteCrypto, policy: any CredentialPolicy, groupID: [UInt8], extensions: [Extension]
  ) throws(MLSError) {
    self.crypto = crypto
    self.policy = policy
    self.groupID = groupID
    self.extensions = extensions
    do throws(WireError) {
      required = try extensions.requiredCapabilities()
      // Read with each commit later: a group in which it is not a list could never change.
      _ = try extensions.externalSenders()
    } catch { throw .malformed(error) }
  }

  /// What the leaf says about itself; `leafIndex` counts for the signature except in a key package. `role` is what
  /// its owner is or becomes, a member at that leaf where nothing else is said.
  func check(
    _ leaf: LeafNode, at leafIndex: LeafIndex, as role: PresentedCredential.Role? = nil
  ) throws(MLSError) {
    try checkSignature(leaf, at: leafIndex)
    guard crypto.isValidEncryptionKey(leaf.encryptionKey) else { throw .leafNode(.invalidEncryptionKey) }
    let presented = PresentedCredential(
      credential: leaf.credential, signatureKey: leaf.signatureKey, groupID: groupID,
      role: role ?? .member(leafIndex))
    guard policy.accepts(presented) else { throw .leafNode(.credentialRefused) }
    if case .replacement(let old) = presented.role, old.credential != leaf.credential {
      guard policy.accepts(presented, asSuccessorOf: old) else { throw .leafNode(.successorRefused) }
    }
    try checkCapabilities(leaf)
  }

  /// RFC 9420 §5.3.1: those who may propose from outside are judged when their list comes or changes.
  func checkExternalSenders() throws(MLSError) {
    let senders: [ExternalSender]
    do { senders = try extensions.externalSenders() } catch { throw .malformed(error) }
    for (index, sender) in senders.enumerated() {
      let presented = PresentedCredential(
        credential: sender.credential, signatureKey: sender.signatureKey, groupID: groupID,
        role: .externalSender(index: UInt32(index)))
      guard policy.accepts(presented) else { throw .proposals(.externalSenderRefused(index: UInt32(index))) }
    }
  }

  func checkSignature(_ leaf: LeafNode, at leafIndex: LeafIndex) throws(MLSError) {
    let signed = leaf.toBeSigned(groupID: groupID, leafIndex: leafIndex)
    guard crypto.isValid(leaf.signature, of: signed, label: "LeafNodeTBS", key: leaf.signatureKey) else {
      throw .leafNode(.invalidSignature)
    }
  }

  func checkCapabilities(_ leaf: LeafNode) throws(MLSError) {
    let capabilities = leaf.capabilities
    guard capabilities.versions.contains(.mls10) else { throw .leafNode(.versionNotSupported) }
    guard capabilities.cipherSuites.contains(crypto.suite) else {
      throw .leafNode(.cipherSuiteNotSupported)
    }
    guard !leaf.extensions.hasDuplicates else { throw .leafNode(.duplicateExtension) }
    for item in leaf.extensions where !supports(item.type, capabilities) {
      throw .leafNode(.extensionNotListed(item.type))
    }
    for item in extensions where !supports(item.type, capabilities) {
      throw .leafNode(.groupExtensionNotSupported(item.type))
    }
    guard let required else { return }
    for type in required.extensions where !supports(type, capabilities) {
      throw .leafNode(.requiredExtensionNotSupported(type))
    }
    for type in required.proposals where !type.isDefault && !capabilities.proposals.contains(type) {
      throw .leafNode(.requiredProposalNotSupported(type))
    }
    for type in required.credentials where !capabilities.credentials.contains(type) {
      throw .leafNode(.requiredCredentialNotSupported(type))
    }
  }

  private func supports(_ type: ExtensionType, _ capabilities: Capabilities) -> Bool {
    type.isDefault || capabilities.extensions.contains(type)
  }

  /// How the leaf gets on with the other members. The leaf stands in the tree that `index` counts.
  func checkAgainstMembers(_ leaf: LeafNode, _ index: MemberIndex) throws(MLSError) {
    for type in index.credentialsInUse.keys where !leaf.capabilities.credentials.contains(type) {
      throw .leafNode(.memberCredentialNotSupported(type))
    }
    guard index.allSupport(leaf.credential.type) else {
      throw .leafNode(.credentialNotSupportedByAll(leaf.credential.type))
    }
    guard index.isUniqueSignatureKey(leaf.signatureKey) else { throw .leafNode(.signatureKeyInUse) }
    guard index.isUniqueEncryptionKey(leaf.encryptionKey) else { throw .leafNode(.encryptionKeyInUse) }
  }

  /// The lifetime of a key package's leaf, in Unix seconds, give or take `tolerance`, `maximum` seconds in all.
  static func checkLifetime(
    _ leaf: LeafNode, at unixTime: UInt64, tolerance: UInt64 = 0, maximum: UInt64? = nil
  ) throws(MLSError) {
    guard case .keyPackage(let lifetime) = leaf.source else { throw .leafNode(.wrongSource) }
    if let maximum, lifetime.notAfter > lifetime.notBefore {
      let total = lifetime.notAfter - lifetime.notBefore
      guard total <= maximum else { throw .leafNode(.lifetimeTooLong(seconds: total)) }
    }
    let (latest, tooLate) = unixTime.addingReportingOverflow(tolerance)
    guard tooLate || lifetime.notBefore <= latest else {
      throw .leafNode(.notYetValid(notBefore: lifetime.notBefore))
    }
    guard unixTime < tolerance || unixTime - tolerance <= lifetime.notAfter else {
      throw .leafNode(.expired(notAfter: lifetime.notAfter))
    }
  }

  /// The rules of RFC 9420 §10.1, with those of the leaf in it but for its lifetime.
  func check(_ keyPackage: KeyPackage) throws(MLSError) {
    guard keyPackage.version == .mls10 else { throw .keyPackage(.wrongVersion(keyPackage.version)) }
    guard keyPackage.cipherSuite == crypto.suite else {
      throw .keyPackage(.wrongCipherSuite(keyPackage.cipherSuite))
    }
    guard keyPackage.initKey != keyPackage.leafNode.encryptionKey else {
      throw .keyPackage(.initKeyIsEncryptionKey)
    }
    guard crypto.isValidEncryptionKey(keyPackage.initKey) else { throw .keyPackage(.invalidInitKey) }
    guard !keyPackage.extensions.hasDuplicates else { throw .keyPackage(.duplicateExtension) }
    guard
      crypto.isValid(
        keyPackage.signature, of: keyPackage.toBeSigned, label: "KeyPackageTBS",
        key: keyPackage.leafNode.signatureKey)
    else { throw .keyPackage(.invalidSignature) }
    guard case .keyPackage = keyPackage.leafNode.source else { throw .leafNode(.wrongSource) }
    try check(keyPackage.leafNode, at: LeafIndex(0), as: .newMember)
  }
}
