import PalbeYAML

extension FuzzTarget {
  /// A configuration file: what parses stays within the bounds, however its aliases repeat.
  static let yaml = FuzzTarget(name: "yaml") { bytes in
    var limits = YAMLLimits()
    limits.nodeCount = 2_000
    limits.depth = 16
    guard let node = try? YAMLNode(parsing: bytes, limits: limits) else { return }
    var rest = [(node, 0)]
    var count = 0
    while let (node, depth) = rest.popLast() {
      count += 1
      demand(count <= limits.nodeCount, "more values than the bound")
      demand(depth <= limits.depth, "deeper than the bound")
      switch node.content {
      case .scalar: break
      case .sequence(let items): rest += items.map { ($0, depth + 1) }
      case .mapping(let entries):
        count += entries.count
        demand(Set(entries.map(\.key)).count == entries.count, "a key twice")
        rest += entries.map { ($0.value, depth + 1) }
      }
    }
  }
}
