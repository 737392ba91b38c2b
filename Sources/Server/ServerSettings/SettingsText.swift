import PalbeCommandLine
import PalbeWire

extension SettingValues {
  /// The configuration in effect as a YAML file, each key with who gave it; secrets are left out.
  public var document: String {
    var lines: [String] = []
    var section = ""
    for setting in schema.keysBySection {
      let parts = setting.name.split(separator: ".")
      let own = parts.dropLast().joined(separator: ".")
      if own != section, !own.isEmpty { lines.append("\(own):") }
      section = own
      let indent = own.isEmpty ? "" : "  "
      lines.append(
        "\(indent)\(parts.last ?? ""): \(shown(setting))  # \(printable(source(of: setting).description))")
    }
    return lines.joined(separator: "\n")
  }
}

extension AnySetting {
  /// The option that changes the default.
  fileprivate var shownOption: String {
    let option = commandOption
    return option.isSwitch && option.defaultValue == "true" ? option.negation : option.name
  }
}

extension SettingsSchema {
  /// Keys of a section together, those without one first.
  fileprivate var keysBySection: [any AnySetting] {
    func section(_ name: String) -> Substring? {
      name.contains(".") ? name.split(separator: ".").first : nil
    }
    func rank(_ setting: any AnySetting) -> Int {
      let own = section(setting.name)
      let first = own == nil ? 0 : 1 + (keys.firstIndex { section($0.name) == own } ?? 0)
      return first * 1_000 + (keys.firstIndex { $0.name == setting.name } ?? 0)
    }
    return keys.sorted { rank($0) < rank($1) }
  }

  /// The table of all keys, in Markdown, for the program's documentation.
  public var table: String {
    var lines = ["| key | option | value | default | reload | meaning |", "|---|---|---|---|---|---|"]
    for setting in keys {
      let names = ([setting.name] + setting.aliases).map { "`\($0)`" }.joined(separator: ", ")
      lines.append(
        "| \(names) | `\(setting.shownOption)` | \(setting.expectation) | \(setting.shownDefault ?? "") "
          + "| \(setting.reloads ? "yes" : "") | \(setting.help) |")
    }
    return lines.joined(separator: "\n")
  }
}
