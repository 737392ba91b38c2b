public import PalbeCrypto
public import PalbeMLSMessages
public import PalbeUnits

/// How a client behaves in its groups.
public struct MLSConfiguration: Sendable {
  /// How handshake messages travel: encrypted unless a server must read them.
  public var handshakeFormat = HandshakeFormat.privateMessage
  /// Padding of encrypted messages.
  public var padding = PaddingPolicy.none
  /// How far a receiver follows loss and disorder inside an epoch.
  public var ratchetLimits = RatchetLimits()
  /// How many past epochs stay readable.
  public var maximumPastEpochs = 5
  /// How long a past epoch stays readable, in seconds.
  public var pastEpochSeconds: UInt64 = 7 * 86_400
  /// Whether somebody outside may propose to be added (RFC 9420 §12.1.8.2). Who knows the group's identifier and epoch
  /// can, so the credential policy must tell friend from stranger then. It must be alike at all members.
  public var acceptsJoinProposals = false
  /// How many proposals wait for a commit.
  public var maximumPendingProposals = 4_096
  /// Whether a Welcome carries the tree; else it travels beside.
  public var ratchetTreeInWelcome = true
  /// By how much a received key package's lifetime may miss the own clock, in seconds. What we send ourselves is
  /// checked exactly (RFC 9420 §7.3): members whose clocks differ must not fall apart over a received one.
  public var lifetimeToleranceSeconds: UInt64 = 86_400
  /// The longest total lifetime of a key package that may join, in seconds; nil: any. RFC 9420 §7.2 asks every
  /// application for one: a key package that lives long is one whose stolen keys are of use for long.
  public var maximumLifetimeSeconds: UInt64? = 366 * 86_400
  /// What this client supports beyond RFC 9420 and its own suite, for its leaf's capabilities. The engine carries such
  /// extensions and credentials as bytes; what they mean is the application's.
  public var extensionTypes: [ExtensionType] = []
  /// Credential types besides basic and X.509 that the policy can judge.
  public var credentialTypes: [CredentialType] = []
  /// Proposals of the application's own, which the engine carries and hands out with the commit.
  public var applicationProposals: [ApplicationProposalType] = []
  /// Extensions of this client's leaves, such as an application identifier.
  public var leafExtensions: [Extension] = []
  /// Whether leaves, key packages and GroupInfos carry made-up values that others must ignore (RFC 9420 §13.5): one of
  /// each kind, about 60 bytes a leaf.
  public var sendsGREASE = false
  /// Whose credentials are accepted.
  public var credentialPolicy: any CredentialPolicy = AnyCredentialAccepted()

  /// How handshake messages travel.
  public enum HandshakeFormat: Sendable, Hashable {
    /// Signed.
    case publicMessage
    /// Signed and encrypted.
    case privateMessage
  }

  /// The defaults.
  public init() {}
}

/// One client (a device of a user): its identity, its signing key and what it supports.
///
///     let alice = try MLSClient(credential: .basic(identity: Array("alice#1".utf8)), using: &random)
///     let bundle = try alice.makeKeyPackage(lifetime: Lifetime(notBefore: now, notAfter: now + 86_400), using: &random)
///
/// Source: RFC 9420 §5.3, §10.
public final class MLSClient: Sendable {
  /// The suite of its key packages and groups.
  public let cipherSuite: CipherSuite
  /// Who it claims to be.
  public let credential: Credential
  /// What it tells others it supports.
  public let capabilities: Capabilities
  /// How it behaves.
  public let configuration: MLSConfiguration

  let crypto: SuiteCrypto
  let signatureKey: SignatureKey
  let grease: GREASE

  /// A client with a fresh signing key. Throws `unsupportedSuite`.
  public convenience init(
    cipherSuite: CipherSuite = .x25519AES128GCM, credential: Credential,
    configuration: MLSConfiguration = MLSConfiguration(), using random: inout RandomSource
  ) throws(MLSError) {
    try self.init(
      cipherSuite: cipherSuite, credential: credential, capabilities: nil, configuration: configuration,
      signatureKey: SignatureKey(SuiteCrypto(cipherSuite).signatures, using: &random))
  }

  /// A client with a stored signing key: a seed (32 bytes for Ed25519, 57 for Ed448) or a big-endian scalar.
  ///
  /// Throws `unsupportedSuite`, and `crypto` for a key of the wrong length.
  public convenience init(
    cipherSuite: CipherSuite = .x25519AES128GCM, credential: Credential,
    configuration: MLSConfiguration = MLSConfiguration(), signaturePrivateKey: borrowing SymmetricKey
  ) throws(MLSError) {
    try self.init(
      cipherSuite: cipherSuite, credential: credential, capabilities: nil, configuration: configuration,
      signatureKey: SignatureKey(
        SuiteCrypto(cipherSuite).signatures, rawRepresentation: signaturePrivateKey.span))
  }

