import PalbeUnits
import PalbeWire

/// What a packet says of its frame in the header extension of AV1's RTP payload format (appendix A): its layer, and who
/// needs it. Other codecs can carry it too.
public struct DependencyDescriptor: Hashable, Sendable, BitwiseCopyable {
  /// The packet is the first of its frame.
  public var startsFrame: Bool
  /// The packet is the last of its frame.
  public var endsFrame: Bool
  /// Counts the frames of the stream.
  public var frameNumber: UInt16
  /// The size, from 0.
  public var spatialLayer: UInt8
  /// The part of the frames, from 0.
  public var temporalLayer: UInt8
  /// The layers that need the frame.
  public var needed: LayerSet
  /// The layers whose frames from here on can be decoded by whoever can decode this one.
  public var switching: LayerSet
  /// The packet carries a structure: a key frame begins.
  public var hasStructure: Bool
  /// The layers that are sent from here on; nil: no others than before, or all of a new structure.
  public var active: LayerSet?

  private static let mandatoryBitCount = 24
  private static let flagBitCount = 5
  private static let hasStructureFlag: UInt8 = 0x80

  /// Reads the extension's data.
  ///
  /// - Parameter structure: what the last key frame told; becomes what this packet tells, if it does and can be read.
  /// - Throws: also when the template is unknown.
  public static func parse(
    _ bytes: Span<UInt8>, with structure: inout FrameDependencyStructure
  ) throws(WireError) -> DependencyDescriptor {
    var (flags, cursor) = try begin(bytes)
    guard flags & hasStructureFlag != 0 else {
      return try DependencyDescriptor(bytes, flags, structure, &cursor)
    }
    let fresh = try FrameDependencyStructure(&cursor, in: bytes)
    let descriptor = try DependencyDescriptor(bytes, flags, fresh, &cursor)
    structure = fresh
    return descriptor
  }

  /// The flags, zero where there are none, and what lies behind them.
  private static func begin(_ bytes: Span<UInt8>) throws(WireError) -> (flags: UInt8, cursor: BitCursor) {
    guard bytes.count >= 3 else { throw .truncated(needed: 3, have: bytes.count) }
    var cursor = BitCursor()
    try cursor.skip(mandatoryBitCount, in: bytes)
    guard bytes.count > 3 else { return (0, cursor) }
    try cursor.skip(flagBitCount, in: bytes)
    return (bytes[3], cursor)
  }

  private init(
    _ bytes: Span<UInt8>, _ flags: UInt8, _ structure: borrowing FrameDependencyStructure,
    _ cursor: inout BitCursor
  ) throws(WireError) {
    startsFrame = bytes[0] & 0x80 != 0
    endsFrame = bytes[0] & 0x40 != 0
    frameNumber = bytes.uint16(at: 1)
    hasStructure = flags & Self.hasStructureFlag != 0
    if flags & 0x40 != 0 {
      active = structure.layers(inMask: try cursor.read(structure.targetCount, from: bytes))
    }
    guard let template = structure.template(bytes[0] & 0x3f) else {
      throw .invalid(field: "template", value: UInt64(bytes[0] & 0x3f))
    }
    spatialLayer = template.spatial
    temporalLayer = template.temporal
    (needed, switching) = (template.needed, template.switching)
    if flags & 0x20 != 0 { (needed, switching) = try structure.readFrame(&cursor, in: bytes) }
    if flags & 0x10 != 0 {
      while case let size = Int(try cursor.read(2, from: bytes)), size > 0 {
        try cursor.skip(4 * size, in: bytes)
      }
    }
  }

  /// Writes the extension's data again, with other active layers; all else stays as it is.
  ///
  /// - Parameters:
  ///   - structure: what the last key frame told; not asked for where the packet has its own.
  ///   - target: has room for a few bytes more than there are.
  /// - Returns: the new length.
  /// - Throws: also when it gets longer than an extension can be.
  @_lifetime(target: copy target)
  public static func rewrite(
    _ bytes: Span<UInt8>, with structure: borrowing FrameDependencyStructure, active: LayerSet,
    into target: inout MutableSpan<UInt8>
  ) throws(WireError) -> Int {
    var (flags, cursor) = try begin(bytes)
    let known =
      flags & hasStructureFlag != 0 ? try FrameDependencyStructure(&cursor, in: bytes) : copy structure
    guard known.targetCount > 0 else { throw .invalid(field: "structure", value: 0) }
    let end = cursor.position
    if flags & 0x40 != 0 { try cursor.skip(known.targetCount, in: bytes) }
    var writer = BitWriter()
    try writer.copy(bytes, from: 0, to: mandatoryBitCount, into: &target)
    try writer.write(UInt32(flags >> 3 | 0x08), flagBitCount, into: &target)
    if bytes.count > 3 {
      try writer.copy(bytes, from: mandatoryBitCount + flagBitCount, to: end, into: &target)
    }
    try writer.write(known.mask(of: active), known.targetCount, into: &target)
    try writer.copy(bytes, from: cursor.position, to: 8 * bytes.count, into: &target)
    guard writer.byteCount <= 255 else {
      throw .tooLong(field: "dependency descriptor", length: writer.byteCount, limit: 255)
    }
    return writer.byteCount
  }
}
