import PalbeMLS

/// Why a line was not carried out.
struct InteropError: Error, Hashable {
  /// The engine's innermost error, such as `staleMessage`, or `badRequest`, `unknownMethod`, `badParameter`,
  /// `unknownName`, `notSupported`.
  let kind: String
  let message: String
  /// The number in docs/mls-validation.md, where the engine refused by a rule.
  var rule: String?

  init(_ kind: String, _ message: String) {
    self.kind = kind
    self.message = message
  }

  init(_ error: MLSStorageError) {
    let text = String(describing: error)
    self.init(String(text.prefix { $0 != "(" }), text)
  }

  init(_ error: MLSError) {
    let inner: Any =
      switch error {
      case .leafNode(let inner): inner
      case .keyPackage(let inner): inner
      case .tree(let inner): inner
      case .proposals(let inner): inner
      case .message(let inner): inner
      case .commit(let inner): inner
      case .welcome(let inner): inner
      case .state(let inner): inner
      case .malformed, .crypto, .unsupportedSuite: error
      }
    // "staleMessage(epoch: 3)": the case's name comes before its values.
    let text = String(describing: inner)
    kind = String(text.prefix { $0 != "(" })
    message = text
    rule = error.rule
  }
}
