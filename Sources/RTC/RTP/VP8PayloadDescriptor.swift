import PalbeUnits
import PalbeWire

/// The descriptor before a VP8 payload (RFC 7741 §4.2).
public struct VP8PayloadDescriptor: Hashable, Sendable, BitwiseCopyable {
  /// No later frame refers to this one (N).
  public var isNonReference: Bool
  /// The payload starts a VP8 partition (S).
  public var startsPartition: Bool
  /// The partition's index (PID), 0 to 7.
  public var partitionIndex: UInt8
  /// Counts frames, in 7 or 15 bits.
  public var pictureID: UInt16?
  /// True when `pictureID` has 15 bits (M).
  public var hasLongPictureID: Bool
  /// Counts frames of the lowest temporal layer, modulo 256.
  public var tl0PictureIndex: UInt8?
  /// The temporal layer (TID), 0 to 3, and whether a receiver may switch up to it here (Y).
  public var temporalLayer: TemporalLayer?
  /// Counts key frames in 5 bits (KEYIDX).
  public var keyIndex: UInt8?
  /// Bytes of the descriptor.
  public var byteCount: Int

  /// TID and Y.
  public struct TemporalLayer: Hashable, Sendable, BitwiseCopyable {
    /// 0 to 3.
    public var index: UInt8
    /// The frame depends on layer 0 alone.
    public var isSync: Bool

    /// From its fields.
    @inlinable public init(index: UInt8, isSync: Bool) {
      self.index = index & 3
      self.isSync = isSync
    }
  }

  /// A descriptor to write. A picture id is written in 15 bits, as every WebRTC sender does.
  public init(
    startsPartition: Bool, partitionIndex: UInt8 = 0, isNonReference: Bool = false, pictureID: UInt16? = nil,
    tl0PictureIndex: UInt8? = nil, temporalLayer: TemporalLayer? = nil, keyIndex: UInt8? = nil
  ) {
    self.startsPartition = startsPartition
    self.partitionIndex = partitionIndex & 7
    self.isNonReference = isNonReference
    self.pictureID = pictureID.map { $0 & 0x7fff }
    hasLongPictureID = pictureID != nil
    self.tl0PictureIndex = tl0PictureIndex
    self.temporalLayer = temporalLayer
    self.keyIndex = keyIndex.map { $0 & 0x1f }
    byteCount = 1
    byteCount = Self.encodedByteCount(self)
  }

  @inlinable init(first: UInt8) {
    isNonReference = first & 0x20 != 0
    startsPartition = first & 0x10 != 0
    partitionIndex = first & 0x07
    pictureID = nil
    hasLongPictureID = false
    tl0PictureIndex = nil
    temporalLayer = nil
    keyIndex = nil
    byteCount = 1
  }

  /// Parses the descriptor at the start of a payload. Reserved bits are ignored, as RFC 7741 asks.
  @inlinable public static func parse(_ payload: Span<UInt8>) throws(WireError) -> VP8PayloadDescriptor {
    guard payload.count > 0 else { throw .truncated(needed: 1, have: 0) }
    let first = payload[0]
    var descriptor = VP8PayloadDescriptor(first: first)
    guard first & 0x80 != 0 else { return descriptor }
    guard payload.count > 1 else { throw .truncated(needed: 2, have: payload.count) }
    let flags = payload[1]
    var at = 2
    if flags & 0x80 != 0 {
      let id = try payload.pictureID(at: &at)
      descriptor.pictureID = id.value
      descriptor.hasLongPictureID = id.isLong
    }
    if flags & 0x40 != 0 {
      guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
      descriptor.tl0PictureIndex = payload[at]
      at += 1
    }
    if flags & 0x30 != 0 {
      guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
      let byte = payload[at]
      if flags & 0x20 != 0 {
        descriptor.temporalLayer = TemporalLayer(index: byte >> 6, isSync: byte & 0x20 != 0)
      }
      if flags & 0x10 != 0 { descriptor.keyIndex = byte & 0x1f }
      at += 1
    }
    descriptor.byteCount = at
    return descriptor
  }

  /// True when the payload behind this descriptor starts a frame: partition 0 begins here.
  @inlinable public var startsFrame: Bool { startsPartition && partitionIndex == 0 }

  /// True when the payload starts a key frame: the P bit of VP8's first byte is clear (RFC 7741 §4.3).
  @inlinable public func isKeyFrame(in payload: Span<UInt8>) -> Bool {
    startsFrame && payload.count > byteCount && payload[byteCount] & 1 == 0
  }

