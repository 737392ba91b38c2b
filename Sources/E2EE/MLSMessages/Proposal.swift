public import PalbeWire

/// `ReInit`, RFC 9420 §12.1.5: the parameters of the group that takes over.
public struct ReInit: Hashable, MLSCodable {
  /// The new group's identifier.
  public var groupID: [UInt8]
  /// The new group's version.
  public var version: ProtocolVersion
  /// The new group's suite.
  public var cipherSuite: CipherSuite
  /// The new group's extensions.
  public var extensions: [Extension]

  /// Parameters as given.
  public init(
    groupID: [UInt8], version: ProtocolVersion = .mls10, cipherSuite: CipherSuite,
    extensions: [Extension] = []
  ) {
    self.groupID = groupID
    self.version = version
    self.cipherSuite = cipherSuite
    self.extensions = extensions
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    groupID = try reader.opaque()
    version = try ProtocolVersion(from: &reader)
    cipherSuite = try CipherSuite(from: &reader)
    extensions = try reader.vector(of: Extension.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(groupID)
    version.encode(into: &writer)
    cipherSuite.encode(into: &writer)
    writer.vector(extensions)
  }
}

/// `Proposal`, RFC 9420 §12.1: one change to a group.
public enum Proposal: Hashable, MLSCodable {
  /// Adds the client of a key package.
  case add(KeyPackage)
  /// Replaces the sender's leaf.
  case update(LeafNode)
  /// Removes a member.
  case remove(LeafIndex)
  /// Mixes a pre-shared key into the next epoch.
  case preSharedKey(PreSharedKeyID)
  /// Closes the group in favour of a new one.
  case reInit(ReInit)
  /// Starts an external commit; carries the KEM output.
  case externalInit(kemOutput: [UInt8])
  /// Replaces all of the group's extensions.
  case groupContextExtensions([Extension])
  /// A proposal of another type, whose body is taken to be one `opaque<V>`. RFC 9420 §12.1 gives a proposal no length
  /// of its own, so what a type's body looks like must be known; types of applications use this form.
  case application(type: ProposalType, data: [UInt8])

  /// The registry value.
  public var type: ProposalType {
    switch self {
    case .add: .add
    case .update: .update
    case .remove: .remove
    case .preSharedKey: .preSharedKey
    case .reInit: .reInit
    case .externalInit: .externalInit
    case .groupContextExtensions: .groupContextExtensions
    case .application(let type, _): type
    }
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try ProposalType(from: &reader) {
    case .add: self = .add(try KeyPackage(from: &reader))
    case .update: self = .update(try LeafNode(from: &reader))
    case .remove: self = .remove(try LeafIndex(from: &reader))
    case .preSharedKey: self = .preSharedKey(try PreSharedKeyID(from: &reader))
    case .reInit: self = .reInit(try ReInit(from: &reader))
    case .externalInit: self = .externalInit(kemOutput: try reader.opaque())
    case .groupContextExtensions:
      self = .groupContextExtensions(try reader.vector(of: Extension.self))
    case let other:
      guard other.rawValue != 0 else { throw .invalid(field: "proposal_type", value: 0) }
      self = .application(type: other, data: try reader.opaque())
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    type.encode(into: &writer)
    encodeBody(into: &writer)
  }

  package func encodeBody(into writer: inout ByteWriter) {
    switch self {
    case .add(let keyPackage): keyPackage.encode(into: &writer)
    case .update(let leaf): leaf.encode(into: &writer)
    case .remove(let leaf): leaf.encode(into: &writer)
    case .preSharedKey(let id): id.encode(into: &writer)
    case .reInit(let parameters): parameters.encode(into: &writer)
    case .externalInit(let kemOutput): writer.opaque(kemOutput)
    case .groupContextExtensions(let extensions): writer.vector(extensions)
    case .application(_, let data): writer.opaque(data)
    }
  }
}

/// `ProposalRef`, RFC 9420 §5.2: the hash that a commit names a proposal by.
public struct ProposalRef: Hashable, MLSCodable {
  /// The hash.
  public let bytes: [UInt8]
  /// A reference from its bytes.
  public init(bytes: [UInt8]) { self.bytes = bytes }
  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) { bytes = try reader.opaque() }
  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.opaque(bytes) }
}

/// `ProposalOrRef`, RFC 9420 §12.4.
public enum ProposalOrRef: Hashable, MLSCodable {
  /// The proposal itself, made by the committer.
  case proposal(Proposal)
  /// The name of a proposal sent before.
  case reference(ProposalRef)

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .proposal(try Proposal(from: &reader))
    case 2: self = .reference(try ProposalRef(from: &reader))
    case let value: throw .invalid(field: "proposal_or_ref", value: UInt64(value))
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    switch self {
    case .proposal(let proposal):
      writer.uint8(1)
      proposal.encode(into: &writer)
    case .reference(let reference):
      writer.uint8(2)
      reference.encode(into: &writer)
    }
  }
}

/// `Commit`, RFC 9420 §12.4: applies proposals and starts the next epoch.
public struct Commit: Hashable, MLSCodable {
  /// The changes, in order.
  public var proposals: [ProposalOrRef]
  /// New keys of the committer, nil where they may be left out.
  public var path: UpdatePath?

  /// A commit as given.
  public init(proposals: [ProposalOrRef], path: UpdatePath?) {
    self.proposals = proposals
    self.path = path
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    proposals = try reader.vector(of: ProposalOrRef.self)
    path = try reader.optional(UpdatePath.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.vector(proposals)
    writer.optional(path)
  }
}
