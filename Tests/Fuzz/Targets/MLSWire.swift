import PalbeMLSMessages
import PalbeWire

/// The few encodings that the message structures keep to their own package.
struct MLSBytes {
  private var writer = ByteWriter(capacity: 512)

  var bytes: [UInt8] { writer.bytes }

  mutating func opaque(_ bytes: [UInt8]) {
    switch bytes.count {
    case ..<(1 << 6): writer.uint8(UInt8(bytes.count))
    case ..<(1 << 14): writer.uint16(UInt16(bytes.count) | 0x4000)
    default: writer.uint32(UInt32(bytes.count) | 0x8000_0000)
    }
    writer.append(bytes)
  }

  mutating func append(_ value: some MLSCodable) { value.encode(into: &writer) }

  mutating func uint8(_ value: UInt8) { writer.uint8(value) }

  mutating func append(_ bytes: [UInt8]) { writer.append(bytes) }

  mutating func body(_ content: MessageContent) {
    switch content {
    case .application(let data): opaque(data)
    case .proposal(let proposal): append(proposal)
    case .commit(let commit): append(commit)
    }
  }

  mutating func authentication(_ authentication: ContentAuthentication) {
    opaque(authentication.signature)
    if let tag = authentication.confirmationTag { opaque(tag) }
  }
}

extension PrivateMessage {
  /// `PrivateContentAAD`.
  var aad: [UInt8] {
    var writer = MLSBytes()
    writer.append(senderAAD)
    writer.opaque(authenticatedData)
    return writer.bytes
  }

  /// `SenderDataAAD`.
  var senderAAD: [UInt8] {
    var writer = MLSBytes()
    writer.opaque(groupID)
    var number = ByteWriter(capacity: 8)
    number.uint64(epoch)
    writer.append(number.bytes)
    writer.append(contentType)
    return writer.bytes
  }
}
