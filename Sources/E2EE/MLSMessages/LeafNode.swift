public import PalbeWire

/// `Capabilities`, RFC 9420 §7.2: what a client supports beyond the defaults.
public struct Capabilities: Hashable, MLSCodable {
  /// Protocol versions.
  public var versions: [ProtocolVersion]
  /// Cipher suites.
  public var cipherSuites: [CipherSuite]
  /// Extensions beyond the defaults.
  public var extensions: [ExtensionType]
  /// Proposals beyond the defaults.
  public var proposals: [ProposalType]
  /// Credentials.
  public var credentials: [CredentialType]

  /// Capabilities as given.
  public init(
    versions: [ProtocolVersion] = [.mls10], cipherSuites: [CipherSuite], extensions: [ExtensionType] = [],
    proposals: [ProposalType] = [], credentials: [CredentialType] = [.basic]
  ) {
    self.versions = versions
    self.cipherSuites = cipherSuites
    self.extensions = extensions
    self.proposals = proposals
    self.credentials = credentials
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    versions = try reader.vector(of: ProtocolVersion.self)
    cipherSuites = try reader.vector(of: CipherSuite.self)
    extensions = try reader.vector(of: ExtensionType.self)
    proposals = try reader.vector(of: ProposalType.self)
    credentials = try reader.vector(of: CredentialType.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.vector(versions)
    writer.vector(cipherSuites)
    writer.vector(extensions)
    writer.vector(proposals)
    writer.vector(credentials)
  }
}

/// `Lifetime`, RFC 9420 §7.2, in seconds since the Unix epoch, both ends included.
public struct Lifetime: Hashable, MLSCodable {
  /// First valid second.
  public var notBefore: UInt64
  /// Last valid second.
  public var notAfter: UInt64

  /// Valid from `notBefore` to `notAfter`.
  public init(notBefore: UInt64, notAfter: UInt64) {
    self.notBefore = notBefore
    self.notAfter = notAfter
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    notBefore = try reader.uint64()
    notAfter = try reader.uint64()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.uint64(notBefore)
    writer.uint64(notAfter)
  }
}

/// Where a leaf came from, RFC 9420 §7.2 `LeafNodeSource`.
public enum LeafNodeSource: Hashable, MLSCodable {
  /// In a key package, valid for a time.
  case keyPackage(Lifetime)
  /// In an Update proposal.
  case update
  /// In a commit's path, bound to the nodes above it.
  case commit(parentHash: [UInt8])

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .keyPackage(try Lifetime(from: &reader))
    case 2: self = .update
    case 3: self = .commit(parentHash: try reader.opaque())
    case let value: throw .invalid(field: "leaf_node_source", value: UInt64(value))
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    switch self {
    case .keyPackage(let lifetime):
      writer.uint8(1)
      lifetime.encode(into: &writer)
    case .update: writer.uint8(2)
    case .commit(let parentHash):
      writer.uint8(3)
      writer.opaque(parentHash)
    }
  }
}

/// `LeafNode`, RFC 9420 §7.2: one member's public keys and claims.
public struct LeafNode: Hashable, MLSCodable {
  /// HPKE public key of the leaf.
  public var encryptionKey: [UInt8]
  /// Verifies the member's messages.
  public var signatureKey: [UInt8]
  /// Who the member claims to be.
  public var credential: Credential
  /// What the member's client supports.
  public var capabilities: Capabilities
  /// Where the leaf came from.
  public var source: LeafNodeSource
  /// Extensions of the leaf.
  public var extensions: [Extension]
  /// Over `toBeSigned(groupID:leafIndex:)`, label "LeafNodeTBS".
  public var signature: [UInt8]

  /// A leaf as given; sign it before it is used.
  public init(
    encryptionKey: [UInt8], signatureKey: [UInt8], credential: Credential, capabilities: Capabilities,
    source: LeafNodeSource, extensions: [Extension] = [], signature: [UInt8] = []
  ) {
    self.encryptionKey = encryptionKey
    self.signatureKey = signatureKey
    self.credential = credential
    self.capabilities = capabilities
    self.source = source
    self.extensions = extensions
    self.signature = signature
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    encryptionKey = try reader.opaque()
    signatureKey = try reader.opaque()
    credential = try Credential(from: &reader)
    capabilities = try Capabilities(from: &reader)
    source = try LeafNodeSource(from: &reader)
    extensions = try reader.vector(of: Extension.self)
    signature = try reader.opaque()
  }

  private func encodeUnsigned(into writer: inout ByteWriter) {
    writer.opaque(encryptionKey)
    writer.opaque(signatureKey)
    credential.encode(into: &writer)
    capabilities.encode(into: &writer)
    source.encode(into: &writer)
    writer.vector(extensions)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    encodeUnsigned(into: &writer)
    writer.opaque(signature)
  }

  /// `LeafNodeTBS`: what the signature covers. The group and the position count except in a key package.
  public func toBeSigned(groupID: [UInt8], leafIndex: LeafIndex) -> [UInt8] {
    var writer = ByteWriter(capacity: 256)
    encodeUnsigned(into: &writer)
    switch source {
    case .keyPackage: break
    case .update, .commit:
      writer.opaque(groupID)
      leafIndex.encode(into: &writer)
    }
    return writer.bytes
  }
}
