import PalbeUnits
import PalbeWire

extension STUNMessage {
  /// True when the first bytes are those of a STUN message: 0 to 3 and the magic cookie (RFC 7983 §7, RFC 8489 §5).
  public static func isSTUN(_ datagram: Span<UInt8>) -> Bool {
    datagram.count >= headerByteCount && datagram[0] < 4 && datagram.uint32(at: 4) == magicCookie
  }

  /// Reads a whole datagram. FINGERPRINT is checked here; MESSAGE-INTEGRITY needs a key, see `isAuthentic`.
  public static func parse(_ datagram: Span<UInt8>) throws(STUNError) -> STUNMessage {
    try parse(datagram, copiesUsername: true)
  }

  /// Without its username, a check costs no allocation.
  static func parse(_ datagram: Span<UInt8>, copiesUsername: Bool) throws(STUNError) -> STUNMessage {
    guard isSTUN(datagram) else { throw .notSTUN }
    let length = Int(datagram.uint16(at: 2))
    guard length.isMultiple(of: 4), headerByteCount + length == datagram.count, datagram.count <= byteLimit
    else {
      throw .wrongLength(declared: length, have: datagram.count - headerByteCount)
    }
    let type = datagram.uint16(at: 0)
    // The class bits lie between the method bits: M11…M7 C1 M6…M4 C0 M3…M0.
    let classBits = UInt8(truncatingIfNeeded: type >> 4 & 1 | type >> 7 & 2)
    guard let messageClass = Class(rawValue: classBits) else { throw .notSTUN }
    var message = STUNMessage(
      messageClass, method: type & 0xf | type >> 1 & 0x70 | type >> 2 & 0xf80,
      transactionID: STUNTransactionID(high: datagram.uint32(at: 8), low: low64(datagram, at: 12)))
    try message.readAttributes(of: datagram, copiesUsername: copiesUsername)
    return message
  }

  private mutating func readAttributes(
    of datagram: Span<UInt8>, copiesUsername: Bool
  ) throws(STUNError) {
    var offset = Self.headerByteCount
    var seen = InlineArray<32, UInt16>(repeating: 0)
    var count = 0
    func isSeen(_ type: UInt16) -> Bool {
      for index in 0..<count where seen[index] == type { return true }
      return false
    }
    while offset < datagram.count {
      guard count < Self.attributeLimit else { throw .tooManyAttributes(limit: Self.attributeLimit) }
      // The message's length is a multiple of four, so an attribute's header always fits.
      let type = datagram.uint16(at: offset)
      let length = Int(datagram.uint16(at: offset + 2))
      let start = offset + 4
      guard start + length <= datagram.count else { throw .truncatedAttribute(type: type) }
      // The padding fits too, because both offsets are multiples of four.
      let next = start + (length + 3) & ~3
      if type == STUNAttribute.fingerprint {
        guard length == 4 else { throw .malformedAttribute(type: type) }
        let expected = CRC32.checksum(datagram, 0..<offset) ^ Self.fingerprintMask
        guard next == datagram.count, datagram.uint32(at: start) == expected else { throw .wrongFingerprint }
        hasFingerprint = true
      } else if integrityOffset == nil, !isSeen(type) {
        let value = datagram.extracting(start..<start + length)
        if type == STUNAttribute.messageIntegrity {
          guard length == 20 else { throw .malformedAttribute(type: type) }
          integrityOffset = offset
        } else {
          try read(type, value, copiesUsername: copiesUsername)
        }
      }
      seen[count] = type
      count += 1
      offset = next
    }
  }

  private mutating func read(
    _ type: UInt16, _ value: Span<UInt8>, copiesUsername: Bool
  ) throws(STUNError) {
    func require(_ condition: Bool) throws(STUNError) {
      if !condition { throw .malformedAttribute(type: type) }
    }
    switch type {
    case STUNAttribute.username:
      try require(value.count <= 513)
      if copiesUsername { username = [UInt8](value) }
    case STUNAttribute.priority:
      try require(value.count == 4)
      priority = value.uint32(at: 0)
    case STUNAttribute.useCandidate:
      try require(value.isEmpty)
      useCandidate = true
    case STUNAttribute.iceControlled, STUNAttribute.iceControlling:
      try require(value.count == 8)
      let tieBreaker = Self.low64(value, at: 0)
      role =
        type == STUNAttribute.iceControlled
        ? .controlled(tieBreaker: tieBreaker) : .controlling(tieBreaker: tieBreaker)
    case STUNAttribute.xorMappedAddress:
      mappedAddress = try address(type, value, isMasked: true)
    case STUNAttribute.mappedAddress:
      let plain = try address(type, value, isMasked: false)
      mappedAddress = mappedAddress ?? plain
    case STUNAttribute.errorCode:
      try require(value.count >= 4 && value.count <= 4 + 763)
      let hundreds = value[2] & 7
      try require((3...6).contains(hundreds) && value[3] < 100)
      errorCode = ErrorCode(
        UInt16(hundreds) * 100 + UInt16(value[3]), text(value.extracting(4..<value.count)))
    case STUNAttribute.unknownAttributes:
      try require(value.count.isMultiple(of: 2) && value.count <= 2 * Self.attributeLimit)
      unknownAttributes = stride(from: 0, to: value.count, by: 2).map { index in value.uint16(at: index) }
    case STUNAttribute.software:
      try require(value.count <= 763)
      software = text(value)
    case STUNAttribute.realm, STUNAttribute.nonce, STUNAttribute.messageIntegritySHA256:
      // Known, and without meaning for the short-term credentials of ICE.
      break
    default:
      if type < 0x8000 { notUnderstood.append(type) }
    }
  }

  private func address(
    _ type: UInt16, _ value: Span<UInt8>, isMasked: Bool
  ) throws(STUNError) -> SocketAddress {
    guard value.count >= 4, value.count == (value[1] == 1 ? 8 : 20), value[1] == 1 || value[1] == 2 else {
      throw .malformedAttribute(type: type)
    }
    var port = value.uint16(at: 2)
    var bytes = [UInt8](value.extracting(4..<value.count))
    if isMasked {
      port ^= UInt16(truncatingIfNeeded: Self.magicCookie >> 16)
      for (index, mask) in zip(bytes.indices, Self.addressMask(transactionID)) { bytes[index] ^= mask }
    }
    guard let address = SocketAddress(addressBytes: bytes, port: port) else {
      throw .malformedAttribute(type: type)
    }
    return address
  }

  private func text(_ value: Span<UInt8>) -> String { String(decoding: [UInt8](value), as: UTF8.self) }

  private static func low64(_ bytes: Span<UInt8>, at offset: Int) -> UInt64 {
    UInt64(bytes.uint32(at: offset)) << 32 | UInt64(bytes.uint32(at: offset + 4))
  }
}