  /// Appends the descriptor; `byteCount` bytes.
  @inlinable @_lifetime(output: copy output)
  public func write(into output: inout OutputSpan<UInt8>) {
    let count = Self.encodedByteCount(self)
    let start = output.count
    for _ in 0..<count { output.append(0) }
    var all = output.mutableSpan
    store(into: &all, at: start)
  }

  /// Writes the descriptor at `offset`; traps when fewer than `byteCount` bytes are there.
  @inlinable @_lifetime(target: copy target)
  public func store(into target: inout MutableSpan<UInt8>, at offset: Int) {
    let extended = Self.encodedByteCount(self) > 1
    target[offset] =
      (extended ? 0x80 : 0) | (isNonReference ? 0x20 : 0) | (startsPartition ? 0x10 : 0) | partitionIndex & 7
    guard extended else { return }
    let hasLayerByte = temporalLayer != nil || keyIndex != nil
    target[offset + 1] =
      (pictureID == nil ? 0 : 0x80) | (tl0PictureIndex == nil ? 0 : 0x40) | (temporalLayer == nil ? 0 : 0x20)
      | (keyIndex == nil ? 0 : 0x10)
    var at = offset + 2
    if let pictureID {
      at = Self.store(pictureID: pictureID, isLong: hasLongPictureID, at: at, into: &target)
    }
    if let tl0PictureIndex {
      target[at] = tl0PictureIndex
      at += 1
    }
    if hasLayerByte {
      var byte = (keyIndex ?? 0) & 0x1f
      if let temporalLayer { byte |= (temporalLayer.index & 3) << 6 | (temporalLayer.isSync ? 0x20 : 0) }
      target[at] = byte
    }
  }

  /// Puts other counters into a packet where they lie; the descriptor keeps its length, so that a 7-bit picture id
  /// stays one. A counter the descriptor does not have is not written.
  ///
  /// - Parameters:
  ///   - packet: the packet this descriptor was parsed from.
  ///   - offset: where the payload starts in it.
  /// - Throws: `truncated` when the packet is shorter than the descriptor.
  @inlinable @_lifetime(packet: copy packet)
  public func rewrite(
    in packet: inout MutableSpan<UInt8>, at offset: Int, pictureID newPictureID: UInt16,
    tl0PictureIndex newTL0PictureIndex: UInt8
  ) throws(WireError) {
    guard offset >= 0, offset <= packet.count, byteCount <= packet.count - offset else {
      throw .truncated(needed: byteCount, have: max(0, packet.count - max(0, offset)))
    }
    var at = offset + 2
    if pictureID != nil {
      at = Self.store(pictureID: newPictureID, isLong: hasLongPictureID, at: at, into: &packet)
    }
    if tl0PictureIndex != nil { packet[at] = newTL0PictureIndex }
  }

  @inlinable @_lifetime(target: copy target)
  static func store(
    pictureID: UInt16, isLong: Bool, at: Int, into target: inout MutableSpan<UInt8>
  ) -> Int {
    guard isLong else {
      target[at] = UInt8(truncatingIfNeeded: pictureID & 0x7f)
      return at + 1
    }
    target.store(uint16: 0x8000 | pictureID & 0x7fff, at: at)
    return at + 2
  }

  @inlinable static func encodedByteCount(_ descriptor: VP8PayloadDescriptor) -> Int {
    var count = 0
    if descriptor.pictureID != nil { count += descriptor.hasLongPictureID ? 2 : 1 }
    if descriptor.tl0PictureIndex != nil { count += 1 }
    if descriptor.temporalLayer != nil || descriptor.keyIndex != nil { count += 1 }
    return count == 0 ? 1 : count + 2
  }
}

extension Span<UInt8> {
  /// A picture id of 7 or 15 bits, as VP8 and VP9 write it (RFC 7741 §4.2, RFC 9628 §4.2), and which of the two it is;
  /// `offset` moves past it.
  @inlinable func pictureID(at offset: inout Int) throws(WireError) -> (value: UInt16, isLong: Bool) {
    guard count > offset else { throw .truncated(needed: offset + 1, have: count) }
    guard self[offset] & 0x80 != 0 else {
      offset += 1
      return (UInt16(self[offset - 1]), false)
    }
    guard count > offset + 1 else { throw .truncated(needed: offset + 2, have: count) }
    offset += 2
    return (uint16(at: offset - 2) & 0x7fff, true)
  }
}
