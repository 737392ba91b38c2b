import Foundation
import PalbeMessaging

/// Takes what is typed, at a terminal or over a pipe, and does one command after the other while news come in.
@MainActor
enum Conversation {
  /// At a terminal, key by key.
  static func atTerminal(_ arguments: Arguments) async throws -> Int32 {
    let terminal = Terminal()
    let display = TerminalDisplay(terminal)
    let session = Session(arguments, display: display, saysAll: false)
    defer { session.end() }
    let resized = signals(SIGWINCH) { display.redraw() }
    defer { resized.cancel() }
    // What the SDK logs goes to standard error, which is the same screen.
    let log = Pipe()
    let errors = dup(STDERR_FILENO)
    dup2(log.fileHandleForWriting.fileDescriptor, STDERR_FILENO)
    defer { dup2(errors, STDERR_FILENO) }
    let logged = Terminal.lines(from: log.fileHandleForReading.fileDescriptor)
    Task { for await line in logged { display.show(safe(line)) } }
    display.show("palbe-chat: /help lists the commands, Control-D ends")
    session.passwordSource = { await display.ask($0) }
    Task { await attempt(session) { try await session.begin() } }
    var typing = Typing(session)
    for await bytes in Terminal.bytes(from: STDIN_FILENO) {
      for byte in bytes {
        switch display.take(byte) {
        case .line(let line):
          typing.stop()
          if !line.isEmpty, await !run(line, session) { return 0 }
        case .changed: typing.changed(display.editor.text)
        case .tab: break
        case .end: return 0
        default: break
        }
      }
    }
    return 0
  }

  /// Whole lines on standard input. The split view's panes also get whether the person types.
  static func overPipes(_ arguments: Arguments) async throws -> Int32 {
    let session = Session(
      arguments, display: PlainDisplay(tellsStatus: arguments.isPane), saysAll: !arguments.isPane)
    defer { session.end() }
    await attempt(session) { try await session.begin() }
    for await line in Terminal.lines(from: STDIN_FILENO) {
      if arguments.isPane, line.first == PlainDisplay.statusMark {
        session.open?.chat.setTyping(line.hasSuffix("typing"))
      } else if !line.isEmpty, await !run(line, session) {
        return 0
      }
    }
    return 0
  }

  /// False when the program shall end.
  private static func run(_ line: String, _ session: Session) async -> Bool {
    do {
      let command = try Command(line)
      if case .quit = command { return false }
      // A transfer takes long; what is typed meanwhile does not wait for it.
      switch command {
      case .image, .file, .voice, .video, .download, .say, .reply, .expiring, .custom, .signIn, .signUp:
        Task { await attempt(session) { try await session.run(command) } }
      default: await attempt(session) { try await session.run(command) }
      }
    } catch { session.show("! \(Wording.failure(error))") }
    return true
  }

  private static func attempt(_ session: Session, _ body: () async throws -> Void) async {
    do { try await body() } catch { session.show("! \(Wording.failure(error))") }
  }

  private static func signals(_ number: Int32, _ body: @escaping @MainActor () -> Void)
    -> any DispatchSourceSignal
  {
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number, queue: .main)
    source.setEventHandler { @Sendable in Task { @MainActor in body() } }
    source.resume()
    return source
  }
}

/// Tells the open chat that somebody types, and that they stopped.
@MainActor
struct Typing {
  private let session: Session
  init(_ session: Session) { self.session = session }

  mutating func changed(_ text: String) {
    session.open?.chat.setTyping(!text.isEmpty && !text.hasPrefix("/"))
  }

  mutating func stop() { session.open?.chat.setTyping(false) }
}
