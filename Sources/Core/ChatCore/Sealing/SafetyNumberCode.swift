import PalbeWire

/// What a code on a screen says: how its owner sees both sides' devices. Type, length and value of each field.
package struct SafetyNumberCode: Hashable, Sendable {
  /// Of the algorithm.
  package var version: UInt16
  /// Of the devices of who shows the code.
  package var localHash: [UInt8]
  /// Of the devices of who scans it, as the other sees them.
  package var remoteHash: [UInt8]

  /// A code is far shorter; so is what a camera reads.
  private static let byteLimit = 256
  private enum Field { static let (version, local, remote): (UInt8, UInt8, UInt8) = (1, 2, 3) }

  /// A code.
  package init(version: UInt16, localHash: [UInt8], remoteHash: [UInt8]) {
    (self.version, self.localHash, self.remoteHash) = (version, localHash, remoteHash)
  }

  /// What was scanned. Fields that are not known are passed over; those that are stand once each.
  package init(scanned bytes: Span<UInt8>) throws(WireError) {
    guard bytes.count <= Self.byteLimit else {
      throw .tooLong(field: "code", length: bytes.count, limit: Self.byteLimit)
    }
    var reader = ByteReader(bytes)
    var (version, local, remote): (UInt16?, [UInt8]?, [UInt8]?)
    while !reader.isAtEnd {
      let field = try reader.uint8()
      let value = try reader.array(Int(try reader.uint8()))
      switch (field, value.count) {
      case (Field.version, 2) where version == nil: version = UInt16(value[0]) << 8 | UInt16(value[1])
      case (Field.local, 32) where local == nil: local = value
      case (Field.remote, 32) where remote == nil: remote = value
      case (Field.version...Field.remote, _): throw .invalid(field: "code", value: UInt64(field))
      default: break
      }
    }
    guard let version, let local, let remote else { throw .truncated(needed: 1, have: 0) }
    self.init(version: version, localHash: local, remoteHash: remote)
  }

  /// The bytes of the code.
  package var encoded: [UInt8] {
    var writer = ByteWriter(capacity: 72)
    writer.uint8(Field.version)
    writer.uint8(2)
    writer.uint16(version)
    for (field, hash) in [(Field.local, localHash), (Field.remote, remoteHash)] {
      writer.uint8(field)
      writer.uint8(UInt8(clamping: hash.count))
      writer.append(Array(hash.prefix(255)))
    }
    return writer.bytes
  }

  /// Whether who showed the code and who scanned it see the same devices on both sides. A code of another version does
  /// not: the two compare digits then.
  package func agrees(localMaterial: [UInt8], remoteMaterial: [UInt8]) -> Bool {
    version == SafetyNumber.version && localHash == SafetyNumber.deviceSetHash(remoteMaterial)
      && remoteHash == SafetyNumber.deviceSetHash(localMaterial)
  }
}
