extension Settings {
  /// The configuration in effect as a YAML file, each key with who gave it; secrets are left out.
  public var document: String {
    var lines: [String] = []
    var section = ""
    for setting in SFUKeys.all.sorted(by: Self.bySection) {
      let parts = setting.name.split(separator: ".")
      let own = parts.dropLast().joined(separator: ".")
      if own != section, !own.isEmpty { lines.append("\(own):") }
      section = own
      let indent = own.isEmpty ? "" : "  "
      lines.append("\(indent)\(parts.last ?? ""): \(shown(setting))  # \(source(of: setting))")
    }
    return lines.joined(separator: "\n")
  }

  /// Keys of a section together, those without one first.
  private static func bySection(_ left: any AnySetting, _ right: any AnySetting) -> Bool {
    rank(left) < rank(right)
  }

  private static func rank(_ setting: any AnySetting) -> Int {
    func section(_ name: String) -> Substring? {
      name.contains(".") ? name.split(separator: ".").first : nil
    }
    let own = section(setting.name)
    let first = own == nil ? 0 : 1 + (SFUKeys.all.firstIndex { section($0.name) == own } ?? 0)
    return first * 1_000 + (SFUKeys.all.firstIndex { $0.name == setting.name } ?? 0)
  }

  /// The table of all keys in `docs/sfu.md`.
  public static var table: String {
    var lines = ["| key | option | value | default | reload | meaning |", "|---|---|---|---|---|---|"]
    for setting in SFUKeys.all {
      let names = ([setting.name] + setting.aliases).map { "`\($0)`" }.joined(separator: ", ")
      lines.append(
        "| \(names) | `\(setting.option)` | \(setting.expectation) | \(setting.shownDefault ?? "") "
          + "| \(setting.reloads ? "yes" : "") | \(setting.help) |")
    }
    return lines.joined(separator: "\n")
  }
}
