import PalbeUnits
import PalbeWire

extension STUNMessage {
  /// FINGERPRINT is the CRC xored with "STUN" (RFC 8489 §14.7).
  static let fingerprintMask: UInt32 = 0x5354_554e

  /// What an address is xored with: the magic cookie, then the transaction id (RFC 8489 §14.2).
  static func addressMask(_ transaction: STUNTransactionID) -> [UInt8] {
    var mask = ByteWriter(capacity: 16)
    mask.uint32(magicCookie)
    mask.uint32(transaction.high)
    mask.uint64(transaction.low)
    return mask.bytes
  }

  /// The message's bytes, ending with FINGERPRINT, and with MESSAGE-INTEGRITY before it when there is a key.
  ///
  /// `integrityKey` is the ICE password of the agent that receives a request or sent a response's request.
  /// A username above 513 bytes or a text above 763 bytes is cut.
  public func encoded(integrityKey: [UInt8]? = nil) -> [UInt8] {
    var writer = ByteWriter(capacity: 128)
    encode(into: &writer, integrityKey: integrityKey)
    return writer.bytes
  }

  /// Makes `writer`, which is empty, hold the message's bytes.
  func encode(into writer: inout ByteWriter, integrityKey: [UInt8]?) {
    let bits = UInt16(messageClass.rawValue)
    let method = method & 0xfff
    writer.uint16(
      method & 0xf | (method & 0x70) << 1 | (method & 0xf80) << 2 | (bits & 1) << 4 | (bits & 2) << 7)
    writer.uint16(0)
    writer.uint32(Self.magicCookie)
    writer.uint32(transactionID.high)
    writer.uint64(transactionID.low)
    writeAttributes(into: &writer)
    if let integrityKey {
      Self.setLength(&writer, following: 24)
      let code = STUNIntegrity.code(
        of: writer.bytes.span, length: writer.bytes.count - Self.headerByteCount + 24, key: integrityKey.span)
      writer.uint16(STUNAttribute.messageIntegrity)
      writer.uint16(UInt16(STUNIntegrity.byteCount))
      for index in code.indices { writer.uint8(code[index]) }
    }
    Self.setLength(&writer, following: 8)
    let checksum = CRC32.checksum(writer.bytes.span, 0..<writer.bytes.count)
    writer.uint16(STUNAttribute.fingerprint)
    writer.uint16(4)
    writer.uint32(checksum ^ Self.fingerprintMask)
  }

  private func writeAttributes(into writer: inout ByteWriter) {
    if let software {
      Self.write(STUNAttribute.software, [UInt8](software.utf8.prefix(763)), into: &writer)
    }
    if let errorCode {
      let number = [0, 0, UInt8(truncatingIfNeeded: errorCode.code / 100), UInt8(errorCode.code % 100)]
      Self.write(STUNAttribute.errorCode, number + errorCode.reason.utf8.prefix(763), into: &writer)
    }
    if !unknownAttributes.isEmpty {
      let list = unknownAttributes.prefix(Self.attributeLimit).flatMap { type in
        [UInt8(type >> 8), UInt8(truncatingIfNeeded: type)]
      }
      Self.write(STUNAttribute.unknownAttributes, list, into: &writer)
    }
    if let username { Self.write(STUNAttribute.username, [UInt8](username.prefix(513)), into: &writer) }
    if let mappedAddress { writeMasked(mappedAddress, into: &writer) }
    if let priority {
      writer.uint32(UInt32(STUNAttribute.priority) << 16 | 4)
      writer.uint32(priority)
    }
    switch role {
    case .controlling(let tieBreaker):
      writer.uint32(UInt32(STUNAttribute.iceControlling) << 16 | 8)
      writer.uint64(tieBreaker)
    case .controlled(let tieBreaker):
      writer.uint32(UInt32(STUNAttribute.iceControlled) << 16 | 8)
      writer.uint64(tieBreaker)
    case nil: break
    }
    if useCandidate { writer.uint32(UInt32(STUNAttribute.useCandidate) << 16) }
  }

  private func writeMasked(_ address: SocketAddress, into writer: inout ByteWriter) {
    let isIPv4 = address.family == .ipv4
    writer.uint32(UInt32(STUNAttribute.xorMappedAddress) << 16 | (isIPv4 ? 8 : 20))
    writer.uint16(isIPv4 ? 1 : 2)
    writer.uint16(address.port ^ UInt16(truncatingIfNeeded: Self.magicCookie >> 16))
    // The mask is the cookie, then the transaction id.
    let high = address.high ^ (UInt64(Self.magicCookie) << 32 | UInt64(transactionID.high))
    if isIPv4 { return writer.uint32(UInt32(truncatingIfNeeded: high >> 32)) }
    writer.uint64(high)
    writer.uint64(address.low ^ transactionID.low)
  }

  private static func write(_ type: UInt16, _ value: [UInt8], into writer: inout ByteWriter) {
    writer.uint16(type)
    writer.uint16(UInt16(truncatingIfNeeded: value.count))
    writer.append(value)
    while !writer.bytes.count.isMultiple(of: 4) { writer.uint8(0) }
  }

  /// Sets the header's length as if `following` more bytes were there already (RFC 8489 §14.5 and §14.7).
  private static func setLength(_ writer: inout ByteWriter, following: Int) {
    let length = writer.bytes.count - headerByteCount + following
    writer.bytes[2] = UInt8(truncatingIfNeeded: length >> 8)
    writer.bytes[3] = UInt8(truncatingIfNeeded: length)
  }
}
