public import PalbeWire

/// `PublicMessage`, RFC 9420 §6.2: signed, readable by all.
public struct PublicMessage: Hashable, MLSCodable {
  /// The content.
  public var content: FramedContent
  /// The proof.
  public var authentication: ContentAuthentication
  /// Proves membership; present when a member sent it.
  public var membershipTag: [UInt8]?

  /// All parts.
  public init(content: FramedContent, authentication: ContentAuthentication, membershipTag: [UInt8]?) {
    self.content = content
    self.authentication = authentication
    self.membershipTag = membershipTag
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    content = try FramedContent(from: &reader)
    authentication = try ContentAuthentication(type: content.content.type, from: &reader)
    if case .member = content.sender { membershipTag = try reader.opaque() } else { membershipTag = nil }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    content.encode(into: &writer)
    authentication.encode(into: &writer)
    if case .member = content.sender { writer.opaque(membershipTag ?? []) }
  }

  /// `AuthenticatedContentTBM`: what the membership tag covers.
  public func toBeMACed(context: [UInt8]) -> [UInt8] {
    let signed = content.toBeSigned(wireFormat: .publicMessage, context: context)
    var writer = ByteWriter(capacity: signed.count + 128)
    writer.append(signed)
    authentication.encode(into: &writer)
    return writer.bytes
  }

  /// The content and its proof.
  public var authenticatedContent: AuthenticatedContent {
    AuthenticatedContent(wireFormat: .publicMessage, content: content, authentication: authentication)
  }
}

/// `PrivateMessage`, RFC 9420 §6.3: signed and encrypted to the group.
public struct PrivateMessage: Hashable, MLSCodable {
  /// The group.
  public var groupID: [UInt8]
  /// The epoch it was sent in.
  public var epoch: UInt64
  /// What it carries.
  public var contentType: ContentType
  /// Authenticated, never encrypted.
  public var authenticatedData: [UInt8]
  /// Who sent it, encrypted.
  public var encryptedSenderData: [UInt8]
  /// The content and its proof, encrypted.
  public var ciphertext: [UInt8]

  /// All parts.
  public init(
    groupID: [UInt8], epoch: UInt64, contentType: ContentType, authenticatedData: [UInt8],
    encryptedSenderData: [UInt8], ciphertext: [UInt8]
  ) {
    self.groupID = groupID
    self.epoch = epoch
    self.contentType = contentType
    self.authenticatedData = authenticatedData
    self.encryptedSenderData = encryptedSenderData
    self.ciphertext = ciphertext
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    groupID = try reader.opaque()
    epoch = try reader.uint64()
    contentType = try ContentType(from: &reader)
    authenticatedData = try reader.opaque()
    encryptedSenderData = try reader.opaque()
    ciphertext = try reader.opaque()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(groupID)
    writer.uint64(epoch)
    contentType.encode(into: &writer)
    writer.opaque(authenticatedData)
    writer.opaque(encryptedSenderData)
    writer.opaque(ciphertext)
  }

  /// `PrivateContentAAD`, RFC 9420 §6.3.1.
  package var contentAAD: [UInt8] {
    var writer = ByteWriter(capacity: 64)
    writer.opaque(groupID)
    writer.uint64(epoch)
    contentType.encode(into: &writer)
    writer.opaque(authenticatedData)
    return writer.bytes
  }

  /// `SenderDataAAD`, RFC 9420 §6.3.2.
  package var senderDataAAD: [UInt8] {
    var writer = ByteWriter(capacity: 64)
    writer.opaque(groupID)
    writer.uint64(epoch)
    contentType.encode(into: &writer)
    return writer.bytes
  }
}

/// `MLSMessage`, RFC 9420 §6: everything that travels.
public enum MLSMessage: Hashable, MLSCodable {
  /// Signed, not encrypted.
  case publicMessage(PublicMessage)
  /// Signed and encrypted.
  case privateMessage(PrivateMessage)
  /// What a new member receives.
  case welcome(Welcome)
  /// What somebody outside needs to join.
  case groupInfo(GroupInfo)
  /// What a client publishes to be added.
  case keyPackage(KeyPackage)

  /// The registry value.
  public var wireFormat: WireFormat {
    switch self {
    case .publicMessage: .publicMessage
    case .privateMessage: .privateMessage
    case .welcome: .welcome
    case .groupInfo: .groupInfo
    case .keyPackage: .keyPackage
    }
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    let version = try ProtocolVersion(from: &reader)
    guard version == .mls10 else { throw .invalid(field: "version", value: UInt64(version.rawValue)) }
    switch try WireFormat(from: &reader) {
    case .publicMessage: self = .publicMessage(try PublicMessage(from: &reader))
    case .privateMessage: self = .privateMessage(try PrivateMessage(from: &reader))
    case .welcome: self = .welcome(try Welcome(from: &reader))
    case .groupInfo: self = .groupInfo(try GroupInfo(from: &reader))
    case .keyPackage: self = .keyPackage(try KeyPackage(from: &reader))
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    ProtocolVersion.mls10.encode(into: &writer)
    wireFormat.encode(into: &writer)
    switch self {
    case .publicMessage(let message): message.encode(into: &writer)
    case .privateMessage(let message): message.encode(into: &writer)
    case .welcome(let welcome): welcome.encode(into: &writer)
    case .groupInfo(let groupInfo): groupInfo.encode(into: &writer)
    case .keyPackage(let keyPackage): keyPackage.encode(into: &writer)
    }
  }
}
