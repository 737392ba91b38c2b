import Foundation
import Synchronization

/// What the SDK has to say to a developer: to standard error, one line each. No line holds a token, a key or what
/// a person wrote.
package enum SDKLog {
  private static let sink = Mutex<(@Sendable (String) -> Void)?>(nil)

  /// Sends lines somewhere else; nil is standard error.
  package static func redirect(to sink: (@Sendable (String) -> Void)?) { self.sink.withLock { $0 = sink } }

  package static func note(_ line: String) {
    if let sink = sink.withLock({ $0 }) { return sink(line) }
    FileHandle.standardError.write(Data("palbe: \(line)\n".utf8))
  }
}
