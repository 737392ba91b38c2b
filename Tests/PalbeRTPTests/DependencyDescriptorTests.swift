import PalbeRTP
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("AV1's dependency descriptor")
struct DependencyDescriptorTests {
  private func layers(_ all: [(Int, Int)]) -> LayerSet {
    var set = LayerSet()
    for (spatial, temporal) in all { set[LayerSet.index(spatial: spatial, temporal: temporal)] = true }
    return set
  }

  private func parse(
    _ bytes: [UInt8], _ structure: inout FrameDependencyStructure
  ) throws -> DependencyDescriptor {
    try DependencyDescriptor.parse(bytes.span, with: &structure)
  }

  private func known(_ writer: DescriptorWriter) throws -> FrameDependencyStructure {
    var structure = FrameDependencyStructure()
    _ = try parse(writer.descriptor(template: 0, number: 1, withStructure: true), &structure)
    return structure
  }

  /// By hand: L1T2, offset 62, two targets, no chains. S 1, E 0, template 62, number 0x1234; flags 10000; offset 111110, count
  /// 00001; layers 01 11; indications 10 10, 00 10; differences 0, 1 0001 0; chains ns(3) = 0; no resolutions.
  static let golden: [UInt8] = [0xbe, 0x12, 0x34, 0x87, 0xc1, 0x7a, 0x24, 0x40]

