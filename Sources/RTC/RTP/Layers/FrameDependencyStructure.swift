import PalbeUnits
import PalbeWire

/// What the frames of a stream with layers are like, as the first packet of a key frame tells it (AV1's RTP payload format,
/// appendix A.8.3): templates that the other packets refer to.
///
/// Of each template the layer is kept and which decode targets need such a frame; not the frames that it refers to.
public struct FrameDependencyStructure: Sendable, BitwiseCopyable {
  struct Template: BitwiseCopyable {
    var spatial: UInt8 = 0
    var temporal: UInt8 = 0
    var needed = LayerSet()
    var switching = LayerSet()
  }

  private static let notPresent: UInt32 = 0
  private static let switchIndication: UInt32 = 2

  private var firstTemplate: UInt8 = 0
  private var templateCount = 0
  private var templates = InlineArray<64, Template>(repeating: Template())
  /// Decode targets, 32 at most.
  private(set) var targetCount = 0
  /// The layer of each.
  private var targets = InlineArray<32, UInt8>(repeating: 0)
  /// The layers of all its decode targets.
  public private(set) var layers = LayerSet()

  /// Knows no template.
  public init() {}

  /// Reads a structure at a cursor.
  init(_ cursor: inout BitCursor, in bytes: Span<UInt8>) throws(WireError) {
    firstTemplate = UInt8(truncatingIfNeeded: try cursor.read(6, from: bytes))
    targetCount = Int(try cursor.read(5, from: bytes)) + 1
    let sizeCount = try readTemplateLayers(&cursor, in: bytes)
    try readIndications(&cursor, in: bytes)
    for _ in 0..<templateCount {
      while try cursor.flag(from: bytes) { try cursor.skip(4, in: bytes) }
    }
    let chainCount = try cursor.number(below: UInt32(targetCount) + 1, from: bytes)
    if chainCount > 0 {
      for _ in 0..<targetCount { _ = try cursor.number(below: chainCount, from: bytes) }
      try cursor.skip(4 * templateCount * Int(chainCount), in: bytes)
    }
    if try cursor.flag(from: bytes) { try cursor.skip(32 * sizeCount, in: bytes) }
  }

  private mutating func readTemplateLayers(
    _ cursor: inout BitCursor, in bytes: Span<UInt8>
  ) throws(WireError) -> Int {
    var template = Template()
    while true {
      guard templateCount < 64 else { throw .tooLong(field: "templates", length: 65, limit: 64) }
      templates[templateCount] = template
      templateCount += 1
      switch try cursor.read(2, from: bytes) {
      case 0: break
      case 1: template.temporal += 1
      case 2:
        template.temporal = 0
        template.spatial += 1
      default: return Int(template.spatial) + 1
      }
    }
  }

  /// Which target needs a frame of which template; what targets need tells their layers.
  private mutating func readIndications(
    _ cursor: inout BitCursor, in bytes: Span<UInt8>
  ) throws(WireError) {
    let start = cursor
    var highest = InlineArray<32, Template>(repeating: Template())
    for index in 0..<templateCount {
      for target in 0..<targetCount where try cursor.read(2, from: bytes) != Self.notPresent {
        highest[target].spatial = max(highest[target].spatial, templates[index].spatial)
        highest[target].temporal = max(highest[target].temporal, templates[index].temporal)
      }
    }
    for target in 0..<targetCount {
      targets[target] = LayerSet.index(
        spatial: Int(highest[target].spatial), temporal: Int(highest[target].temporal))
      layers[targets[target]] = true
    }
    cursor = start
    for index in 0..<templateCount {
      (templates[index].needed, templates[index].switching) = try readFrame(&cursor, in: bytes)
    }
  }

  /// The indications of one frame: which layers need it, and which of them can be switched to there.
  func readFrame(
    _ cursor: inout BitCursor, in bytes: Span<UInt8>
  ) throws(WireError) -> (needed: LayerSet, switching: LayerSet) {
    var needed = LayerSet()
    var switching = LayerSet()
    for target in 0..<targetCount {
      let indication = try cursor.read(2, from: bytes)
      if indication != Self.notPresent { needed[targets[target]] = true }
      if indication == Self.switchIndication { switching[targets[target]] = true }
    }
    return (needed, switching)
  }

  /// A template by the number that packets have for it; nil when there is none.
  func template(_ number: UInt8) -> Template? {
    let index = Int((number &+ 64 &- firstTemplate) & 63)
    return index < templateCount ? templates[index] : nil
  }

  /// The layers in a mask of decode targets.
  func layers(inMask mask: UInt32) -> LayerSet {
    var layers = LayerSet()
    for target in 0..<targetCount where mask >> UInt32(target) & 1 != 0 { layers[targets[target]] = true }
    return layers
  }

  /// The mask of the decode targets of layers.
  func mask(of layers: LayerSet) -> UInt32 {
    var mask: UInt32 = 0
    for target in 0..<targetCount where layers[targets[target]] { mask |= 1 << UInt32(target) }
    return mask
  }

  /// Layers all of whose frames somebody has who receives those of one layer.
  public func covered(by layer: UInt8) -> LayerSet {
    var covered = layers
    for index in 0..<templateCount where !templates[index].needed[layer] {
      covered.subtract(templates[index].needed)
    }
    return covered
  }
}
