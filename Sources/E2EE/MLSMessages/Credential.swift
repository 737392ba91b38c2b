public import PalbeWire

/// `Credential`, RFC 9420 §5.3: who a leaf claims to be. The application decides whether the claim holds.
public enum Credential: Hashable, MLSCodable {
  /// A bare identity.
  case basic(identity: [UInt8])
  /// A certificate chain, DER, the leaf's certificate first.
  case x509(certificates: [[UInt8]])
  /// A credential of another type, whose body is taken to be one `opaque<V>`: RFC 9420 §5.3 gives a credential no
  /// length of its own, and the two types that it defines begin with one.
  case other(CredentialType, data: [UInt8])

  /// The registry value.
  public var type: CredentialType {
    switch self {
    case .basic: .basic
    case .x509: .x509
    case .other(let type, _): type
    }
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try CredentialType(from: &reader) {
    case .basic: self = .basic(identity: try reader.opaque())
    case .x509: self = .x509(certificates: try reader.vector(of: OpaqueValue.self).map(\.bytes))
    case let other:
      guard other.rawValue != 0 else { throw .invalid(field: "credential_type", value: 0) }
      self = .other(other, data: try reader.opaque())
    }
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    type.encode(into: &writer)
    switch self {
    case .basic(let identity): writer.opaque(identity)
    case .x509(let certificates): writer.vector(certificates.map(OpaqueValue.init))
    case .other(_, let data): writer.opaque(data)
    }
  }
}

/// An `opaque<V>` that stands in a vector of its own kind.
package struct OpaqueValue: Hashable, MLSCodable {
  package let bytes: [UInt8]
  package init(bytes: [UInt8]) { self.bytes = bytes }
  package init(from reader: inout ByteReader) throws(WireError) { bytes = try reader.opaque() }
  package func encode(into writer: inout ByteWriter) { writer.opaque(bytes) }
}
