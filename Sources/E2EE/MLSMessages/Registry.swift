public import PalbeWire

/// `ProtocolVersion`, RFC 9420 §6.
public struct ProtocolVersion: MLSRegistryValue {
  /// The registry value.
  public let rawValue: UInt16
  /// Any registry value.
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// MLS 1.0.
  public static let mls10 = ProtocolVersion(rawValue: 1)
}

/// `CipherSuite`, RFC 9420 §17.1.
public struct CipherSuite: MLSRegistryValue {
  /// The registry value.
  public let rawValue: UInt16
  /// Any registry value.
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519.
  public static let x25519AES128GCM = CipherSuite(rawValue: 1)
  /// MLS_128_DHKEMP256_AES128GCM_SHA256_P256.
  public static let p256AES128GCM = CipherSuite(rawValue: 2)
  /// MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519.
  public static let x25519ChaCha20Poly1305 = CipherSuite(rawValue: 3)
  /// MLS_256_DHKEMX448_AES256GCM_SHA512_Ed448.
  public static let x448AES256GCM = CipherSuite(rawValue: 4)
  /// MLS_256_DHKEMP521_AES256GCM_SHA512_P521.
  public static let p521AES256GCM = CipherSuite(rawValue: 5)
  /// MLS_256_DHKEMX448_CHACHA20POLY1305_SHA512_Ed448.
  public static let x448ChaCha20Poly1305 = CipherSuite(rawValue: 6)
  /// MLS_256_DHKEMP384_AES256GCM_SHA384_P384.
  public static let p384AES256GCM = CipherSuite(rawValue: 7)
}

/// `ExtensionType`, RFC 9420 §17.3.
public struct ExtensionType: MLSRegistryValue {
  /// The registry value.
  public let rawValue: UInt16
  /// Any registry value.
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// A leaf's application-defined identifier.
  public static let applicationID = ExtensionType(rawValue: 1)
  /// The public tree inside a GroupInfo.
  public static let ratchetTree = ExtensionType(rawValue: 2)
  /// What every member must support.
  public static let requiredCapabilities = ExtensionType(rawValue: 3)
  /// The key for external commits, inside a GroupInfo.
  public static let externalPub = ExtensionType(rawValue: 4)
  /// Who may propose from outside.
  public static let externalSenders = ExtensionType(rawValue: 5)
  /// Marks a key package that may be used again, draft-ietf-mls-extensions; its data is empty.
  public static let lastResort = ExtensionType(rawValue: 10)

  /// Every client supports these, so capabilities do not list them (RFC 9420 §7.2).
  public var isDefault: Bool { (1...5).contains(rawValue) }
}

/// `ProposalType`, RFC 9420 §17.4.
public struct ProposalType: MLSRegistryValue {
  /// The registry value.
  public let rawValue: UInt16
  /// Any registry value.
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// Adds a client.
  public static let add = ProposalType(rawValue: 1)
  /// Replaces the sender's own leaf.
  public static let update = ProposalType(rawValue: 2)
  /// Removes a member.
  public static let remove = ProposalType(rawValue: 3)
  /// Mixes a pre-shared key in.
  public static let preSharedKey = ProposalType(rawValue: 4)
  /// Closes the group in favour of a new one.
  public static let reInit = ProposalType(rawValue: 5)
  /// Starts an external commit.
  public static let externalInit = ProposalType(rawValue: 6)
  /// Replaces the group's extensions.
  public static let groupContextExtensions = ProposalType(rawValue: 7)

  /// Every client supports these, so capabilities do not list them (RFC 9420 §7.2).
  public var isDefault: Bool { (1...7).contains(rawValue) }
}

/// `CredentialType`, RFC 9420 §17.5.
public struct CredentialType: MLSRegistryValue {
  /// The registry value.
  public let rawValue: UInt16
  /// Any registry value.
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  /// A bare identity.
  public static let basic = CredentialType(rawValue: 1)
  /// A certificate chain.
  public static let x509 = CredentialType(rawValue: 2)
}

/// `WireFormat`, RFC 9420 §6.
public enum WireFormat: UInt16, MLSCodable {
  /// Signed, not encrypted.
  case publicMessage = 1
  /// Signed and encrypted.
  case privateMessage = 2
  /// What a new member receives.
  case welcome = 3
  /// What somebody outside needs to join.
  case groupInfo = 4
  /// What a client publishes to be added.
  case keyPackage = 5

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    let value = try reader.uint16()
    guard let format = WireFormat(rawValue: value) else {
      throw .invalid(field: "wire_format", value: UInt64(value))
    }
    self = format
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.uint16(rawValue) }
}

/// A leaf's position in the tree, 0 for the leftmost.
public struct LeafIndex: Hashable, Comparable, MLSCodable {
  /// The position.
  public let value: UInt32
  /// The leaf at `value`.
  public init(_ value: UInt32) { self.value = value }
  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) { value = try reader.uint32() }
  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) { writer.uint32(value) }
  /// By value.
  public static func < (left: LeafIndex, right: LeafIndex) -> Bool { left.value < right.value }
}
