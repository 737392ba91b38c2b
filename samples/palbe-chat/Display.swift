import Foundation

/// Where lines are shown. What comes from other people has passed `safe(_:)` before.
@MainActor
protocol Display: AnyObject {
  /// Shows a line, below those before.
  func show(_ line: String)
  /// Shows what is true now: the chat, who types, transfers. The last line is the status line, those above it bars.
  func setStatus(_ lines: [String])
  /// Leaves the terminal as it was.
  func end()
}

/// Lines on standard output: scripts, pipes, and the panes of the split view.
final class PlainDisplay: Display {
  /// Begins a line that the split view takes as the status.
  static let statusMark: Character = "\u{1}"
  private let tellsStatus: Bool
  private let isQuiet: Bool
  private var status: [String] = []

  init(tellsStatus: Bool = false, isQuiet: Bool = false) {
    self.tellsStatus = tellsStatus
    self.isQuiet = isQuiet
  }

  func show(_ line: String) {
    if !isQuiet { write(line + "\n") }
  }

  func setStatus(_ lines: [String]) {
    guard tellsStatus, lines != status else { return }
    status = lines
    write(String(Self.statusMark) + lines.joined(separator: "\u{2}") + "\n")
  }

  func end() {}

  private func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }
}

/// A terminal: what was said scrolls, and at the bottom are the status and the line that is typed, which nothing breaks.
final class TerminalDisplay: Display {
  private let terminal: Terminal
  private(set) var editor = LineEditor()
  private var status: [String] = [""]
  /// Rows of the bottom part that are on the screen.
  private var drawn = 0
  /// A question whose answer is not shown.
  private var question: (text: String, answer: CheckedContinuation<String, Never>)?
  private var prompt: String { question?.text ?? "> " }

  init(_ terminal: Terminal) {
    self.terminal = terminal
    draw()
  }

  func show(_ line: String) {
    erase()
    terminal.write(wrap(line, to: terminal.size.columns).joined(separator: "\r\n") + "\r\n")
    draw()
  }

  func setStatus(_ lines: [String]) {
    guard lines != status else { return }
    erase()
    status = lines
    draw()
  }

  /// Takes a byte that was typed.
  func take(_ byte: UInt8) -> LineEditor.Key {
    erase()
    var key = editor.take(byte, remembers: question == nil)
    if let question {
      switch key {
      case .line(let line):
        self.question = nil
        question.answer.resume(returning: line)
        key = .nothing
      case .end: break
      default: key = .nothing
      }
    }
    draw()
    return key
  }

  /// Asks for what nobody may see.
  func ask(_ text: String) async -> String {
    await withCheckedContinuation { continuation in
      question?.answer.resume(returning: "")
      erase()
      question = (text, continuation)
      draw()
    }
  }

  /// After the window has another size.
  func redraw() {
    erase()
    draw()
  }

  func end() {
    question?.answer.resume(returning: "")
    question = nil
    erase()
    terminal.restore()
  }

  private func erase() {
    guard drawn > 0 else { return }
    terminal.write("\r" + (drawn > 1 ? "\u{1B}[\(drawn - 1)A" : "") + "\u{1B}[J")
    drawn = 0
  }

  private func draw() {
    let width = terminal.size.columns
    var text = ""
    for line in status.dropLast() { text += cut(line, to: width) + "\r\n" }
    let last = cut(status.last ?? "", to: width - 1)
    text += "\u{1B}[7m" + last + String(repeating: " ", count: max(0, width - 1 - columns(last)))
    text += "\u{1B}[0m\r\n"
    let window = question == nil ? editor.window(width - prompt.count - 1) : ("", 0)
    text += prompt + window.0 + "\r\u{1B}[\(columns(prompt) + window.1)C"
    drawn = max(1, status.count) + 1
    terminal.write(text)
  }
}
