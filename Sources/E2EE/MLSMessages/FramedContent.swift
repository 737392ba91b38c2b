public import PalbeWire

/// `Sender`, RFC 9420 §6.
public enum Sender: Hashable, MLSCodable {
  /// A member, by its leaf.
  case member(LeafIndex)
  /// Somebody outside, by position in `external_senders`.
  case external(index: UInt32)
  /// A client that proposes to be added.
  case newMemberProposal
  /// A client that joins by an external commit.
  case newMemberCommit

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .member(try LeafIndex(from: &reader))
    case 2: self = .external(index: try reader.uint32())
    case 3: self = .newMemberProposal
    case 4: self = .newMemberCommit
    case let value: throw .invalid(field: "sender_type", value: UInt64(value))
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    switch self {
    case .member(let leaf):
      writer.uint8(1)
      leaf.encode(into: &writer)
    case .external(let index):
      writer.uint8(2)
      writer.uint32(index)
    case .newMemberProposal: writer.uint8(3)
    case .newMemberCommit: writer.uint8(4)
    }
  }
}

/// `ContentType`, RFC 9420 §6.
public enum ContentType: UInt8, MLSCodable {
  /// Application data.
  case application = 1
  /// A proposal.
  case proposal = 2
  /// A commit.
  case commit = 3

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    let value = try reader.uint8()
    guard let type = ContentType(rawValue: value) else {
      throw .invalid(field: "content_type", value: UInt64(value))
    }
    self = type
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.uint8(rawValue) }
}

/// What a message carries.
public enum MessageContent: Hashable, Sendable {
  /// Application data.
  case application([UInt8])
  /// A proposal.
  case proposal(Proposal)
  /// A commit.
  case commit(Commit)

  /// The content's type.
  public var type: ContentType {
    switch self {
    case .application: .application
    case .proposal: .proposal
    case .commit: .commit
    }
  }

  package init(type: ContentType, from reader: inout ByteReader) throws(WireError) {
    switch type {
    case .application: self = .application(try reader.opaque())
    case .proposal: self = .proposal(try Proposal(from: &reader))
    case .commit: self = .commit(try Commit(from: &reader))
    }
  }

  package func encodeBody(into writer: inout ByteWriter) {
    switch self {
    case .application(let data): writer.opaque(data)
    case .proposal(let proposal): proposal.encode(into: &writer)
    case .commit(let commit): commit.encode(into: &writer)
    }
  }
}

/// `FramedContent`, RFC 9420 §6.
public struct FramedContent: Hashable, MLSCodable {
  /// The group.
  public var groupID: [UInt8]
  /// The epoch it was sent in.
  public var epoch: UInt64
  /// Who sent it.
  public var sender: Sender
  /// Authenticated, never encrypted.
  public var authenticatedData: [UInt8]
  /// What it carries.
  public var content: MessageContent

  /// A content as given.
  public init(
    groupID: [UInt8], epoch: UInt64, sender: Sender, authenticatedData: [UInt8], content: MessageContent
  ) {
    self.groupID = groupID
    self.epoch = epoch
    self.sender = sender
    self.authenticatedData = authenticatedData
    self.content = content
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    groupID = try reader.opaque()
    epoch = try reader.uint64()
    sender = try Sender(from: &reader)
    authenticatedData = try reader.opaque()
    let type = try ContentType(from: &reader)
    content = try MessageContent(type: type, from: &reader)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(groupID)
    writer.uint64(epoch)
    sender.encode(into: &writer)
    writer.opaque(authenticatedData)
    content.type.encode(into: &writer)
    content.encodeBody(into: &writer)
  }

  /// `FramedContentTBS`, RFC 9420 §6.1: what the signature covers, for the wire format it will travel in.
  /// `context` is the encoded GroupContext; it counts for members and external committers only.
  public func toBeSigned(wireFormat: WireFormat, context: [UInt8]) -> [UInt8] {
    // A commit holds a path, and is not worth growing for four times.
    let isCommit = if case .commit = content { true } else { false }
    var writer = ByteWriter(capacity: isCommit ? 2_048 : 512)
    ProtocolVersion.mls10.encode(into: &writer)
    wireFormat.encode(into: &writer)
    encode(into: &writer)
    switch sender {
    case .member, .newMemberCommit: writer.append(context)
    case .external, .newMemberProposal: break
    }
    return writer.bytes
  }
}

/// `FramedContentAuthData`, RFC 9420 §6.1.
public struct ContentAuthentication: Hashable, Sendable {
  /// Over `FramedContent.toBeSigned`, label "FramedContentTBS".
  public var signature: [UInt8]
  /// Proves that the committer reached the new epoch; present in commits only.
  public var confirmationTag: [UInt8]?

  /// Both parts.
  public init(signature: [UInt8], confirmationTag: [UInt8]? = nil) {
    self.signature = signature
    self.confirmationTag = confirmationTag
  }

  package init(type: ContentType, from reader: inout ByteReader) throws(WireError) {
    signature = try reader.opaque()
    confirmationTag = type == .commit ? try reader.opaque() : nil
  }

  package func encode(into writer: inout ByteWriter) {
    writer.opaque(signature)
    if let confirmationTag { writer.opaque(confirmationTag) }
  }
}

/// `AuthenticatedContent`, RFC 9420 §6: a content and its proof, whatever way it travelled.
public struct AuthenticatedContent: Hashable, MLSCodable {
  /// The way it travelled; the signature covers it.
  public var wireFormat: WireFormat
  /// The content.
  public var content: FramedContent
  /// The proof.
  public var authentication: ContentAuthentication

  /// All parts.
  public init(wireFormat: WireFormat, content: FramedContent, authentication: ContentAuthentication) {
    self.wireFormat = wireFormat
    self.content = content
    self.authentication = authentication
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    wireFormat = try WireFormat(from: &reader)
    content = try FramedContent(from: &reader)
    authentication = try ContentAuthentication(type: content.content.type, from: &reader)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    wireFormat.encode(into: &writer)
    content.encode(into: &writer)
    authentication.encode(into: &writer)
  }
}
