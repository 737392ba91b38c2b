import PalbeRTP
import PalbeUnits
import PalbeWire

/// An RTP packet in hand, in the clear as SRTP left it, with what is known about it.
///
/// Of a video payload nothing is read but the VP8 descriptor and the first byte behind it: the rest may be encrypted
/// end to end.
struct MediaPacket: ~Copyable {
  static let limit = 2_048

  private var bytes = [UInt8](repeating: 0, count: limit)
  /// Bytes of the packet; zero when the last datagram was no RTP packet.
  private(set) var count = 0
  /// Set while the packet is to be forwarded.
  private(set) var stream: IncomingStream?
  private(set) var header = RTPHeader(
    payloadType: PayloadType(0), sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0), ssrc: SSRC(0))
  private(set) var extensions = RTPExtensionValues()
  private(set) var sequence = ExtendedSequenceNumber(0)
  private(set) var descriptor: VP8PayloadDescriptor?
  private(set) var startsKeyFrame = false
  /// Bytes of padding that make it as long as the longest packet of its frame, see `MediaBatch`.
  var padding = 0

  var span: Span<UInt8> {
    @_lifetime(borrow self) get { bytes.span.extracting(0..<count) }
  }

  /// 0 is the one that all others need.
  var temporalLayer: UInt8 { descriptor?.temporalLayer?.index ?? 0 }

  var payloadByteCount: Int { header.payloadRange(packetByteCount: count).count }

  /// Nothing more to forward; the bytes stay for whoever looks at them.
  mutating func stop() { stream = nil }

  /// Nothing in hand.
  mutating func clear() {
    count = 0
    stream = nil
    padding = 0
  }

  /// Takes a copy of a packet.
  mutating func load(_ packet: Span<UInt8>) {
    clear()
    guard packet.count <= Self.limit else { return }
    var target = bytes.mutableSpan
    target.copyBytes(from: packet, at: 0)
    count = packet.count
  }

  /// Takes a copy of a packet that was kept; false when it is not there any more.
  mutating func load(_ number: SequenceNumber, from history: borrowing RetransmissionCache) -> Bool {
    guard let kept = history.lookup(number) else { return false }
    load(kept)
    return true
  }

  /// Reads the header and the extensions; false for a malformed packet.
  mutating func parse(_ ids: RTPExtensionIDs) -> Bool {
    do throws(WireError) { header = try RTPHeader.parse(span) } catch { return false }
    extensions = ids.read(header, in: span)
    descriptor = nil
    startsKeyFrame = false
    return true
  }

  /// Turns a retransmission back into the packet it repeats; false when it carries none.
  mutating func unwrapRepair(of stream: IncomingStream, payloadType: PayloadType) -> Bool {
    do throws(WireError) {
      guard let unwrapped = try unwrapped(ssrc: stream.ssrc, payloadType: payloadType) else { return false }
      count = unwrapped
      header = try RTPHeader.parse(span)
      return true
    } catch { return false }
  }

  private mutating func unwrapped(ssrc: SSRC, payloadType: PayloadType) throws(WireError) -> Int? {
    let length = count
    var target = bytes.mutableSpan
    return try RTX.unwrap(&target, count: length, payloadType: payloadType, ssrc: ssrc)
  }

  /// Reads the VP8 descriptor; false when it is malformed. An empty payload is padding and has none.
  mutating func parseVideo() -> Bool {
    let range = header.payloadRange(packetByteCount: count)
    guard !range.isEmpty else { return true }
    do throws(WireError) {
      let parsed = try VP8PayloadDescriptor.parse(bytes.span.extracting(range))
      descriptor = parsed
      startsKeyFrame = parsed.isKeyFrame(in: bytes.span.extracting(range))
      return true
    } catch { return false }
  }

  /// Both are of one frame of one source.
  func isOfFrame(_ other: borrowing MediaPacket) -> Bool {
    header.timestamp == other.header.timestamp && header.ssrc == other.header.ssrc
  }

  /// From now on the packet is to be forwarded.
  mutating func accept(on stream: IncomingStream, sequence: ExtendedSequenceNumber) {
    self.stream = stream
    setSequence(sequence)
  }

  /// The number among those of its stream.
  mutating func setSequence(_ sequence: ExtendedSequenceNumber) { self.sequence = sequence }
}