  convenience init(
    cipherSuite: CipherSuite, credential: Credential, capabilities: Capabilities?,
    configuration: MLSConfiguration, signatureKey: SignatureKey
  ) throws(MLSError) {
    let grease: GREASE =
      capabilities == nil && configuration.sendsGREASE ? GREASE(signatureKey: signatureKey.publicKey) : .none
    self.init(
      crypto: try SuiteCrypto(cipherSuite), credential: credential,
      capabilities: capabilities
        ?? grease.adding(
          to: Capabilities(
            cipherSuites: [cipherSuite], extensions: configuration.extensionTypes,
            proposals: configuration.applicationProposals.map(\.type),
            credentials: [.basic, .x509] + configuration.credentialTypes)),
      configuration: configuration, signatureKey: signatureKey, grease: grease)
  }

  init(
    crypto: SuiteCrypto, credential: Credential, capabilities: Capabilities,
    configuration: MLSConfiguration, signatureKey: SignatureKey, grease: GREASE
  ) {
    self.crypto = crypto
    cipherSuite = crypto.suite
    self.credential = credential
    self.grease = grease
    self.capabilities = capabilities
    self.configuration = configuration
    self.signatureKey = signatureKey
  }

  /// Verifies this client's messages.
  public var signaturePublicKey: [UInt8] { signatureKey.publicKey }

  /// A leaf with a fresh encryption key, signed where its source needs no position.
  func makeLeaf(
    source: LeafNodeSource, using random: inout RandomSource
  ) throws(MLSError) -> (leaf: LeafNode, encryptionKey: Secret) {
    let keys = try crypto.generateKeyPair(using: &random)
    var leaf = LeafNode(
      encryptionKey: keys.publicKey, signatureKey: signaturePublicKey, credential: credential,
      capabilities: capabilities, source: source,
      extensions: configuration.leafExtensions + grease.leafExtensions)
    if case .keyPackage = source { try sign(&leaf, groupID: [], at: LeafIndex(0)) }
    return (leaf, keys.privateKey)
  }

  /// Makes a leaf this client's but for its keys for encryption.
  func describe(in leaf: inout LeafNode) {
    leaf.signatureKey = signaturePublicKey
    leaf.credential = credential
    leaf.capabilities = capabilities
    leaf.extensions = configuration.leafExtensions + grease.leafExtensions
  }

  func sign(_ leaf: inout LeafNode, groupID: [UInt8], at index: LeafIndex) throws(MLSError) {
    let signed = leaf.toBeSigned(groupID: groupID, leafIndex: index)
    leaf.signature = try crypto.sign(signed, label: "LeafNodeTBS", key: signatureKey)
  }

  /// A key package to publish, with its private keys. Use each for one group only, except one of last resort: a server
  /// hands it out when no other is left, and its keys must live until it is replaced.
  public func makeKeyPackage(
    lifetime: Lifetime, extensions: [Extension] = [], lastResort: Bool = false,
    using random: inout RandomSource
  ) throws(MLSError) -> KeyPackageBundle {
    var extensions = extensions + grease.keyPackageExtensions
    if lastResort { extensions.append(Extension(type: .lastResort, data: [])) }
    let (leaf, encryptionKey) = try makeLeaf(source: .keyPackage(lifetime), using: &random)
    let initKeys = try crypto.generateKeyPair(using: &random)
    var keyPackage = KeyPackage(
      cipherSuite: cipherSuite, initKey: initKeys.publicKey, leafNode: leaf, extensions: extensions)
    keyPackage.signature = try crypto.sign(
      keyPackage.toBeSigned, label: "KeyPackageTBS", key: signatureKey)
    return KeyPackageBundle(
      keyPackage: keyPackage, reference: crypto.reference(to: keyPackage), initKey: initKeys.privateKey,
      encryptionKey: encryptionKey)
  }
}

/// A published key package and the private keys that a Welcome to it needs; wiped when the last owner lets go.
public final class KeyPackageBundle: Sendable {
  /// What to publish.
  public let keyPackage: KeyPackage
  /// `KeyPackageRef`, RFC 9420 §5.2: what a Welcome names it by.
  public let reference: [UInt8]
  let initKey: Secret
  let encryptionKey: Secret

  /// True when it may be used for several groups: keep it after a join, and replace it soon.
  public var isLastResort: Bool { keyPackage.isLastResort }

  /// What to publish, as a message.
  public var message: MLSMessage { .keyPackage(keyPackage) }

  init(keyPackage: KeyPackage, reference: [UInt8], initKey: Secret, encryptionKey: Secret) {
    self.keyPackage = keyPackage
    self.reference = reference
    self.initKey = initKey
    self.encryptionKey = encryptionKey
  }
}

/// A key that both sides got some other way, RFC 9420 §8.4.
public final class PreSharedKey: Sendable {
  /// What members name it by.
  public let id: [UInt8]
  let secret: Secret

  /// A key of any length.
  public init(id: [UInt8], key: consuming SymmetricKey) {
    self.id = id
    secret = Secret(key)
  }
}
