/// Writes dependency descriptors (AV1's RTP payload format, appendix A) bit by bit, for tests of what reads them.
public struct DescriptorWriter: Sendable {
  /// One kind of frame: its layer, a letter for each decode target (`-` not needed, `D` discardable, `S` switch, `R` required),
  /// and how far back the frames lie that it needs.
  public struct Template: Sendable {
    public var spatial: Int
    public var temporal: Int
    public var indications: String
    public var differences: [Int]
    public var chains: [Int]

    public init(
      _ spatial: Int, _ temporal: Int, _ indications: String, _ differences: [Int], _ chains: [Int] = []
    ) {
      self.spatial = spatial
      self.temporal = temporal
      self.indications = indications
      self.differences = differences
      self.chains = chains
    }
  }

  /// In the order of their layers.
  public var templates: [Template]
  /// The chain of each decode target; empty: none.
  public var protectedBy: [Int] = []
  public var resolutions: [(width: Int, height: Int)] = []
  /// What the first template is called.
  public var offset = 0

  public init(_ templates: [Template]) { self.templates = templates }

  public var targetCount: Int { templates[0].indications.count }
  private var chainCount: Int { (protectedBy.max() ?? -1) + 1 }

  /// The extension's data.
  public func descriptor(
    template: Int, number: UInt16, starts: Bool = true, ends: Bool = true, withStructure: Bool = false,
    active: UInt32? = nil, indications: String? = nil, differences: [Int]? = nil, chains: [Int]? = nil
  ) -> [UInt8] {
    var bits = Bits()
    bits.add(starts ? 1 : 0, 1)
    bits.add(ends ? 1 : 0, 1)
    bits.add((template + offset) % 64, 6)
    bits.add(Int(number), 16)
    let isLong = withStructure || active != nil || indications != nil || differences != nil || chains != nil
    guard isLong else { return bits.bytes }
    for flag in [withStructure, active != nil, indications != nil, differences != nil, chains != nil] {
      bits.add(flag ? 1 : 0, 1)
    }
    if withStructure { add(to: &bits) }
    if let active { bits.add(Int(active), targetCount) }
    if let indications { Self.add(indications, to: &bits) }
    if let differences {
      for difference in differences {
        let size = difference > 256 ? 3 : difference > 16 ? 2 : 1
        bits.add(size, 2)
        bits.add(difference - 1, 4 * size)
      }
      bits.add(0, 2)
    }
    for chain in chains ?? [] { bits.add(chain, 8) }
    return bits.bytes
  }

  private static func add(_ indications: String, to bits: inout Bits) {
    for letter in indications { bits.add(["-": 0, "D": 1, "S": 2, "R": 3][letter] ?? 0, 2) }
  }

  private func add(to bits: inout Bits) {
    bits.add(offset, 6)
    bits.add(targetCount - 1, 5)
    for (template, next) in zip(templates, templates.dropFirst()) {
      let step = next.spatial > template.spatial ? 2 : next.temporal > template.temporal ? 1 : 0
      bits.add(step, 2)
    }
    bits.add(3, 2)
    for template in templates { Self.add(template.indications, to: &bits) }
    for template in templates {
      for difference in template.differences { bits.add(16 + difference - 1, 5) }
      bits.add(0, 1)
    }
    bits.addNumber(chainCount, below: targetCount + 1)
    if chainCount > 0 {
      for chain in protectedBy { bits.addNumber(chain, below: chainCount) }
      for chain in templates.flatMap(\.chains) { bits.add(chain, 4) }
    }
    bits.add(resolutions.isEmpty ? 0 : 1, 1)
    for resolution in resolutions {
      bits.add(resolution.width - 1, 16)
      bits.add(resolution.height - 1, 16)
    }
  }

  private struct Bits {
    var bytes: [UInt8] = []
    var count = 0

    mutating func add(_ value: Int, _ width: Int) {
      for bit in (0..<width).reversed() {
        if count & 7 == 0 { bytes.append(0) }
        if value >> bit & 1 != 0 { bytes[count >> 3] |= 0x80 >> UInt8(count & 7) }
        count += 1
      }
    }

    /// AV1's `ns(n)`.
    mutating func addNumber(_ value: Int, below limit: Int) {
      var width = 0
      while limit >> width > 0 { width += 1 }
      let short = 1 << width - limit
      if value < short { add(value, width - 1) } else { add(value + short, width) }
    }
  }
}

extension DescriptorWriter {
  /// One size, three parts of the frames: 0 2 1 2.
  public static let temporal = DescriptorWriter([
    Template(0, 0, "SSS", []), Template(0, 0, "SSS", [4]), Template(0, 1, "-SS", [2]),
    Template(0, 2, "--D", [1]),
  ])

  /// Three sizes that need each other in key pictures alone, one part: templates 0 to 2 of key pictures, 3 to 5 of others.
  public static let keySizes: DescriptorWriter = {
    var writer = DescriptorWriter([
      Template(0, 0, "SSS", [], [0, 0, 0]), Template(0, 0, "S--", [3], [3, 2, 1]),
      Template(1, 0, "-SS", [1], [1, 1, 1]), Template(1, 0, "-S-", [3], [1, 3, 2]),
      Template(2, 0, "--S", [1], [2, 1, 1]), Template(2, 0, "--S", [3], [2, 1, 3]),
    ])
    writer.protectedBy = [0, 1, 2]
    writer.resolutions = [(320, 180), (640, 360), (1_280, 720)]
    return writer
  }()

  /// Two sizes with two parts each, the larger always needing the smaller: key, then T0 and T1 of both.
  public static let fullSizes = DescriptorWriter([
    Template(0, 0, "SSSS", []), Template(0, 0, "SSRR", [4]), Template(0, 1, "-D-R", [2]),
    Template(1, 0, "--SS", [1]), Template(1, 0, "--SS", [4, 1]), Template(1, 1, "---D", [2, 1]),
  ])
}
