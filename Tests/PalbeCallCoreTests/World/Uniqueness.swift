import PalbeFrameEncryption
import PalbeRTP
import PalbeUnits

/// Counts what must never happen: two different things protected under one (SSRC, roll-over, sequence) or
/// under one (frame key, counter).
struct Uniqueness {
  private struct Packet: Hashable {
    var sender: String
    var ssrc: UInt32
    var index: UInt64
  }
  private struct Frame: Hashable {
    var key: UInt64
    var counter: UInt64
  }

  private(set) var packetCount = 0
  private(set) var frameCount = 0
  /// Frames as they were sealed, what the network loses later among them.
  private(set) var sealedCount = 0
  /// Must stay zero.
  private(set) var reusedSequences = 0
  private(set) var reusedCounters = 0
  private var packets: [Packet: [UInt8]] = [:]
  private var unwrappers: [String: SequenceUnwrapper] = [:]
  private var frames: [Frame: [UInt8]] = [:]
  private var sealedFrames: Set<Frame> = []

  /// A datagram as it leaves.
  mutating func sent(_ bytes: [UInt8], by sender: String) {
    guard PacketKind(bytes.span) == .rtp, let header = try? RTPHeader.parseProtected(bytes.span) else {
      return
    }
    let stream = "\(sender) \(header.ssrc.rawValue)"
    let index = unwrappers[stream, default: SequenceUnwrapper()].unwrap(header.sequenceNumber).rawValue
    let packet = Packet(sender: sender, ssrc: header.ssrc.rawValue, index: index)
    guard let known = packets[packet] else {
      packets[packet] = bytes
      packetCount += 1
      return
    }
    if known != bytes { reusedSequences += 1 }
  }

  /// A frame right after it was sealed: each takes a counter of its own.
  mutating func sealed(_ bytes: [UInt8], _ codec: FrameCodec) {
    sealedCount += 1
    guard let frame = Self.frame(of: bytes, codec), sealedFrames.insert(frame).inserted else {
      reusedCounters += 1
      return
    }
  }

  private static func frame(of bytes: [UInt8], _ codec: FrameCodec) -> Frame? {
    guard let first = bytes.first else { return nil }
    let clear = codec.clearByteCount(firstByte: first)
    guard bytes.count > clear, let header = try? SFrameHeader.parse(bytes.span, at: clear) else { return nil }
    return Frame(key: header.keyID, counter: header.counter)
  }

  /// An RTP packet as the SFU sees it after SRTP: the head of a sealed frame shows key id and counter.
  mutating func opened(_ packet: Span<UInt8>) {
    guard let header = try? RTPHeader.parse(packet) else { return }
    var payload = [UInt8](copying: packet.extracting(header.payloadRange(packetByteCount: packet.count)))
    guard !payload.isEmpty else { return }
    var codec = FrameCodec.opus
    if header.payloadType == PayloadType(96) {
      guard let descriptor = try? VP8PayloadDescriptor.parse(payload.span), descriptor.startsFrame else {
        return
      }
      payload.removeFirst(descriptor.byteCount)
      codec = .vp8
    }
    guard let frame = Self.frame(of: payload, codec) else { return }
    guard let known = frames[frame] else {
      frames[frame] = payload
      frameCount += 1
      return
    }
    if known != payload { reusedCounters += 1 }
  }
}

extension Array where Element == UInt8 {
  init(copying span: Span<UInt8>) {
    self = []
    reserveCapacity(span.count)
    for index in span.indices { append(span[index]) }
  }
}
