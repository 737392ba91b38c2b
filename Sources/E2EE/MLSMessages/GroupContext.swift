public import PalbeWire

/// `GroupContext`, RFC 9420 §8.1: what all members of an epoch agree on.
public struct GroupContext: Hashable, MLSCodable {
  /// Protocol version.
  public var version: ProtocolVersion
  /// The group's suite.
  public var cipherSuite: CipherSuite
  /// The group's identifier.
  public var groupID: [UInt8]
  /// Counts the commits, from 0.
  public var epoch: UInt64
  /// Hash of the ratchet tree.
  public var treeHash: [UInt8]
  /// Hash of all commits up to this epoch.
  public var confirmedTranscriptHash: [UInt8]
  /// The group's extensions.
  public var extensions: [Extension]

  /// A context as given.
  public init(
    version: ProtocolVersion = .mls10, cipherSuite: CipherSuite, groupID: [UInt8], epoch: UInt64,
    treeHash: [UInt8], confirmedTranscriptHash: [UInt8], extensions: [Extension] = []
  ) {
    self.version = version
    self.cipherSuite = cipherSuite
    self.groupID = groupID
    self.epoch = epoch
    self.treeHash = treeHash
    self.confirmedTranscriptHash = confirmedTranscriptHash
    self.extensions = extensions
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    version = try ProtocolVersion(from: &reader)
    cipherSuite = try CipherSuite(from: &reader)
    groupID = try reader.opaque()
    epoch = try reader.uint64()
    treeHash = try reader.opaque()
    confirmedTranscriptHash = try reader.opaque()
    extensions = try reader.vector(of: Extension.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    version.encode(into: &writer)
    cipherSuite.encode(into: &writer)
    writer.opaque(groupID)
    writer.uint64(epoch)
    writer.opaque(treeHash)
    writer.opaque(confirmedTranscriptHash)
    writer.vector(extensions)
  }
}