  @Test("AV1 RTP §A.8: a descriptor with its structure, by hand")
  func golden() throws {
    var structure = FrameDependencyStructure()
    let descriptor = try parse(Self.golden, &structure)
    #expect(descriptor.startsFrame && !descriptor.endsFrame && descriptor.frameNumber == 0x1234)
    #expect(descriptor.hasStructure && descriptor.active == nil)
    #expect(descriptor.spatialLayer == 0 && descriptor.temporalLayer == 0)
    #expect(descriptor.needed == layers([(0, 0), (0, 1)]) && descriptor.switching == descriptor.needed)
    #expect(structure.layers == layers([(0, 0), (0, 1)]))
    var writer = DescriptorWriter([.init(0, 0, "SS", []), .init(0, 1, "-S", [2])])
    writer.offset = 62
    #expect(
      writer.descriptor(template: 0, number: 0x1234, ends: false, withStructure: true) == Self.golden)
    // The second template is number 63, a third one there is not.
    let upper = try parse([0x7f, 0, 9], &structure)
    #expect(upper.temporalLayer == 1 && upper.endsFrame && !upper.startsFrame)
    #expect(upper.needed == layers([(0, 1)]))
    #expect(throws: WireError.self) { try parse([0x40, 0, 9], &structure) }
    var none = FrameDependencyStructure()
    #expect(throws: WireError.self) { try parse([0x7f, 0, 9], &none) }
  }

  @Test("AV1 RTP §A.8.3: chains and resolutions are passed over, targets have the layers of what they need")
  func structure() throws {
    var writer = DescriptorWriter.keySizes
    writer.offset = 40
    var structure = FrameDependencyStructure()
    let key = try parse(writer.descriptor(template: 0, number: 7, withStructure: true), &structure)
    #expect(structure.layers == layers([(0, 0), (1, 0), (2, 0)]) && structure.layers.sizeCount == 3)
    #expect(key.needed == structure.layers && key.switching == structure.layers)
    for (template, spatial, needed) in [(1, 0, [(0, 0)]), (3, 1, [(1, 0)]), (5, 2, [(2, 0)])] {
      let delta = try parse(writer.descriptor(template: template, number: 8), &structure)
      #expect(delta.spatialLayer == spatial && delta.needed == layers(needed))
    }
    // Who gets the largest size alone has all frames of no other.
    #expect(structure.covered(by: LayerSet.index(spatial: 2, temporal: 0)) == layers([(2, 0)]))
    let full = try known(.fullSizes)
    #expect(full.covered(by: LayerSet.index(spatial: 1, temporal: 1)) == full.layers)
    #expect(full.covered(by: LayerSet.index(spatial: 1, temporal: 0)) == layers([(0, 0), (1, 0)]))
  }

  @Test(
    "AV1 RTP §A.8.2: a packet's own indications and active targets count, its differences are passed over")
  func custom() throws {
    var structure = try known(.fullSizes)
    let writer = DescriptorWriter.fullSizes
    let own = try parse(
      writer.descriptor(
        template: 1, number: 3, active: 0b0011, indications: "SD--", differences: [1, 40, 700], chains: []),
      &structure)
    #expect(own.needed == layers([(0, 0), (0, 1)]) && own.switching == layers([(0, 0)]))
    #expect(own.active == layers([(0, 0), (0, 1)]))
    #expect(!own.hasStructure)
  }

  static let all: [[UInt8]] = [
    golden, DescriptorWriter.keySizes.descriptor(template: 0, number: 7, withStructure: true),
    DescriptorWriter.fullSizes.descriptor(template: 0, number: 7, withStructure: true, active: 5),
    DescriptorWriter.temporal.descriptor(
      template: 2, number: 7, withStructure: true, indications: "RDS", differences: [3]),
  ]

  @Test("A descriptor that ends early is refused at every length, and changes nothing", arguments: all)
  func truncated(bytes: [UInt8]) throws {
    var structure = try known(.temporal)
    let layers = structure.layers
    // The last byte may be nothing but zeros that fill it up.
    for count in 0..<bytes.count - 1 where count != 3 {
      #expect(throws: WireError.self) { try parse(Array(bytes[..<count]), &structure) }
      #expect(structure.layers == layers)
    }
  }

  @Test("More than 64 templates are refused")
  func tooMany() {
    let writer = DescriptorWriter((0..<65).map { _ in .init(0, 0, "S", []) })
    var structure = FrameDependencyStructure()
    #expect(throws: WireError.self) {
      try parse(writer.descriptor(template: 0, number: 1, withStructure: true), &structure)
    }
  }

  @Test("Other active layers are written where they belong, and nothing else changes", arguments: all)
  func rewritten(bytes: [UInt8]) throws {
    var structure = FrameDependencyStructure()
    let before = try parse(bytes, &structure)
    for wanted in [structure.layers, layers([(0, 0)])] {
      let rewritten = try rewrite(bytes, FrameDependencyStructure(), active: wanted)
      var again = FrameDependencyStructure()
      var after = try parse(rewritten, &again)
      #expect(after.active == wanted)
      after.active = before.active
      #expect(after == before && again.layers == structure.layers)
      // Written once more, it keeps its length.
      #expect(try rewrite(rewritten, FrameDependencyStructure(), active: wanted).count == rewritten.count)
    }
  }

  private func rewrite(
    _ bytes: [UInt8], _ structure: FrameDependencyStructure, active: LayerSet
  ) throws -> [UInt8] {
    var target = [UInt8](repeating: 0xff, count: 300)
    var span = target.mutableSpan
    let count = try DependencyDescriptor.rewrite(bytes.span, with: structure, active: active, into: &span)
    return Array(target[..<count])
  }

  @Test("A short descriptor becomes one that tells what is active; without a structure it stays")
  func lengthened() throws {
    var structure = try known(.keySizes)
    let short = DescriptorWriter.keySizes.descriptor(template: 3, number: 0xabcd)
    #expect(short.count == 3)
    let long = try rewrite(short, structure, active: layers([(1, 0)]))
    #expect(long == short + [0x42])
    let parsed = try parse(long, &structure)
    #expect(parsed.active == layers([(1, 0)]) && parsed.frameNumber == 0xabcd && parsed.spatialLayer == 1)
    #expect(throws: WireError.self) { try rewrite(short, FrameDependencyStructure(), active: .all) }
  }

  @Test("Of a set of layers the best one within limits is found, else the lowest")
  func best() {
    let set = layers([(0, 0), (0, 1), (2, 0), (2, 1), (2, 3)])
    func best(_ spatial: Int, _ temporal: Int) -> (Int, Int) {
      let index = Int(set.best(spatial: spatial, temporal: temporal))
      return (index / 4, index % 4)
    }
    #expect(best(7, 7) == (2, 3) && best(2, 2) == (2, 1) && best(1, 7) == (0, 1) && best(0, 0) == (0, 0))
    #expect(layers([(1, 2)]).best(spatial: 0, temporal: 0) == 6)
    #expect(LayerSet().best(spatial: 1, temporal: 2) == 6)
    #expect(LayerSet.sizes(2).sizeCount == 2 && LayerSet.sizes(8) == .all && LayerSet().sizeCount == 0)
    #expect(set.reaches(above: 1) && !set.reaches(above: 2) && !set.reaches(above: 7))
  }
}
