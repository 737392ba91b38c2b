import PalbeCrypto
import PalbeMLSMessages
import PalbeWire

/// `GroupSecrets`, RFC 9420 §12.4.3.1: what a Welcome hands to one new member.
struct GroupSecrets: Sendable {
  let joinerSecret: Secret
  let pathSecret: Secret?
  let preSharedKeys: [PreSharedKeyID]

  init(joinerSecret: Secret, pathSecret: Secret?, preSharedKeys: [PreSharedKeyID]) {
    self.joinerSecret = joinerSecret
    self.pathSecret = pathSecret
    self.preSharedKeys = preSharedKeys
  }

  init(decoding plaintext: Secret) throws(WireError) {
    var reader = ByteReader(plaintext.span)
    joinerSecret = try Self.secret(&reader)
    switch try reader.uint8() {
    case 0: pathSecret = nil
    case 1: pathSecret = try Self.secret(&reader)
    case let value: throw .invalid(field: "optional presence", value: UInt64(value))
    }
    preSharedKeys = try reader.vector(of: PreSharedKeyID.self)
    try reader.finish()
  }

  private static func secret(_ reader: inout ByteReader) throws(WireError) -> Secret {
    let count = try reader.vectorLength()
    return Secret(SymmetricKey(copying: try reader.span(count)))
  }

  /// The wire form; a secret itself.
  func encoded() -> Secret {
    var joinerHeader = ByteWriter(capacity: 4)
    joinerHeader.vectorLength(joinerSecret.byteCount)
    var pathHeader = ByteWriter(capacity: 4)
    pathHeader.uint8(pathSecret == nil ? 0 : 1)
    if let pathSecret { pathHeader.vectorLength(pathSecret.byteCount) }
    var tail = ByteWriter(capacity: 64)
    tail.vector(preSharedKeys)
    let count =
      joinerHeader.bytes.count + joinerSecret.byteCount + pathHeader.bytes.count
      + (pathSecret?.byteCount ?? 0) + tail.bytes.count
    return Secret(
      SymmetricKey(byteCount: count) { output in
        output.append(contentsOf: joinerHeader.bytes.span)
        output.append(contentsOf: joinerSecret.span)
        output.append(contentsOf: pathHeader.bytes.span)
        if let pathSecret { output.append(contentsOf: pathSecret.span) }
        output.append(contentsOf: tail.bytes.span)
      })
  }
}
