public import PalbeWire

/// `ParentNode`, RFC 9420 §7.1.
public struct ParentNode: Hashable, MLSCodable {
  /// HPKE public key of the node.
  public var encryptionKey: [UInt8]
  /// Binds the node to those above it; empty at the top of a path.
  public var parentHash: [UInt8]
  /// Leaves below that do not hold the node's private key, ascending.
  public var unmergedLeaves: [LeafIndex]

  /// A node as given.
  public init(encryptionKey: [UInt8], parentHash: [UInt8], unmergedLeaves: [LeafIndex] = []) {
    self.encryptionKey = encryptionKey
    self.parentHash = parentHash
    self.unmergedLeaves = unmergedLeaves
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    encryptionKey = try reader.opaque()
    parentHash = try reader.opaque()
    unmergedLeaves = try reader.vector(of: LeafIndex.self)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(encryptionKey)
    writer.opaque(parentHash)
    writer.vector(unmergedLeaves)
  }
}

/// `Node`, RFC 9420 §12.4.3.3.
public enum TreeNode: Hashable, MLSCodable {
  /// A member.
  case leaf(LeafNode)
  /// An inner node.
  case parent(ParentNode)

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .leaf(try LeafNode(from: &reader))
    case 2: self = .parent(try ParentNode(from: &reader))
    case let value: throw .invalid(field: "node_type", value: UInt64(value))
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    switch self {
    case .leaf(let leaf):
      writer.uint8(1)
      leaf.encode(into: &writer)
    case .parent(let parent):
      writer.uint8(2)
      parent.encode(into: &writer)
    }
  }
}

/// `optional<Node> ratchet_tree<V>`, RFC 9420 §12.4.3.3: the nodes left to right, trailing blanks left out.
public struct RatchetTreeExtension: Hashable, MLSCodable {
  /// Node i at position i, nil when blank.
  public var nodes: [TreeNode?]

  /// The nodes as given.
  public init(nodes: [TreeNode?]) { self.nodes = nodes }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    let count = try reader.vectorLength()
    var inner = try reader.reader(count)
    nodes = []
    while !inner.isAtEnd { nodes.append(try inner.optional(TreeNode.self)) }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.bytes.reserveCapacity(writer.bytes.count + nodes.count * 128)
    writer.nested { writer in
      for node in nodes { writer.optional(node) }
    }
  }
}
