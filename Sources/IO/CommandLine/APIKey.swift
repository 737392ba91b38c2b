/// An API key on a command line: `--key NAME:SECRET`.
public struct APIKey: Equatable, Sendable {
  /// What stands for the value in help.
  public static let placeholder = "NAME:SECRET"

  public var name: String
  public var secret: String

  public init(name: String, secret: String) {
    self.name = name
    self.secret = secret
  }

  /// Reads the value of `option`; the secret may hold colons itself.
  ///
  /// - Throws: an error that does not repeat the text, because it may be a secret.
  public init(parsing text: String, of option: String) throws(ArgumentError) {
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
      throw ArgumentError("option '\(option)' is malformed; expected \(Self.placeholder)")
    }
    self.init(name: String(parts[0]), secret: String(parts[1]))
  }
}
