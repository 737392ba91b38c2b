import PalbeRTP
import PalbeUnits
import PalbeWire

/// An RTP packet in hand, in the clear as SRTP left it, with what is known about it.
///
/// Of a payload nothing is read but what describes it: VP8's descriptor and the first byte behind it, VP9's descriptor, headers
/// of NAL units, AV1's aggregation header. The rest may be encrypted end to end.
struct MediaPacket: ~Copyable {
  static let limit = 2_048

  private var bytes = [UInt8](repeating: 0, count: limit)
  /// Bytes of the packet; zero when the last datagram was no RTP packet.
  private(set) var count = 0
  /// Set while the packet is to be forwarded; its publisher may leave meanwhile, and a stream does not keep it.
  private(set) var track: PublishedTrack?
  private(set) var header = RTPHeader(
    payloadType: PayloadType(0), sequenceNumber: SequenceNumber(0), timestamp: RTPTimestamp(0), ssrc: SSRC(0))
  private(set) var extensions = RTPExtensionValues()
  private(set) var sequence = ExtendedSequenceNumber(0)
  private(set) var descriptor: VP8PayloadDescriptor?
  private(set) var vp9: VP9PayloadDescriptor?
  /// Of which layer it is, in a stream that carries several.
  private(set) var layers: FrameLayers?
  /// Its number among the frames, where the dependency descriptor tells it and receivers need that.
  private(set) var frameNumber: UInt16?
  /// Of redundant sound, where the sound itself begins; zero where it begins the payload.
  private(set) var primaryOffset = 0
  private(set) var startsKeyFrame = false
  /// Bytes of padding that make it as long as the longest packet of its frame, see `MediaBatch`.
  var padding = 0

  var span: Span<UInt8> {
    @_lifetime(borrow self) get { bytes.span.extracting(0..<count) }
  }

  /// 0 is the one that all others need.
  var temporalLayer: UInt8 { descriptor?.temporalLayer?.index ?? 0 }

  /// True for a frame that its receiver may go up to `temporalLayer` with.
  var isLayerSync: Bool { descriptor?.temporalLayer?.isSync ?? false }

  /// Counts pictures, and those of the lowest temporal layer, in the way of its codec.
  var pictureID: UInt16? { descriptor?.pictureID ?? vp9?.pictureID ?? frameNumber }
  var tl0PictureIndex: UInt8? { descriptor?.tl0PictureIndex ?? vp9?.tl0PictureIndex }
  /// Pictures refer to each other by distances, which leaving some out must not change; VP8's do not.
  var keepsPictureDistances: Bool { descriptor == nil }
  /// The bits that `pictureID` can have.
  var pictureIDMask: UInt16 { frameNumber == nil ? 0x7fff : 0xffff }

  var payloadByteCount: Int { header.payloadRange(packetByteCount: count).count }

  /// Nothing more to forward; the bytes stay for whoever looks at them.
  mutating func stop() { track = nil }

  /// Nothing in hand.
  mutating func clear() {
    count = 0
    track = nil
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
    vp9 = nil
    layers = nil
    frameNumber = nil
    primaryOffset = 0
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

  /// Reads what lies before the payload proper; false when it is malformed. An empty payload is padding and has none.
  mutating func parsePayload(of section: PublishedTrack.Section) -> Bool {
    let range = header.payloadRange(packetByteCount: count)
    guard !range.isEmpty else { return true }
    switch section.media {
    case .opus:
      guard header.payloadType == section.redundantPayloadType else { return true }
      guard let offset = RedundantAudio.primaryOffset(in: bytes.span.extracting(range)) else { return false }
      primaryOffset = offset
    case .h264:
      startsKeyFrame = KeyFrameStart.isH264(bytes.span.extracting(range))
      readFrameNumber()
    case .av1:
      startsKeyFrame = KeyFrameStart.isAV1(bytes.span.extracting(range))
      readFrameNumber()
    case .vp8, .vp9: return parseDescriptor(section.media, range)
    }
    return true
  }

  private mutating func readFrameNumber() {
    guard let range = extensions.dependencyDescriptor?.range, range.count >= 3, range.upperBound <= count
    else { return }
    frameNumber = bytes.span.uint16(at: range.lowerBound + 1)
  }

  private mutating func parseDescriptor(_ media: MediaCodec, _ range: Range<Int>) -> Bool {
    do throws(WireError) {
      if media == .vp9 {
        let parsed = try VP9PayloadDescriptor.parse(bytes.span.extracting(range))
        startsKeyFrame = parsed.startsKeyFrame
        vp9 = parsed
      } else {
        let parsed = try VP8PayloadDescriptor.parse(bytes.span.extracting(range))
        startsKeyFrame = parsed.isKeyFrame(in: bytes.span.extracting(range))
        descriptor = parsed
      }
      return true
    } catch { return false }
  }

  /// Both are of one frame of one source.
  func isOfFrame(_ other: borrowing MediaPacket) -> Bool {
    header.timestamp == other.header.timestamp && header.ssrc == other.header.ssrc
  }

  /// From now on the packet is to be forwarded.
  mutating func accept(on stream: IncomingStream, sequence: ExtendedSequenceNumber) {
    track = stream.track
    setSequence(sequence)
  }

  mutating func setLayers(_ layers: FrameLayers?) { self.layers = layers }

  /// The number among those of its stream.
  mutating func setSequence(_ sequence: ExtendedSequenceNumber) { self.sequence = sequence }
}
