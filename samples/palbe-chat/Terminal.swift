import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// The terminal of this process, key by key.
final class Terminal {
  private var before = termios()
  private var isRaw = false

  static var isInteractive: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 }

  /// Takes keys one by one, unseen, until `restore`.
  init() {
    guard tcgetattr(STDIN_FILENO, &before) == 0 else { return }
    var raw = before
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO | ISIG | IEXTEN)
    raw.c_iflag &= ~tcflag_t(IXON | ICRNL | INLCR)
    isRaw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0
  }

  func restore() {
    guard isRaw else { return }
    isRaw = false
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before)
  }

  func write(_ text: String) { FileHandle.standardOutput.write(Data(text.utf8)) }

  var size: (columns: Int, rows: Int) {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else {
      return (80, 24)
    }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// What is typed, as it comes, until the input ends. A thread of its own waits for it.
  static func bytes(from descriptor: Int32) -> AsyncStream<[UInt8]> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
          let count = read(descriptor, &buffer, buffer.count)
          if count < 0, errno == EINTR { continue }
          guard count > 0 else { break }
          continuation.yield(Array(buffer[..<count]))
        }
        continuation.finish()
      }
    }
  }

  /// Whole lines of a descriptor.
  static func lines(from descriptor: Int32) -> AsyncStream<String> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        guard let file = fdopen(dup(descriptor), "r") else { return continuation.finish() }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        while case let count = getline(&line, &capacity, file), count >= 0, let start = line {
          let bytes = UnsafeBufferPointer(start: start, count: count).map { UInt8(bitPattern: $0) }
          var text = String(decoding: bytes, as: UTF8.self)
          if text.hasSuffix("\n") { text.removeLast() }
          continuation.yield(text)
        }
        free(line)
        fclose(file)
        continuation.finish()
      }
    }
  }
}
