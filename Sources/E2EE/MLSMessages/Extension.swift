public import PalbeWire

/// `Extension`, RFC 9420 §13: typed bytes; unknown types are carried as they are.
public struct Extension: Hashable, MLSCodable {
  /// The registry value.
  public var type: ExtensionType
  /// The extension's own structure, encoded.
  public var data: [UInt8]

  /// An extension of encoded data.
  public init(type: ExtensionType, data: [UInt8]) {
    self.type = type
    self.data = data
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    type = try ExtensionType(from: &reader)
    data = try reader.opaque()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    type.encode(into: &writer)
    writer.opaque(data)
  }
}

extension [Extension] {
  /// The data of the first extension of a type.
  public func data(of type: ExtensionType) -> [UInt8]? { first { $0.type == type }?.data }

  /// True when a type appears twice, which RFC 9420 §13.4 forbids.
  public var hasDuplicates: Bool { Set(map(\.type)).count != count }

  /// The group's `required_capabilities`, nil when absent.
  public func requiredCapabilities() throws(WireError) -> RequiredCapabilities? {
    guard let data = data(of: .requiredCapabilities) else { return nil }
    return try RequiredCapabilities(decoding: data)
  }

  /// The group's `external_senders`, empty when absent.
  public func externalSenders() throws(WireError) -> [ExternalSender] {
    guard let data = data(of: .externalSenders) else { return [] }
    return try ExternalSenderList(decoding: data).senders
  }
}

/// `RequiredCapabilities`, RFC 9420 §11.1.
public struct RequiredCapabilities: Hashable, MLSCodable {
  /// Extensions that every member must support.
  public var extensions: [ExtensionType]
  /// Proposals that every member must support.
  public var proposals: [ProposalType]
  /// Credentials that every member must support.
  public var credentials: [CredentialType]

  /// What members must support, beyond the defaults.
  public init(
    extensions: [ExtensionType] = [], proposals: [ProposalType] = [], credentials: [CredentialType] = []
  ) {
    self.extensions = extensions
    self.proposals = proposals
    self.credentials = credentials
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    extensions = try reader.vector(of: ExtensionType.self)
    proposals = try reader.vector(of: ProposalType.self)
    credentials = try reader.vector(of: CredentialType.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.vector(extensions)
    writer.vector(proposals)
    writer.vector(credentials)
  }
}

/// `ExternalSender`, RFC 9420 §12.1.8.1: somebody outside who may propose.
public struct ExternalSender: Hashable, MLSCodable {
  /// Verifies the sender's proposals.
  public var signatureKey: [UInt8]
  /// Who the sender is.
  public var credential: Credential

  /// A sender with its key.
  public init(signatureKey: [UInt8], credential: Credential) {
    self.signatureKey = signatureKey
    self.credential = credential
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    signatureKey = try reader.opaque()
    credential = try Credential(from: &reader)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(signatureKey)
    credential.encode(into: &writer)
  }
}

/// The body of an `external_senders` extension.
public struct ExternalSenderList: Hashable, MLSCodable {
  /// The senders; their position is the `sender_index`.
  public var senders: [ExternalSender]
  /// A list in order.
  public init(_ senders: [ExternalSender]) { self.senders = senders }
  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    senders = try reader.vector(of: ExternalSender.self)
  }
  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.vector(senders) }
}
