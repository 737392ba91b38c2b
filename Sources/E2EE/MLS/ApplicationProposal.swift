public import PalbeMLSMessages
import PalbeWire

/// A type of proposal that is the application's own (RFC 9420 §12.1, §17.4: types 0xF000 and above are for private
/// use). The engine carries its body, an `opaque<V>`, and hands it out with the commit; members whose leaf does not
/// list the type keep it out of the group.
///
/// All members must declare a type alike: whether its commit needs a path is part of what makes a commit valid.
public struct ApplicationProposalType: Sendable, Hashable {
  /// The registry value; not one of RFC 9420's own.
  public let type: ProposalType
  /// Whether a commit that holds one must have a path.
  public let requiresPath: Bool
  /// Whether external senders may propose it, too.
  public let isForExternalSenders: Bool

  /// A type with its rules. Without a reason, leave `requiresPath` true: the safe way.
  public init(_ type: ProposalType, requiresPath: Bool = true, isForExternalSenders: Bool = false) {
    self.type = type
    self.requiresPath = requiresPath
    self.isForExternalSenders = isForExternalSenders
  }
}

/// A committed proposal of the application's own.
public struct ApplicationProposal: Sendable, Hashable {
  /// Its type.
  public let type: ProposalType
  /// Its body.
  public let data: [UInt8]
  /// Who proposed it.
  public let sender: Sender
}

/// A committed proposal as storage keeps it.
struct StoredApplicationProposal: MLSCodable {
  let value: ApplicationProposal

  init(_ value: ApplicationProposal) { self.value = value }

  init(from reader: inout ByteReader) throws(WireError) {
    value = ApplicationProposal(
      type: try ProposalType(from: &reader), data: try reader.opaque(), sender: try Sender(from: &reader))
  }

  func encode(into writer: inout ByteWriter) {
    value.type.encode(into: &writer)
    writer.opaque(value.data)
    value.sender.encode(into: &writer)
  }
}

extension [ApplicationProposalType] {
  /// How a type is declared here; nil when it is not, or is one of RFC 9420's own.
  func declaration(of type: ProposalType) -> ApplicationProposalType? {
    type.isDefault || type.rawValue == 0 ? nil : first { $0.type == type }
  }
}
