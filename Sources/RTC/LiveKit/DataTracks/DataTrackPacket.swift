import PalbeWire

extension LiveKit {
  /// A packet of a data track, as far as a forwarder reads it: its handle, and which extensions it has.
  ///
  ///     |V=0  |S|F|X| reserved          | handle                        |
  ///     | sequence number               | frame number                  |
  ///     | timestamp                                                     |
  ///     | L, only with X                | extensions, zeros, payload …
  ///
  /// L and what belongs to it take (L + 1) · 4 bytes. An extension is its id, its length and as many bytes; a zero in place of
  /// an id is padding. Source: livekit-protocol, data channels.
  public struct DataTrackPacket: Equatable, Sendable {
    static let headerByteCount = 12
    private static let extensionFlag: UInt8 = 0x04

    /// Whose packet it is: the publisher's own number for its track on the way up, the server's on the way down. Never 0.
    public let handle: UInt16
    /// Its payload is encrypted end to end (extension E2EE).
    public let isEncrypted: Bool
    /// It says by itself who sent it (extension PARTICIPANT_SID), which only a server may say.
    public let namesSender: Bool
    /// Where its extensions lie, without L.
    let extensions: Range<Int>

    /// Reads a packet's header.
    ///
    /// - Throws: `truncated` for one that ends too early, `invalid` for another version or the handle 0.
    public init(_ packet: Span<UInt8>) throws(WireError) {
      var reader = ByteReader(packet)
      let first = try reader.uint8()
      guard first >> 5 == 0 else { throw .invalid(field: "version", value: UInt64(first >> 5)) }
      try reader.skip(1)
      handle = try reader.uint16()
      guard handle != 0 else { throw .invalid(field: "handle", value: 0) }
      try reader.skip(8)
      guard first & Self.extensionFlag != 0 else {
        extensions = Self.headerByteCount..<Self.headerByteCount
        isEncrypted = false
        namesSender = false
        return
      }
      let byteCount = 4 * Int(try reader.uint16()) + 2
      let start = reader.offset
      try reader.skip(byteCount)
      extensions = start..<start + byteCount
      var isEncrypted = false
      var namesSender = false
      try Self.forEachExtension(in: packet.extracting(extensions)) { id, _ in
        switch DataTrackExtensionID(rawValue: Int32(id)) {
        case .e2ee: isEncrypted = true
        case .participantSid: namesSender = true
        default: break
        }
      }
      self.isEncrypted = isEncrypted
      self.namesSender = namesSender
    }

    /// The packet as its subscribers get it: under the server's handle, and without a sender's name of its own. All else,
    /// what belongs to end-to-end encryption too, stays as it is.
    ///
    /// - Parameter packet: what this was read from.
    public func forwarded(_ packet: [UInt8], as newHandle: UInt16) -> [UInt8] {
      var bytes = namesSender ? withoutSender(packet) : packet
      bytes[2] = UInt8(truncatingIfNeeded: newHandle >> 8)
      bytes[3] = UInt8(truncatingIfNeeded: newHandle)
      return bytes
    }

    private func withoutSender(_ packet: [UInt8]) -> [UInt8] {
      var kept: [UInt8] = []
      do throws(WireError) {
        try Self.forEachExtension(in: packet.span.extracting(extensions)) { id, range in
          guard DataTrackExtensionID(rawValue: Int32(id)) != .participantSid else { return }
          kept.append(id)
          kept.append(UInt8(truncatingIfNeeded: range.count))
          let start = extensions.lowerBound + range.lowerBound
          kept += packet[start..<start + range.count]
        }
      } catch { kept = [] }  // It was read before.
      var bytes = Array(packet[..<Self.headerByteCount])
      if kept.isEmpty {
        bytes[0] &= ~Self.extensionFlag
      } else {
        let words = (2 + kept.count + 3) / 4
        bytes.append(UInt8(truncatingIfNeeded: (words - 1) >> 8))
        bytes.append(UInt8(truncatingIfNeeded: words - 1))
        bytes += kept
        bytes += [UInt8](repeating: 0, count: 4 * words - 2 - kept.count)
      }
      return bytes + packet[extensions.upperBound...]
    }

    /// Calls `body` for each with its id and where its bytes lie.
    private static func forEachExtension(
      in bytes: Span<UInt8>, _ body: (UInt8, Range<Int>) -> Void
    ) throws(WireError) {
      var reader = ByteReader(bytes)
      while !reader.isAtEnd {
        let id = try reader.uint8()
        guard id != 0 else { continue }
        let count = Int(try reader.uint8())
        let start = reader.offset
        try reader.skip(count)
        body(id, start..<start + count)
      }
    }
  }
}
