import PalbeUnits
import PalbeWire

/// The header of one RTP packet (RFC 3550 §5.1), as values; the packet's bytes stay where they are.
public struct RTPHeader: Hashable, Sendable, BitwiseCopyable {
  /// The marker bit: last packet of a video frame, first packet of a talk spurt.
  public var marker: Bool
  /// Which codec the payload is for, as negotiated.
  public var payloadType: PayloadType
  /// Counts packets of one SSRC.
  public var sequenceNumber: SequenceNumber
  /// When the payload was sampled, in ticks of the payload's clock.
  public var timestamp: RTPTimestamp
  /// Who sends.
  public var ssrc: SSRC
  /// Contributing sources behind the fixed header, 0 to 15.
  public var csrcCount: Int
  /// True when a header extension follows.
  public var hasExtension: Bool
  /// True when the padding bit is set.
  public var hasPadding: Bool
  /// The extension's "defined by profile" field; 0xBEDE and 0x100x are RFC 8285's two forms. Zero without extension.
  public var extensionProfile: UInt16
  /// Bytes of the extension's data, without its four-byte header.
  public var extensionByteCount: Int
  /// Bytes before the payload: fixed header, CSRCs and extension.
  public var headerByteCount: Int
  /// Bytes of padding behind the payload, its length byte included. Zero until the payload is in the clear.
  public var paddingByteCount: Int

  /// Bytes of a header without CSRCs and extension.
  public static let fixedByteCount = 12

  /// A header for a new packet, without CSRCs, extension and padding.
  @inlinable public init(
    marker: Bool = false, payloadType: PayloadType, sequenceNumber: SequenceNumber, timestamp: RTPTimestamp,
    ssrc: SSRC
  ) {
    self.marker = marker
    self.payloadType = payloadType
    self.sequenceNumber = sequenceNumber
    self.timestamp = timestamp
    self.ssrc = ssrc
    csrcCount = 0
    hasExtension = false
    hasPadding = false
    extensionProfile = 0
    extensionByteCount = 0
    headerByteCount = Self.fixedByteCount
    paddingByteCount = 0
  }

  /// Parses a packet in the clear: version, lengths and padding are checked.
  @inlinable public static func parse(_ packet: Span<UInt8>) throws(WireError) -> RTPHeader {
    var header = try parseProtected(packet)
    guard header.hasPadding else { return header }
    let padding = Int(packet[packet.count - 1])
    guard padding > 0, padding <= packet.count - header.headerByteCount else {
      throw .invalid(field: "RTP padding", value: UInt64(padding))
    }
    header.paddingByteCount = padding
    return header
  }

  /// Parses the header of a packet whose payload is still encrypted, so that its padding length cannot be read.
  @inlinable public static func parseProtected(_ packet: Span<UInt8>) throws(WireError) -> RTPHeader {
    guard packet.count >= fixedByteCount else { throw .truncated(needed: fixedByteCount, have: packet.count) }
    let first = packet[0]
    guard first >> 6 == 2 else { throw .invalid(field: "RTP version", value: UInt64(first >> 6)) }
    let second = packet[1]
    var header = RTPHeader(
      marker: second & 0x80 != 0, payloadType: PayloadType(second),
      sequenceNumber: SequenceNumber(packet.uint16(at: 2)), timestamp: RTPTimestamp(packet.uint32(at: 4)),
      ssrc: SSRC(packet.uint32(at: 8)))
    header.csrcCount = Int(first & 0x0f)
    header.hasPadding = first & 0x20 != 0
    header.hasExtension = first & 0x10 != 0
    var end = fixedByteCount + 4 * header.csrcCount
    if header.hasExtension {
      guard packet.count >= end + 4 else { throw .truncated(needed: end + 4, have: packet.count) }
      header.extensionProfile = packet.uint16(at: end)
      header.extensionByteCount = 4 * Int(packet.uint16(at: end + 2))
      end += 4 + header.extensionByteCount
    }
    guard packet.count >= end else { throw .truncated(needed: end, have: packet.count) }
    header.headerByteCount = end
    return header
  }

  /// Where the payload lies in the packet this header was parsed from.
  @inlinable public func payloadRange(in packet: Span<UInt8>) -> Range<Int> {
    payloadRange(packetByteCount: packet.count)
  }

  /// Where the payload lies in a packet of that many bytes.
  @inlinable public func payloadRange(packetByteCount: Int) -> Range<Int> {
    headerByteCount..<max(headerByteCount, packetByteCount - paddingByteCount)
  }

  /// Where the extension's data lies; empty without extension.
  @inlinable public var extensionRange: Range<Int> { headerByteCount - extensionByteCount..<headerByteCount }

  /// The contributing source at `index` below `csrcCount` in the packet this header was parsed from.
  @inlinable public func contributingSource(_ index: Int, in packet: Span<UInt8>) -> SSRC? {
    guard index >= 0, index < csrcCount, packet.count >= Self.fixedByteCount + 4 * (index + 1) else {
      return nil
    }
    return SSRC(packet.uint32(at: Self.fixedByteCount + 4 * index))
  }
}
