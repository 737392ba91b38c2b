/// What a datagram on a multiplexed port is, by its first bytes (RFC 7983 §7, RFC 5761 §4).
public enum PacketKind: Hashable, Sendable, BitwiseCopyable {
  /// A STUN message: first byte 0 to 3.
  case stun
  /// A DTLS record: first byte 20 to 63.
  case dtls
  /// A TURN channel message: first byte 64 to 79.
  case turnChannel
  /// RTP or SRTP.
  case rtp
  /// RTCP or SRTCP.
  case rtcp
  /// Nothing we know, an empty datagram or ZRTP.
  case unknown

  /// Looks at the first two bytes.
  @inlinable public init(_ datagram: Span<UInt8>) {
    guard datagram.count > 0 else {
      self = .unknown
      return
    }
    switch datagram[0] {
    case 0...3: self = .stun
    case 20...63: self = .dtls
    case 64...79: self = .turnChannel
    case 128...191: self = datagram.count < 2 ? .unknown : isRTCP(datagram) ? .rtcp : .rtp
    default: self = .unknown
    }
  }
}

/// True when the second byte, that is RTCP's packet type or RTP's marker and payload type, lies in 192…223
/// (RFC 5761 §4). RTP payload types 64 to 95 are never negotiated for that reason.
@inlinable public func isRTCP(_ packet: Span<UInt8>) -> Bool {
  packet.count >= 2 && packet[1] >= 192 && packet[1] <= 223
}
