import PalbeUnits
import PalbeWire

/// Cuts encoded VP8 frames into RTP payloads of nearly equal size (RFC 7741 §4.4).
///
/// It only says what goes where: the caller writes header, descriptor and the frame's bytes into its own buffer.
///
///     var packets = packetizer.begin(frameByteCount: frame.count)
///     while let packet = packets.next() {
///       packet.descriptor.write(into: &output)
///       output.append(contentsOf: frame.extracting(packet.body))
///     }
public struct VP8Packetizer: Sendable, BitwiseCopyable {
  /// Bytes of a payload at most, its descriptor included.
  public let maximumPayloadByteCount: Int
  /// The picture id of the next frame, 15 bits.
  public private(set) var nextPictureID: UInt16

  /// - Parameters:
  ///   - maximumPayloadByteCount: what an RTP packet may hold besides its header; raised to 16 if smaller.
  ///   - firstPictureID: where the counter starts; RFC 7741 asks for a random number.
  public init(maximumPayloadByteCount: Int, firstPictureID: UInt16) {
    self.maximumPayloadByteCount = max(16, maximumPayloadByteCount)
    nextPictureID = firstPictureID & 0x7fff
  }

  /// The packets of the next frame; none for an empty frame, which uses up no picture id.
  public mutating func begin(frameByteCount: Int, isNonReference: Bool = false) -> VP8FramePackets {
    let descriptor = VP8PayloadDescriptor(
      startsPartition: true, isNonReference: isNonReference, pictureID: nextPictureID)
    if frameByteCount > 0 { nextPictureID = (nextPictureID + 1) & 0x7fff }
    return VP8FramePackets(
      frameByteCount: frameByteCount, room: maximumPayloadByteCount - descriptor.byteCount,
      descriptor: descriptor)
  }
}

/// The packets of one frame, in order.
public struct VP8FramePackets: Sendable, BitwiseCopyable {
  /// One packet's payload: a descriptor, then a part of the frame.
  public struct Packet: Hashable, Sendable {
    /// What goes first.
    public var descriptor: VP8PayloadDescriptor
    /// Which bytes of the frame follow.
    public var body: Range<Int>
    /// RTP's marker bit: the frame's last packet.
    public var marker: Bool
  }

  let frameByteCount: Int
  let packetCount: Int
  var index = 0
  var descriptor: VP8PayloadDescriptor

  init(frameByteCount: Int, room: Int, descriptor: VP8PayloadDescriptor) {
    self.frameByteCount = max(0, frameByteCount)
    packetCount = self.frameByteCount / room + (self.frameByteCount % room == 0 ? 0 : 1)
    self.descriptor = descriptor
  }

  /// How many packets the frame needs.
  public var count: Int { packetCount }

  /// The next packet, nil after the last.
  public mutating func next() -> Packet? {
    guard index < packetCount else { return nil }
    // The first `frameByteCount % packetCount` packets take one byte more.
    let size = frameByteCount / packetCount
    let longer = frameByteCount % packetCount
    let start = index * size + min(index, longer)
    let end = start + size + (index < longer ? 1 : 0)
    index += 1
    defer { descriptor.startsPartition = false }
    return Packet(descriptor: descriptor, body: start..<end, marker: index == packetCount)
  }
}
