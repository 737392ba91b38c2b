public import PalbeUnits
public import PalbeYAML

/// Why a value is not taken.
public struct SettingProblem: Error, Equatable, Sendable {
  /// Continues a sentence about the key: "expected a whole number"; never a secret.
  public var reason: String
  /// Where, if it is inside the value.
  public var position: YAMLPosition?

  /// A problem.
  public init(_ reason: String, at position: YAMLPosition? = nil) {
    self.reason = reason
    self.position = position
  }
}

/// What a key's value may be, and how it is read and written.
public struct SettingKind<Value: Sendable & Equatable>: Sendable {
  /// What stands for the value in help, such as `N`.
  public var placeholder: String
  /// What is expected, in words: "a whole number from 0 to 65535".
  public var expectation: String
  /// The option may be given more than once.
  public var isRepeatable = false
  /// The option needs no value.
  public var isSwitch = false
  /// From a file, or from what `node` made of an option or variable.
  public var read: @Sendable (YAMLNode) throws(SettingProblem) -> Value
  /// As YAML on one line. `true` leaves secrets out.
  public var show: @Sendable (Value, Bool) -> String
  /// An option's or variable's text as the file would have it.
  public var node: @Sendable (String) throws(SettingProblem) -> YAMLNode = { .plain($0) }

  package init(
    _ placeholder: String, _ expectation: String,
    read: @escaping @Sendable (YAMLNode) throws(SettingProblem) -> Value,
    show: @escaping @Sendable (Value, Bool) -> String
  ) {
    self.placeholder = placeholder
    self.expectation = expectation
    self.read = read
    self.show = show
  }

  /// A kind that is read from text alone; nil refuses it.
  package init(
    scalar placeholder: String, _ expectation: String, read: @escaping @Sendable (String) -> Value?,
    show: @escaping @Sendable (Value) -> String
  ) {
    self.init(placeholder, expectation) { node throws(SettingProblem) in
      guard let text = node.text, let value = read(text) else {
        throw SettingProblem("expected \(expectation)", at: node.position)
      }
      return value
    } show: { value, _ in
      show(value)
    }
  }
}

extension YAMLNode {
  package static func plain(_ text: String) -> YAMLNode {
    YAMLNode(.scalar(text, isPlain: true), at: YAMLPosition(line: 1, column: 1))
  }

  /// An option's or variable's text that holds more than one value.
  package static func structure(_ text: String) throws(SettingProblem) -> YAMLNode {
    do throws(YAMLError) {
      return try YAMLNode(parsing: Array(text.utf8))
        ?? YAMLNode(.sequence([]), at: YAMLPosition(line: 1, column: 1))
    } catch {
      throw SettingProblem(error.description)
    }
  }
}

// MARK: Plain values

extension SettingKind where Value == Int {
  /// A whole number.
  public static func integer(_ range: ClosedRange<Int>) -> SettingKind {
    let expectation = "a whole number from \(range.lowerBound) to \(range.upperBound)"
    return SettingKind(
      scalar: "N", expectation, read: { Int($0).flatMap { range.contains($0) ? $0 : nil } },
      show: { "\($0)" })
  }
}

extension SettingKind where Value == Int64 {
  /// A number of bytes with its unit, `64KiB`, `2GiB`; a number alone is bytes.
  public static func byteCount(_ range: ClosedRange<Int64>) -> SettingKind {
    let units: [(name: String, scale: Int64)] = [
      ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1),
    ]
    @Sendable func shown(_ value: Int64) -> String {
      let unit = units.first { value % $0.scale == 0 && value > 0 && $0.scale > 1 }
      return unit.map { "\(value / $0.scale)\($0.name)" } ?? "\(value)"
    }
    return SettingKind(
      scalar: "SIZE",
      "a size from \(shown(range.lowerBound)) to \(shown(range.upperBound)), such as 64KiB or 2GiB",
      read: { text in
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        guard digits.count <= 15, let number = Int64(digits),
          let unit = units.first(where: { $0.name == text.dropFirst(digits.count) })
        else { return nil }
        let (value, overflow) = number.multipliedReportingOverflow(by: unit.scale)
        return !overflow && range.contains(value) ? value : nil
      }, show: shown)
  }
}

extension SettingKind where Value == Bool {
  /// True or false; as an option a switch.
  public static var boolean: SettingKind {
    var kind = SettingKind(
      scalar: "BOOL", "true or false",
      read: { text in
        switch text.lowercased() {
        case "true", "yes", "on", "1": true
        case "false", "no", "off", "0": false
        default: nil
        }
      }, show: { "\($0)" })
    kind.isSwitch = true
    return kind
  }
}

extension SettingKind where Value == String {
  /// Any text that is not empty.
  public static func text(_ placeholder: String, _ expectation: String, isSecret: Bool = false) -> SettingKind
  {
    var kind = SettingKind(
      scalar: placeholder, expectation, read: { $0.isEmpty ? nil : $0 }, show: { quoted($0) })
    if isSecret { kind.show = { value, masks in masks ? mask : quoted(value) } }
    return kind
  }

  /// An http or https address.
  public static var webAddress: SettingKind {
    SettingKind(
      scalar: "URL", "an http or https address", read: { WebAddress.isValid($0) ? $0 : nil },
      show: { quoted($0) })
  }

  /// One of some words; `aliases` are other words for them.
  public static func choice(_ words: [String], aliases: [String: String] = [:]) -> SettingKind {
    SettingKind(
      scalar: words.joined(separator: "|"), words.joined(separator: ", "),
      read: { words.contains($0) ? $0 : aliases[$0] }, show: { $0 })
  }
}

