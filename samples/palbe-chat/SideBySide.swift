import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// Two people in one terminal: each pane is a `palbe-chat` of its own, with its own data and its own keys. They share a
/// server and a contacts file, and nothing else.
@MainActor
final class SideBySide {
  private let arguments: Arguments
  private let terminal = Terminal()
  private var panes: [Pane] = []
  private var focus = 0

  private final class Pane {
    let name: String
    let process: Process
    let input = Pipe()
    let output = Pipe()
    var lines: [String] = []
    var status: [String] = ["…"]
    var editor = LineEditor()
    /// Rows that are scrolled back.
    var scrolled = 0
    var isTyping = false

    init(_ name: String) {
      self.name = name
      process = Process()
    }

    func send(_ line: String) { try? input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8)) }
  }

  init(_ arguments: Arguments) throws {
    guard Terminal.isInteractive else {
      throw Misuse("side-by-side needs a terminal; --script runs without one")
    }
    self.arguments = arguments
  }

  func run() async throws -> Int32 {
    let contacts = arguments.contacts ?? arguments.data + "/contacts"
    for name in ["anna", "ben"] { try start(name, contacts) }
    terminal.write("\u{1B}[?1049h\u{1B}[2J")
    defer {
      terminal.write("\u{1B}[?25h\u{1B}[?1049l")
      terminal.restore()
      for pane in panes {
        try? pane.input.fileHandleForWriting.close()
        pane.process.waitUntilExit()
      }
    }
    let resize = DispatchSource.makeSignalSource(signal: SIGWINCH, queue: .main)
    signal(SIGWINCH, SIG_IGN)
    resize.setEventHandler { @Sendable [weak self] in Task { @MainActor in self?.draw() } }
    resize.resume()
    defer { resize.cancel() }
    let introduction = Task { try await introduce(contacts) }
    defer { introduction.cancel() }
    draw()
    for await bytes in Terminal.bytes(from: STDIN_FILENO) {
      for byte in bytes where !take(byte) { return 0 }
      draw()
      if panes.allSatisfy({ !$0.process.isRunning }) { return 0 }
    }
    return 0
  }

  private func start(_ name: String, _ contacts: String) throws {
    let pane = Pane(name)
    let folder = arguments.data + "/" + name
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    // These two people live as long as this folder; their password is of no use to anybody.
    let password = folder + "/password"
    if !FileManager.default.fileExists(atPath: password) {
      try Data("correct horse \(name)".utf8).write(to: URL(fileURLWithPath: password))
    }
    pane.process.executableURL = Bundle.main.executableURL
    pane.process.arguments = [
      "--pane", "--server", arguments.server ?? "", "--data", folder, "--contacts", contacts, "--email",
      "\(name)@example.com", "--sign-up", "--password-file", password,
    ]
    pane.process.standardInput = pane.input
    pane.process.standardOutput = pane.output
    pane.process.standardError = pane.output
    try pane.process.run()
    let index = panes.count
    panes.append(pane)
    let lines = Terminal.lines(from: pane.output.fileHandleForReading.fileDescriptor)
    Task {
      for await line in lines { heard(line, in: index) }
      heard("(ended)", in: index)
    }
  }

  /// When both are there, each opens the chat with the other.
  private func introduce(_ path: String) async throws {
    let contacts = Contacts(path: path)
    while !panes.allSatisfy({ contacts.user($0.name) != nil }) {
      try await Task.sleep(for: .milliseconds(100))
    }
    panes[0].send("/dm ben")
    panes[1].send("/dm anna")
    for pane in panes {
      pane.lines.append("Tab goes to the other side, Control-C ends, /help lists the commands")
    }
    draw()
  }

  private func heard(_ line: String, in index: Int) {
    let pane = panes[index]
    if line.first == PlainDisplay.statusMark {
      pane.status = line.dropFirst().split(separator: "\u{2}", omittingEmptySubsequences: false).map {
        safe(String($0))
      }
    } else {
      pane.lines.append(safe(line))
      if pane.lines.count > 2_000 { pane.lines.removeFirst(500) }
    }
    draw()
  }

  /// False when it shall end.
  private func take(_ byte: UInt8) -> Bool {
    let pane = panes[focus]
    switch pane.editor.take(byte) {
    case .line(let line):
      pane.scrolled = 0
      tell(false, pane)
      if line == "/quit" { return false }
      if !line.isEmpty { pane.send(line) }
    case .tab:
      tell(false, pane)
      focus = 1 - focus
    case .end: return false
    case .changed: tell(!pane.editor.text.isEmpty && !pane.editor.text.hasPrefix("/"), pane)
    case .pageUp: pane.scrolled += 10
    case .pageDown: pane.scrolled = max(0, pane.scrolled - 10)
    case .nothing: break
    }
    return true
  }

  private func tell(_ isTyping: Bool, _ pane: Pane) {
    // Again and again while it goes on: the SDK throttles it.
    guard isTyping || pane.isTyping else { return }
    pane.isTyping = isTyping
    pane.send("\(PlainDisplay.statusMark)\(isTyping ? "typing" : "silent")")
  }

  private func draw() {
    let size = terminal.size
    let width = max(10, (size.columns - 1) / 2)
    var text = "\u{1B}[?25l"
    var cursor = (row: 1, column: 1)
    for (index, pane) in panes.enumerated() {
      let left = index * (width + 1) + 1
      let height = max(1, size.rows - 1 - pane.status.count)
      var rows: [String] = []
      for line in pane.lines.suffix(height + pane.scrolled + 50) { rows += wrap(line, to: width) }
      pane.scrolled = min(pane.scrolled, max(0, rows.count - height))
      rows = Array(rows.dropLast(pane.scrolled).suffix(height))
      rows += [String](repeating: "", count: height - rows.count)
      for (row, line) in (rows + pane.status).enumerated() {
        let isStatus = row == height + pane.status.count - 1
        let shown = cut(line, to: width)
        let padded = shown + String(repeating: " ", count: max(0, width - columns(shown)))
        let colour = isStatus ? index == focus ? "\u{1B}[7m" : "\u{1B}[2;7m" : ""
        text += "\u{1B}[\(row + 1);\(left)H" + colour + padded + "\u{1B}[0m"
      }
      let window = pane.editor.window(width - 3)
      let input = "> " + window.text
      text +=
        "\u{1B}[\(size.rows);\(left)H" + input + String(repeating: " ", count: max(0, width - columns(input)))
      if index == focus { cursor = (size.rows, left + 2 + window.column) }
      if index == 0 {
        for row in 1...max(1, size.rows) { text += "\u{1B}[\(row);\(width + 1)H│" }
      }
    }
    terminal.write(text + "\u{1B}[\(cursor.row);\(cursor.column)H\u{1B}[?25h")
  }
}
