/// Why a WAV or Y4M file could not be read or written: one line for the person who named it.
public struct MediaFileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What was wrong.
  public enum Problem: Error, Equatable, Sendable {
    /// The system refused to open, read or write it; `reason` is the system's.
    case system(operation: String, reason: String)
    /// It is another kind of file.
    case notRecognised(expected: String)
    /// It ends before what it announced.
    case truncated(what: String, expected: Int, found: Int)
    /// A value that the format allows and we do not read.
    case unsupported(what: String, found: String, expected: String)
    /// A value that the format does not allow.
    case malformed(what: String, found: String, expected: String)
    /// There is nothing in it to play.
    case empty(what: String)
    /// It would grow past what the format can say.
    case tooLong
  }

  /// The file as it was named.
  public let path: String
  /// What was wrong.
  public let problem: Problem

  init(_ path: String, _ problem: Problem) {
    self.path = path
    self.problem = problem
  }

  /// One line: the path, what was wrong and what was expected.
  public var description: String {
    let text =
      switch problem {
      case .system(let operation, let reason): "cannot \(operation): \(reason)"
      case .notRecognised(let expected): "not \(expected)"
      case .truncated(let what, let expected, let found):
        "\(what) is cut off: expected \(expected) bytes, found \(found)"
      case .unsupported(let what, let found, let expected):
        "\(what) is \(found): only \(expected) can be read"
      case .malformed(let what, let found, let expected): "\(what) is \(found): expected \(expected)"
      case .empty(let what): "there are no \(what) in it"
      case .tooLong: "longer than the format can hold"
      }
    return "\(path): \(text)"
  }
}