extension SettingKind where Value == SocketAddress {
  /// An IPv4 or IPv6 address without a port.
  public static var address: SettingKind {
    SettingKind(
      scalar: "ADDRESS", "an IPv4 or IPv6 address", read: { SocketAddress(host: $0, port: 0) },
      show: { quoted($0.host) })
  }

  /// An address that others can send to, without a port: not the one that stands for all of a host's.
  public static var reachableAddress: SettingKind {
    SettingKind(
      scalar: "ADDRESS", "an IPv4 or IPv6 address other than 0.0.0.0 and ::",
      read: { SocketAddress(host: $0, port: 0).flatMap { $0.isUnspecified ? nil : $0 } },
      show: { quoted($0.host) })
  }
}

extension SettingKind where Value == TimeDelta {
  /// A time with its unit, `1.5s`, `500ms`, `2m`, `12h`, `30d`; a number alone is seconds.
  public static func duration(_ range: ClosedRange<TimeDelta>) -> SettingKind {
    let expectation =
      "a time from \(shown(range.lowerBound)) to \(shown(range.upperBound)), such as \(range.upperBound >= .days(1) ? "12h or 30d" : "30s or 500ms")"
    return SettingKind(
      scalar: "TIME", expectation, read: { parse($0).flatMap { range.contains($0) ? $0 : nil } }, show: shown)
  }

  private static func parse(_ text: String) -> TimeDelta? {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    guard number.count <= 12, let value = Double(number), value.isFinite else { return nil }
    let scale: Double
    switch text.dropFirst(number.count) {
    case "", "s": scale = 1
    case "ms": scale = 0.001
    case "m": scale = 60
    case "h": scale = 3_600
    case "d": scale = 86_400
    default: return nil
    }
    let milliseconds = (value * scale * 1_000).rounded()
    guard milliseconds < 1e12 else { return nil }
    return .milliseconds(Int(milliseconds))
  }

  private static func shown(_ value: TimeDelta) -> String {
    let milliseconds = value.wholeMilliseconds
    return milliseconds % 1_000 == 0 ? "\(milliseconds / 1_000)s" : "\(milliseconds)ms"
  }
}

extension SettingKind where Value == ClosedRange<Int> {
  /// A port, or several in a row: `7882` or `7882-7889`.
  public static var ports: SettingKind {
    SettingKind(scalar: "PORT", "a port or a range of ports, such as 7882 or 7882-7889") { text in
      let parts = text.split(separator: "-", omittingEmptySubsequences: false)
      guard let first = Int(parts[0]), (0...65_535).contains(first) else { return nil }
      guard parts.count > 1 else { return first...first }
      guard parts.count == 2, let last = Int(parts[1]), first > 0, last >= first, last <= 65_535 else {
        return nil
      }
      return first...last
    } show: {
      $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)"
    }
  }
}

// MARK: Nothing

extension SettingKind {
  /// A value or none: an empty text or `null` is none.
  public static func optional<Wrapped>(_ kind: SettingKind<Wrapped>) -> SettingKind where Value == Wrapped? {
    var optional = SettingKind(kind.placeholder, kind.expectation) { node throws(SettingProblem) in
      if node.isNull || node.text == "" { return nil }
      return try kind.read(node)
    } show: { value, masks in
      value.map { kind.show($0, masks) } ?? "null"
    }
    optional.node = kind.node
    return optional
  }
}

// MARK: Lists

extension SettingKind where Value == [String] {
  /// A list of text; as an option repeated or with commas.
  public static func list(
    _ placeholder: String, _ expectation: String,
    check: @escaping @Sendable (String) -> Bool = { !$0.isEmpty }
  ) -> SettingKind {
    var kind = SettingKind(placeholder, expectation) { node throws(SettingProblem) in
      var texts: [String] = []
      for item in node.items {
        guard let text = item.text, check(text) else {
          throw SettingProblem("expected \(expectation)", at: item.position)
        }
        texts.append(text)
      }
      return texts
    } show: { value, _ in
      "[" + value.map(quoted).joined(separator: ", ") + "]"
    }
    kind.isRepeatable = true
    kind.node = { text throws(SettingProblem) in
      guard !text.hasPrefix("[") else { return try .structure(text) }
      let items = text.split(separator: ",", omittingEmptySubsequences: true).map {
        YAMLNode.plain(String($0.drop { $0 == " " }))
      }
      return YAMLNode(.sequence(items), at: YAMLPosition(line: 1, column: 1))
    }
    return kind
  }
}

extension YAMLNode {
  /// The items of a list; a value alone counts as a list of one, nothing as an empty one.
  package var items: [YAMLNode] {
    switch content {
    case .sequence(let items): items
    default: isNull ? [] : [self]
    }
  }

  /// The entries of a mapping, each of which has to be one of `names`.
  package func fields(_ names: [String]) throws(SettingProblem) -> [String: YAMLNode] {
    guard case .mapping(let entries) = content else {
      throw SettingProblem("expected a mapping of \(names.joined(separator: ", "))", at: position)
    }
    for entry in entries where !names.contains(entry.key) {
      throw SettingProblem(
        "'\(entry.key)' is none of \(names.joined(separator: ", "))", at: entry.keyPosition)
    }
    return Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.value) })
  }
}

/// What is shown instead of a secret.
package let mask = "'***'"

/// Text as a YAML scalar on one line.
package func quoted(_ text: String) -> String {
  let plain = text.utf8.allSatisfy { byte in
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "/"):
      true
    default: false
    }
  }
  if plain, !text.isEmpty { return text }
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"", "\\": result += "\\\(scalar)"
    case _ where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value):
      let hex = String(scalar.value, radix: 16)
      result += "\\x" + (hex.count == 1 ? "0" : "") + hex
    case "\u{2028}", "\u{2029}": result += "\\u" + String(scalar.value, radix: 16)
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}
