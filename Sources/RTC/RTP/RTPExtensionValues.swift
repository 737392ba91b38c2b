import PalbeUnits
import PalbeWire

/// A client-to-mixer audio level (RFC 6464).
public struct AudioLevel: Hashable, Sendable, BitwiseCopyable {
  /// The sender believes that this packet holds speech.
  public var isVoice: Bool
  /// The level below full scale in -dBov: 0 is the loudest, 127 is silence.
  public var level: UInt8

  /// `level` is clamped to 127.
  @inlinable public init(isVoice: Bool, level: UInt8) {
    self.isVoice = isVoice
    self.level = min(level, 127)
  }

  /// From and to the byte on the wire.
  @inlinable public init(rawValue: UInt8) { self.init(isVoice: rawValue & 0x80 != 0, level: rawValue & 0x7f) }
  /// The byte on the wire.
  @inlinable public var rawValue: UInt8 { level | (isVoice ? 0x80 : 0) }
}

/// When a packet left the sender: 24 bits of seconds in 6.18 fixed point, wrapping every 64 s.
public struct AbsoluteSendTime: Hashable, Sendable, BitwiseCopyable {
  /// The lower 24 bits are used.
  public var rawValue: UInt32

  /// Keeps the lower 24 bits.
  @inlinable public init(rawValue: UInt32) { self.rawValue = rawValue & 0xff_ffff }

  /// From the sender's clock; only differences have a meaning.
  @inlinable public init(_ instant: Instant) {
    let wrapped = UInt64(bitPattern: instant.nanoseconds) % 64_000_000_000
    self.init(rawValue: UInt32(truncatingIfNeeded: (wrapped << 18) / 1_000_000_000))
  }
}

/// A string of 1 to 16 ASCII characters held inline: a MID, RID or repaired RID (RFC 9143, RFC 8852).
public struct ShortText: Hashable, Sendable, BitwiseCopyable {
  @usableFromInline var high: UInt64
  @usableFromInline var low: UInt64
  /// Bytes, 1 to 16.
  public private(set) var count: Int

  /// Nil when there are no bytes or more than sixteen.
  @inlinable public init?(_ bytes: Span<UInt8>) {
    guard (1...16).contains(bytes.count) else { return nil }
    self.init(count: bytes.count)
    for index in bytes.indices { set(bytes[index], at: index) }
  }

  /// Nil when empty or longer than sixteen bytes of UTF-8.
  public init?(_ text: String) {
    guard (1...16).contains(text.utf8.count) else { return nil }
    self.init(count: text.utf8.count)
    for (index, byte) in text.utf8.enumerated() { set(byte, at: index) }
  }

  @usableFromInline init(count: Int) {
    high = 0
    low = 0
    self.count = count
  }

  @usableFromInline mutating func set(_ byte: UInt8, at index: Int) {
    let shift = UInt64(56 - 8 * (index & 7))
    if index < 8 { high |= UInt64(byte) << shift } else { low |= UInt64(byte) << shift }
  }

  /// The byte at `index`, 0 up to `count`.
  @inlinable public subscript(index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: (index < 8 ? high : low) >> UInt64(56 - 8 * (index & 7)))
  }

  /// The text; bytes that are not UTF-8 are replaced.
  public var text: String { String(decoding: (0..<count).map { self[$0] }, as: UTF8.self) }
}

/// Bytes of an extension that is passed on as it is: where they lie in the packet they were read from.
public struct RTPExtensionBytes: Hashable, Sendable, BitwiseCopyable {
  /// The first byte.
  public var offset: UInt16
  /// 1 to 255.
  public var count: UInt8

  /// Nil for a range that is empty, too long or too far behind.
  @inlinable public init?(_ range: Range<Int>) {
    guard let offset = UInt16(exactly: range.lowerBound), let count = UInt8(exactly: range.count), count > 0
    else { return nil }
    self.offset = offset
    self.count = count
  }

  /// The same as a range.
  @inlinable public var range: Range<Int> { Int(offset)..<Int(offset) + Int(count) }
}

