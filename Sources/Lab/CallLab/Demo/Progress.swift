import Foundation
import Glibc
import Synchronization

/// Shows which phase a demo is in: one line that changes at a terminal, a line for each phase elsewhere.
final class Progress: Sendable {
  private struct State {
    var phase = ""
    var isLineOpen = false
    var isFinished = false
  }

  private let isTerminal: Bool
  private let write: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameters:
  ///   - isTerminal: whether one line may be rewritten.
  ///   - write: takes text as it is, without a line break at its end unless it has one.
  init(isTerminal: Bool, write: @escaping @Sendable (String) -> Void) {
    self.isTerminal = isTerminal
    self.write = write
  }

  /// On standard error.
  static func onStandardError() -> Progress {
    Progress(isTerminal: isatty(2) == 1) {
      try? FileHandle.standardError.write(contentsOf: Data($0.utf8))
    }
  }

  /// A new phase begins.
  func phase(_ text: String) {
    state.withLock { state in
      guard !state.isFinished else { return }
      state.phase = text
      state.isLineOpen = isTerminal
      write(isTerminal ? "\r\u{1b}[2K\(text)" : "\(text)\n")
    }
  }

  /// How far the phase is; shown at a terminal only.
  func detail(_ text: String) {
    guard isTerminal else { return }
    state.withLock { state in
      guard !state.isFinished else { return }
      state.isLineOpen = true
      write("\r\u{1b}[2K\(state.phase): \(text)")
    }
  }

  /// Clears the line, so that other text can follow; nothing is shown from now on.
  func finish() {
    state.withLock { state in
      if state.isLineOpen { write("\r\u{1b}[2K") }
      (state.isLineOpen, state.isFinished) = (false, true)
    }
  }
}
