/// Where something stands in a document; both count from 1.
public struct YAMLPosition: Hashable, Sendable, CustomStringConvertible {
  public var line: Int
  public var column: Int

  /// A place.
  public init(line: Int, column: Int) {
    self.line = line
    self.column = column
  }

  /// "line 3, column 5".
  public var description: String { "line \(line), column \(column)" }
}

/// What is wrong with a document, and where.
public struct YAMLError: Error, Hashable, Sendable, CustomStringConvertible {
  public var position: YAMLPosition
  /// In plain words; never a scalar of the document, which may be a secret.
  public var reason: String

  /// An error.
  public init(_ reason: String, at position: YAMLPosition) {
    self.position = position
    self.reason = reason
  }

  /// One line for a person.
  public var description: String { "\(position): \(reason)" }
}

/// A value of a YAML document with its place: a scalar, a sequence or a mapping.
///
/// A scalar stays text: who reads it knows what it has to be. Two nodes are equal when they hold the same, wherever they
/// stand.
public struct YAMLNode: Sendable {
  /// What a node holds.
  public enum Content: Equatable, Sendable {
    /// `isPlain` is false for quoted and block text, which is never null, a number or a boolean.
    case scalar(String, isPlain: Bool)
    case sequence([YAMLNode])
    /// In the document's order; each key once.
    case mapping([Entry])
  }

  /// A key of a mapping and its value.
  public struct Entry: Equatable, Sendable {
    public var key: String
    public var keyPosition: YAMLPosition
    public var value: YAMLNode

    /// A pair.
    public init(key: String, keyPosition: YAMLPosition, value: YAMLNode) {
      self.key = key
      self.keyPosition = keyPosition
      self.value = value
    }

    /// Places count for nothing.
    public static func == (left: Entry, right: Entry) -> Bool {
      left.key == right.key && left.value == right.value
    }
  }

  public var content: Content
  public var position: YAMLPosition

  /// A node.
  public init(_ content: Content, at position: YAMLPosition) {
    self.content = content
    self.position = position
  }

  /// True for an empty plain scalar, `~` and `null` (YAML 1.2 §10.2.1.1).
  public var isNull: Bool {
    guard case .scalar(let text, isPlain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }

  /// The text of a scalar; nil for another node.
  public var text: String? {
    guard case .scalar(let text, _) = content else { return nil }
    return text
  }

  /// "text", "a list" or "a mapping", for messages.
  public var kindName: String {
    switch content {
    case .scalar: "text"
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }
}

extension YAMLNode: Equatable {
  /// Places count for nothing.
  public static func == (left: YAMLNode, right: YAMLNode) -> Bool { left.content == right.content }
}