/// The header extensions this project reads and writes, of one packet, without references.
public struct RTPExtensionValues: Hashable, Sendable, BitwiseCopyable {
  /// RFC 6464.
  public var audioLevel: AudioLevel?
  /// urn:3gpp:video-orientation, one byte.
  public var videoOrientation: UInt8?
  /// When the packet left.
  public var absoluteSendTime: AbsoluteSendTime?
  /// Counts packets of the whole transport, for transport-wide congestion control.
  public var transportSequenceNumber: UInt16?
  /// The media section the packet belongs to.
  public var mid: ShortText?
  /// The simulcast layer the packet belongs to.
  public var rid: ShortText?
  /// The simulcast layer that an RTX packet repairs.
  public var repairedRID: ShortText?
  /// Which frames this one needs (AV1's RTP payload format, appendix A). Only a rewritten header can carry it.
  public var dependencyDescriptor: RTPExtensionBytes?

  /// No extensions.
  @inlinable public init() {}
}

/// Which local id each extension has on one transport; 0 where it was not negotiated.
public struct RTPExtensionIDs: Hashable, Sendable, BitwiseCopyable {
  /// urn:ietf:params:rtp-hdrext:ssrc-audio-level
  public var audioLevel: UInt8 = 0
  /// urn:3gpp:video-orientation
  public var videoOrientation: UInt8 = 0
  /// http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time
  public var absoluteSendTime: UInt8 = 0
  /// http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01
  public var transportSequenceNumber: UInt8 = 0
  /// urn:ietf:params:rtp-hdrext:sdes:mid
  public var mid: UInt8 = 0
  /// urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id
  public var rid: UInt8 = 0
  /// urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id
  public var repairedRID: UInt8 = 0
  /// https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension
  public var dependencyDescriptor: UInt8 = 0

  /// Nothing negotiated.
  @inlinable public init() {}

  /// Takes up one `a=extmap` line. Returns false, and changes nothing, for a URI that is not ours or an id of 0.
  @discardableResult
  public mutating func negotiate(uri: String, id: UInt8) -> Bool {
    guard id != 0 else { return false }
    switch uri {
    case Self.audioLevelURI: audioLevel = id
    case Self.videoOrientationURI: videoOrientation = id
    case Self.absoluteSendTimeURI: absoluteSendTime = id
    case Self.transportSequenceNumberURI: transportSequenceNumber = id
    case Self.midURI: mid = id
    case Self.ridURI: rid = id
    case Self.repairedRIDURI: repairedRID = id
    case Self.dependencyDescriptorURI: dependencyDescriptor = id
    default: return false
    }
    return true
  }

  /// RFC 6464.
  public static let audioLevelURI = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
  /// 3GPP TS 26.114.
  public static let videoOrientationURI = "urn:3gpp:video-orientation"
  /// WebRTC's send time.
  public static let absoluteSendTimeURI = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
  /// Transport-wide sequence numbers.
  public static let transportSequenceNumberURI =
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
  /// RFC 9143.
  public static let midURI = "urn:ietf:params:rtp-hdrext:sdes:mid"
  /// RFC 8852.
  public static let ridURI = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
  /// RFC 8852.
  public static let repairedRIDURI = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"

  /// Of AV1.
  public static let dependencyDescriptorURI =
    "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension"

  /// Reads every extension with a known id in one pass; those of a wrong length are left out.
  @inlinable public func read(_ header: RTPHeader, in packet: Span<UInt8>) -> RTPExtensionValues {
    var values = RTPExtensionValues()
    var elements = RTPExtensionIterator(header)
    while let element = elements.next(in: packet) {
      let at = element.range.lowerBound
      switch (element.id, element.range.count) {
      case (audioLevel, 1): values.audioLevel = AudioLevel(rawValue: packet[at])
      case (videoOrientation, 1): values.videoOrientation = packet[at]
      case (absoluteSendTime, 3):
        let value = UInt32(packet[at]) << 16 | UInt32(packet.uint16(at: at + 1))
        values.absoluteSendTime = AbsoluteSendTime(rawValue: value)
      case (transportSequenceNumber, 2): values.transportSequenceNumber = packet.uint16(at: at)
      case (mid, 1...16): values.mid = ShortText(packet.extracting(element.range))
      case (rid, 1...16): values.rid = ShortText(packet.extracting(element.range))
      case (repairedRID, 1...16): values.repairedRID = ShortText(packet.extracting(element.range))
      case (dependencyDescriptor, 3...255): values.dependencyDescriptor = RTPExtensionBytes(element.range)
      default: continue
      }
    }
    return values
  }
}
