public import PalbeWire

/// `ResumptionPSKUsage`, RFC 9420 §8.4.
public enum ResumptionUsage: UInt8, Sendable {
  /// As the application likes.
  case application = 1
  /// The new group after a ReInit.
  case reInit = 2
  /// A subgroup.
  case branch = 3
}

/// `PreSharedKeyID`, RFC 9420 §8.4.
public struct PreSharedKeyID: Hashable, MLSCodable {
  /// What the key is.
  public enum Source: Hashable, Sendable {
    /// A key the application holds.
    case external(id: [UInt8])
    /// The resumption key of an epoch.
    case resumption(usage: ResumptionUsage, groupID: [UInt8], epoch: UInt64)
  }

  /// What the key is.
  public var source: Source
  /// Fresh bytes, as long as the suite's hash.
  public var nonce: [UInt8]

  /// A key with its nonce.
  public init(source: Source, nonce: [UInt8]) {
    self.source = source
    self.nonce = nonce
  }

  /// Reads one; throws for bytes that are not one.
  public init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: source = .external(id: try reader.opaque())
    case 2:
      let raw = try reader.uint8()
      guard let usage = ResumptionUsage(rawValue: raw) else {
        throw .invalid(field: "resumption_psk_usage", value: UInt64(raw))
      }
      source = .resumption(usage: usage, groupID: try reader.opaque(), epoch: try reader.uint64())
    case let value: throw .invalid(field: "psktype", value: UInt64(value))
    }
    nonce = try reader.opaque()
  }

  /// Appends its wire form.
  public func encode(into writer: inout ByteWriter) {
    switch source {
    case .external(let id):
      writer.uint8(1)
      writer.opaque(id)
    case .resumption(let usage, let groupID, let epoch):
      writer.uint8(2)
      writer.uint8(usage.rawValue)
      writer.opaque(groupID)
      writer.uint64(epoch)
    }
    writer.opaque(nonce)
  }
}
