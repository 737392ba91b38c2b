/// An `a=` line: `a=name` or `a=name:value` (RFC 8866 §5.13).
public struct SDPAttribute: Equatable, Sendable {
  /// Up to the colon.
  public var name: String
  /// After the colon; nil for a flag.
  public var value: String?

  /// A flag, or a name with a value. Neither may hold a line break.
  public init(_ name: String, _ value: String? = nil) {
    self.name = name
    self.value = value
  }
}

/// The attributes of a session or of a media section, in their order.
public struct SDPAttributes: Equatable, Sendable {
  /// Every line, also those that no accessor knows.
  public var all: [SDPAttribute] = []

  /// No attributes.
  public init() {}

  /// True when there is such a line, with or without a value.
  public func contains(_ name: String) -> Bool { all.contains { $0.name == name } }

  /// The first value of this name.
  public func first(_ name: String) -> String? { all.first { $0.name == name && $0.value != nil }?.value }

  /// Every value of this name.
  public func values(_ name: String) -> [String] { all.compactMap { $0.name == name ? $0.value : nil } }

  /// Appends a line.
  public mutating func append(_ name: String, _ value: String? = nil) {
    all.append(SDPAttribute(name, value))
  }

  /// Makes `value` the only one of this name, in the first one's place; nil removes all.
  public mutating func set(_ name: String, _ value: String?) { replace(name, with: value.map { [$0] } ?? []) }

  /// Makes the flag present or absent.
  public mutating func setFlag(_ name: String, _ isPresent: Bool) {
    if isPresent, !contains(name) { append(name) }
    if !isPresent { all.removeAll { $0.name == name } }
  }

  /// Makes `values` the only ones of this name, in the first one's place.
  public mutating func replace(_ name: String, with values: [String]) {
    let place = all.firstIndex { $0.name == name } ?? all.count
    all.removeAll { $0.name == name }
    all.insert(contentsOf: values.map { SDPAttribute(name, $0) }, at: place)
  }
}
