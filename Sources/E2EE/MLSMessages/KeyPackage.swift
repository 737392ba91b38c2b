public import PalbeWire

/// `KeyPackage`, RFC 9420 §10: what a client publishes so that others can add it.
public struct KeyPackage: Hashable, MLSCodable {
  /// Protocol version.
  public var version: ProtocolVersion
  /// The suite of all its keys.
  public var cipherSuite: CipherSuite
  /// HPKE public key that a Welcome is encrypted to.
  public var initKey: [UInt8]
  /// The leaf that will stand in the group.
  public var leafNode: LeafNode
  /// Extensions of the key package.
  public var extensions: [Extension]
  /// Over `toBeSigned`, label "KeyPackageTBS".
  public var signature: [UInt8]

  /// A key package as given; sign it before it is used.
  public init(
    version: ProtocolVersion = .mls10, cipherSuite: CipherSuite, initKey: [UInt8], leafNode: LeafNode,
    extensions: [Extension] = [], signature: [UInt8] = []
  ) {
    self.version = version
    self.cipherSuite = cipherSuite
    self.initKey = initKey
    self.leafNode = leafNode
    self.extensions = extensions
    self.signature = signature
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    version = try ProtocolVersion(from: &reader)
    cipherSuite = try CipherSuite(from: &reader)
    initKey = try reader.opaque()
    leafNode = try LeafNode(from: &reader)
    extensions = try reader.vector(of: Extension.self)
    signature = try reader.opaque()
  }

  /// True when it may be used for several groups, draft-ietf-mls-extensions.
  public var isLastResort: Bool { extensions.contains { $0.type == .lastResort } }

  private func encodeUnsigned(into writer: inout ByteWriter) {
    version.encode(into: &writer)
    cipherSuite.encode(into: &writer)
    writer.opaque(initKey)
    leafNode.encode(into: &writer)
    writer.vector(extensions)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    encodeUnsigned(into: &writer)
    writer.opaque(signature)
  }

  /// `KeyPackageTBS`: what the signature covers.
  public var toBeSigned: [UInt8] {
    var writer = ByteWriter(capacity: 384)
    encodeUnsigned(into: &writer)
    return writer.bytes
  }
}
