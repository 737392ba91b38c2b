import PalbeUnits
import PalbeWire

/// The descriptor before a VP9 payload (RFC 9628 §4.2), as far as a forwarder needs it: not its references, and of its
/// scalability structure the number of sizes alone.
public struct VP9PayloadDescriptor: Hashable, Sendable, BitwiseCopyable {
  /// The frame needs others to be decoded (P).
  public var isPredicted: Bool
  /// The packet begins a frame of its layer (B).
  public var startsFrame: Bool
  /// The packet ends a frame of its layer (E).
  public var endsFrame: Bool
  /// No frame of a larger size in the same picture needs this one (Z).
  public var isUnusedAbove: Bool
  /// The packet says of which layer it is (L).
  public var hasLayer: Bool
  /// Sizes in the stream, where the packet carries the scalability structure (V); else zero.
  public var sizeCount: UInt8
  /// Counts pictures, in 7 or 15 bits.
  public var pictureID: UInt16?
  /// True when `pictureID` has 15 bits (M).
  public var hasLongPictureID: Bool
  /// The temporal layer (TID); 0 without layers.
  public var temporalLayer: UInt8
  /// A receiver may switch up to this temporal layer here (U).
  public var isSwitchingPoint: Bool
  /// The spatial layer (SID); 0 without layers.
  public var spatialLayer: UInt8
  /// Counts pictures of the lowest temporal layer, where the mode is not flexible.
  public var tl0PictureIndex: UInt8?
  /// Where `tl0PictureIndex` lies.
  @usableFromInline var tl0Offset: Int

  /// Parses the descriptor at the start of a payload.
  @inlinable public static func parse(_ payload: Span<UInt8>) throws(WireError) -> VP9PayloadDescriptor {
    guard payload.count > 0 else { throw .truncated(needed: 1, have: 0) }
    let first = payload[0]
    var descriptor = VP9PayloadDescriptor(first: first)
    var at = 1
    if first & 0x80 != 0 {
      let id = try payload.pictureID(at: &at)
      descriptor.pictureID = id.value
      descriptor.hasLongPictureID = id.isLong
    }
    if first & 0x20 != 0 {
      guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
      let layer = payload[at]
      descriptor.temporalLayer = layer >> 5
      descriptor.isSwitchingPoint = layer & 0x10 != 0
      descriptor.spatialLayer = layer >> 1 & 7
      at += 1
      if first & 0x10 == 0 {
        guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
        descriptor.tl0PictureIndex = payload[at]
        descriptor.tl0Offset = at
        at += 1
      }
    }
    guard first & 0x02 != 0 else { return descriptor }
    if first & 0x50 == 0x50 {
      // Up to three references, each of which says whether another one follows.
      var isLast = false
      for _ in 0..<3 where !isLast {
        guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
        isLast = payload[at] & 1 == 0
        at += 1
      }
    }
    guard payload.count > at else { throw .truncated(needed: at + 1, have: payload.count) }
    descriptor.sizeCount = payload[at] >> 5 + 1
    return descriptor
  }

  @inlinable init(first: UInt8) {
    isPredicted = first & 0x40 != 0
    startsFrame = first & 0x08 != 0
    endsFrame = first & 0x04 != 0
    isUnusedAbove = first & 0x01 != 0
    hasLayer = first & 0x20 != 0
    sizeCount = 0
    pictureID = nil
    hasLongPictureID = false
    temporalLayer = 0
    isSwitchingPoint = false
    spatialLayer = 0
    tl0PictureIndex = nil
    tl0Offset = 0
  }

  /// The packet begins a key picture: a frame of the lowest layer that needs no other.
  @inlinable public var startsKeyFrame: Bool { !isPredicted && startsFrame && spatialLayer == 0 }

  /// The layers that need the packet. Of a key picture all larger ones do: whoever begins with it must see what it says of
  /// the stream.
  @inlinable public var needed: LayerSet {
    let own = Self.parts(from: temporalLayer)
    let isForAll = !isUnusedAbove || !isPredicted
    return LayerSet(
      rawValue: (isForAll ? own &* 0x1111_1111 : own) << (4 * UInt32(spatialLayer)))
  }

  /// The layers that need nothing from before the packet's frame but what this one needs (U).
  @inlinable public var switching: LayerSet {
    guard isSwitchingPoint else { return [] }
    return LayerSet(rawValue: Self.parts(from: temporalLayer) << (4 * UInt32(spatialLayer)))
  }

  @usableFromInline static func parts(from temporalLayer: UInt8) -> UInt32 {
    0xf << UInt32(min(temporalLayer, 3)) & 0xf
  }

  /// Puts other counters into a packet where they lie; the descriptor keeps its length. A counter it does not have is not
  /// written.
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
    let needed = max(tl0Offset + 1, pictureID == nil ? 1 : hasLongPictureID ? 3 : 2)
    guard offset >= 0, offset <= packet.count, needed <= packet.count - offset else {
      throw .truncated(needed: needed, have: max(0, packet.count - max(0, offset)))
    }
    if pictureID != nil {
      if hasLongPictureID {
        packet.store(uint16: 0x8000 | newPictureID & 0x7fff, at: offset + 1)
      } else {
        packet[offset + 1] = UInt8(truncatingIfNeeded: newPictureID & 0x7f)
      }
    }
    if tl0PictureIndex != nil { packet[offset + tl0Offset] = newTL0PictureIndex }
  }
}
