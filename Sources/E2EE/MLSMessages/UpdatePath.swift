public import PalbeWire

/// `HPKECiphertext`, RFC 9420 §7.6.
public struct HPKECiphertext: Hashable, MLSCodable {
  /// The KEM's encapsulated key.
  public var kemOutput: [UInt8]
  /// Ciphertext and tag.
  public var ciphertext: [UInt8]

  /// Both parts.
  public init(kemOutput: [UInt8], ciphertext: [UInt8]) {
    self.kemOutput = kemOutput
    self.ciphertext = ciphertext
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    kemOutput = try reader.opaque()
    ciphertext = try reader.opaque()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(kemOutput)
    writer.opaque(ciphertext)
  }
}

/// `UpdatePathNode`, RFC 9420 §7.6.
public struct UpdatePathNode: Hashable, MLSCodable {
  /// The node's new public key.
  public var encryptionKey: [UInt8]
  /// Its path secret, once for each node in the resolution of its copath child.
  public var encryptedPathSecrets: [HPKECiphertext]

  /// A node as given.
  public init(encryptionKey: [UInt8], encryptedPathSecrets: [HPKECiphertext]) {
    self.encryptionKey = encryptionKey
    self.encryptedPathSecrets = encryptedPathSecrets
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    encryptionKey = try reader.opaque()
    encryptedPathSecrets = try reader.vector(of: HPKECiphertext.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(encryptionKey)
    writer.vector(encryptedPathSecrets)
  }
}

/// `UpdatePath`, RFC 9420 §7.6: new keys from the committer's leaf up to the root.
public struct UpdatePath: Hashable, MLSCodable {
  /// The committer's new leaf.
  public var leafNode: LeafNode
  /// One for each node of the filtered direct path, from the leaf up.
  public var nodes: [UpdatePathNode]

  /// A path as given.
  public init(leafNode: LeafNode, nodes: [UpdatePathNode]) {
    self.leafNode = leafNode
    self.nodes = nodes
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    leafNode = try LeafNode(from: &reader)
    nodes = try reader.vector(of: UpdatePathNode.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    leafNode.encode(into: &writer)
    writer.vector(nodes)
  }
}
