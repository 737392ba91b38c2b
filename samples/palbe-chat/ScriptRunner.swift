import Foundation
import PalbeMessaging

/// Does what a script says, and stops at the first thing that does not hold.
@MainActor
final class ScriptRunner {
  private let script: Script
  private let session: Session
  private let arguments: Arguments
  /// Lines that were shown, and those that a `wait` had already.
  private var lines: [String] = []
  private var used: Set<Int> = []
  /// Lines that were there when the last command began.
  private var before = 0
  private var waiter: (pattern: Pattern, continuation: CheckedContinuation<Bool, Never>)?

  private struct Failed: Error { let reason: String }

  init(_ script: Script, _ arguments: Arguments) {
    self.script = script
    self.arguments = arguments
    session = Session(arguments, display: PlainDisplay(isQuiet: arguments.isQuiet), saysAll: true)
    session.listener = { [weak self] line in self?.heard(line) }
  }

  /// The exit code: 0 when all of it held, 1 with one line when not, 2 for a misuse.
  func run() async -> Int32 {
    do {
      try await session.begin()
    } catch let error as Misuse {
      complain(error.description)
      return 2
    } catch {
      complain("cannot begin: \(Wording.failure(error))")
      return 1
    }
    for line in script.lines {
      do { if try await !run(line.step) { break } } catch let error as Failed {
        complain("\(safe(arguments.script ?? "")):\(line.number): \(error.reason)")
        session.end()
        return 1
      } catch {
        complain("\(safe(arguments.script ?? "")):\(line.number): \(Wording.failure(error))")
        session.end()
        return 1
      }
    }
    session.end()
    return 0
  }

  /// False after `/quit`.
  private func run(_ step: Script.Step) async throws -> Bool {
    switch step {
    case .command(let text):
      before = lines.count
      let command = try Command(text)
      if case .quit = command { return false }
      session.display.show("> \(safe(text))")
      try await session.run(command)
    case .failing(let text):
      before = lines.count
      session.display.show("> \(safe(text))")
      do { try await session.run(try Command(text)) } catch {
        session.show("refused: \(Wording.failure(error))")
        return true
      }
      throw Failed(reason: "'\(safe(text))' should have failed")
    case .wait(let pattern, let seconds):
      guard await wait(for: pattern, seconds) else {
        throw Failed(
          reason:
            "nothing like '\(pattern)' in \(seconds.formatted()) s; the last line: \(lines.last ?? "none")")
      }
    case .expect(let pattern):
      guard lines[before...].contains(where: { pattern.matches($0) }) else {
        throw Failed(reason: "expected '\(pattern)'; the last line: \(lines.last ?? "none")")
      }
    case .meet(let name, let seconds):
      let end = ContinuousClock.now + .seconds(seconds)
      while session.contacts.user(name) == nil {
        guard ContinuousClock.now < end else { throw Failed(reason: "nobody called '\(safe(name))' came") }
        try await Task.sleep(for: .milliseconds(50))
      }
    case .pause(let seconds): try await Task.sleep(for: .seconds(seconds))
    }
    return true
  }

  private func heard(_ line: String) {
    lines.append(line)
    if let waiter, waiter.pattern.matches(line) {
      used.insert(lines.count - 1)
      finish(true)
    }
  }

  /// Whether such a line comes, or has come and no other wait had it.
  private func wait(for pattern: Pattern, _ seconds: Double) async -> Bool {
    if let index = lines.indices.first(where: { !used.contains($0) && pattern.matches(lines[$0]) }) {
      used.insert(index)
      return true
    }
    let timer = Task {
      try await Task.sleep(for: .seconds(seconds))
      finish(false)
    }
    defer { timer.cancel() }
    return await withCheckedContinuation { waiter = (pattern, $0) }
  }

  private func finish(_ isFound: Bool) {
    let continuation = waiter?.continuation
    waiter = nil
    continuation?.resume(returning: isFound)
  }
}
