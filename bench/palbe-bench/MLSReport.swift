/// The result for people and for programs.
enum MLSReport {
  static func json(_ rows: [MLSRow]) -> String {
    let objects = rows.map { row in
      let fields = [
        "\"operation\": \"\(row.operation.rawValue)\"", "\"members\": \(row.members)",
        "\"tree\": \"\(row.tree.rawValue)\"", "\"us\": \(fixed(row.us, 2))",
        "\"floor_us\": \(fixed(row.floorUS, 2))", "\"ratio\": \(fixed(row.ratio, 3))",
        "\"bytes\": \(row.bytes)",
        "\"resident_bytes\": \(row.residentBytes)",
      ]
      return "  {" + fields.joined(separator: ", ") + "}"
    }
    return "[\n" + objects.joined(separator: ",\n") + "\n]"
  }

  static func text(_ rows: [MLSRow], _ notes: MLSNotes) -> String {
    let head = ["members", "tree", "what", "ours", "floor", "ratio", "bytes", "resident", "mallocs"]
    let lines = rows.map { row in
      [
        "\(row.members)", row.tree.rawValue, row.operation.rawValue, time(row.us), time(row.floorUS),
        fixed(row.ratio, 2), "\(row.bytes)", "\(fixed(Double(row.residentBytes) / 1_048_576, 1)) MiB",
        fixed(row.mallocs, 0),
      ]
    }
    return ([table(head, lines, left: [1, 2])] + bars(rows, notes) + [explanation]).joined(separator: "\n\n")
  }

  private static func time(_ us: Double) -> String {
    us < 10_000 ? "\(fixed(us, us < 100 ? 1 : 0)) µs" : "\(fixed(us / 1_000, 1)) ms"
  }

  /// What we ask for, beside what was measured; nothing for sizes that were left out.
  private static func bars(_ rows: [MLSRow], _ notes: MLSNotes) -> [String] {
    var lines: [[String]] = []
    func row(_ operation: MLSRow.Operation, _ members: Int, _ tree: MLSRow.Tree) -> MLSRow? {
      rows.first { $0.operation == operation && $0.members == members && $0.tree == tree }
    }
    func bar(_ what: String, _ value: Double?, _ most: Double, _ digits: Int = 2) {
      guard let value else { return }
      lines.append([what, fixed(value, digits), fixed(most, digits), value <= most ? "kept" : "MISSED"])
    }
    func worst(_ operation: MLSRow.Operation) -> Double? {
      rows.filter { $0.operation == operation }.map(\.ratio).max()
    }
    bar("encrypt 100 B, the worst row, times the floor", worst(.encrypt), 1.4)
    bar("decrypt 100 B, the worst row, times the floor", worst(.decrypt), 1.3)
    bar("process a warm commit, 1,000 members, times the floor", row(.process, 1_000, .warm)?.ratio, 1.5)
    bar("empty warm commit, 1,000 members, times the floor", row(.commit, 1_000, .warm)?.ratio, 2)
    for tree in [MLSRow.Tree.flat, .warm] {
      bar("join 1,000, \(tree.rawValue), times the floor", row(.join, 1_000, tree)?.ratio, 1.3)
    }
    bar("add 999 in one commit, times the floor", row(.addAll, 1_000, .flat)?.ratio, 1.3)
    for tree in [MLSRow.Tree.flat, .warm] {
      if let small = row(.join, 1_000, tree), let large = row(.join, 10_000, tree) {
        bar("join 10,000, \(tree.rawValue), times join 1,000", large.us / small.us, 12)
      }
    }
    if let size = notes.commitSize {
      bar("bytes of that commit; its fields by RFC 9420 need \(size.computed)", Double(size.ours), 1_310, 0)
    }
    var texts = lines.isEmpty ? [] : [table(["bar", "measured", "at most", ""], lines, left: [0, 3])]
    if !notes.neighbour.isEmpty {
      let parts = notes.neighbour.map { item in
        "\(item.members): \(time(item.us)), \(fixed(item.us / item.floorUS, 2)) times the floor"
      }
      texts.append(
        "A warm commit processed by the committer's neighbour, who derives every path key: "
          + parts.joined(separator: "; ") + ".")
    }
    return texts
  }

  static let explanation = """
    ours      processor time of one operation with its encoding or decoding; suite 1, PublicMessage, the Welcome with
              the tree in it. add_one and add_all with a path. In a flat tree the creator commits and the last member
              processes; in a warm tree the last member commits and the first processes.
    floor     the signatures, verifications and X25519 operations that it cannot avoid, counted by the tree's shape
              (TreeShape.swift), in raw OpenSSL calls whose keys and contexts exist already. The exporter has none: its
              floor is the compressions of SHA-256.
    ratio     ours over floor, each the fastest of all slices, measured in turns in this run.
    bytes     what travels: the commit, the Welcome (join), the message. create sends nothing; export gives 32.
    resident  memory of this process after the operation, with all clients of that group in it.
    mallocs   heap allocations of one operation. No hardware counters are read.
    """
}
