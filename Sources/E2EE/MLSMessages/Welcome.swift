public import PalbeWire

/// `GroupInfo`, RFC 9420 §12.4.3: a signed snapshot of a group's public state.
public struct GroupInfo: Hashable, MLSCodable {
  /// The epoch's context.
  public var context: GroupContext
  /// Extensions such as the ratchet tree.
  public var extensions: [Extension]
  /// The epoch's confirmation tag.
  public var confirmationTag: [UInt8]
  /// Who signed.
  public var signer: LeafIndex
  /// Over `toBeSigned`, label "GroupInfoTBS".
  public var signature: [UInt8]

  /// All parts; sign it before it is used.
  public init(
    context: GroupContext, extensions: [Extension], confirmationTag: [UInt8], signer: LeafIndex,
    signature: [UInt8] = []
  ) {
    self.context = context
    self.extensions = extensions
    self.confirmationTag = confirmationTag
    self.signer = signer
    self.signature = signature
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    context = try GroupContext(from: &reader)
    extensions = try reader.vector(of: Extension.self)
    confirmationTag = try reader.opaque()
    signer = try LeafIndex(from: &reader)
    signature = try reader.opaque()
  }

  private func encodeUnsigned(into writer: inout ByteWriter) {
    context.encode(into: &writer)
    writer.vector(extensions)
    writer.opaque(confirmationTag)
    signer.encode(into: &writer)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    encodeUnsigned(into: &writer)
    writer.opaque(signature)
  }

  /// `GroupInfoTBS`: what the signature covers.
  public var toBeSigned: [UInt8] {
    var writer = ByteWriter(capacity: 512)
    encodeUnsigned(into: &writer)
    return writer.bytes
  }
}

/// `EncryptedGroupSecrets`, RFC 9420 §12.4.3.1.
public struct EncryptedGroupSecrets: Hashable, MLSCodable {
  /// `KeyPackageRef` of the client it is for.
  public var newMember: [UInt8]
  /// The secrets, to that client's init key.
  public var encryptedGroupSecrets: HPKECiphertext

  /// Both parts.
  public init(newMember: [UInt8], encryptedGroupSecrets: HPKECiphertext) {
    self.newMember = newMember
    self.encryptedGroupSecrets = encryptedGroupSecrets
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    newMember = try reader.opaque()
    encryptedGroupSecrets = try HPKECiphertext(from: &reader)
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    writer.opaque(newMember)
    encryptedGroupSecrets.encode(into: &writer)
  }
}

/// `Welcome`, RFC 9420 §12.4.3.1: what lets new members start.
public struct Welcome: Hashable, MLSCodable {
  /// The group's suite.
  public var cipherSuite: CipherSuite
  /// One for each new member.
  public var secrets: [EncryptedGroupSecrets]
  /// The GroupInfo, under a key from the joiner secret.
  public var encryptedGroupInfo: [UInt8]

  /// All parts.
  public init(cipherSuite: CipherSuite, secrets: [EncryptedGroupSecrets], encryptedGroupInfo: [UInt8]) {
    self.cipherSuite = cipherSuite
    self.secrets = secrets
    self.encryptedGroupInfo = encryptedGroupInfo
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    cipherSuite = try CipherSuite(from: &reader)
    secrets = try reader.vector(of: EncryptedGroupSecrets.self)
    encryptedGroupInfo = try reader.opaque()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    cipherSuite.encode(into: &writer)
    writer.vector(secrets)
    writer.opaque(encryptedGroupInfo)
  }
}
