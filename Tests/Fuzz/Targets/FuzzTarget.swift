/// A decoder under fuzzing: it may refuse any input and must trap on none.
public struct FuzzTarget: Sendable {
  /// The name on the command line and of the corpus folder.
  public let name: String
  /// Runs one input.
  public let run: @Sendable ([UInt8]) -> Void

  public init(name: String, run: @escaping @Sendable ([UInt8]) -> Void) {
    self.name = name
    self.run = run
  }
}

/// Ends the run with a message unless `condition` holds. Unlike `precondition` it says why in a release build too.
func demand(_ condition: Bool, _ message: String) {
  if !condition { fatalError(message) }
}
