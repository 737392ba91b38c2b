import Glibc
import PalbeEventLoop
import PalbeWire
import Synchronization

/// The server's log: one line per event, in UTC, as `time level message key=value …` or as a JSON object.
///
/// Nothing secret comes here: no token, no key, no session description. A value is quoted and escaped when it
/// holds anything but plain characters, so that an identity cannot forge a line. A reader that does not read
/// (a full pipe) loses lines instead of holding up the server.
public final class ServerLog: Sendable {
  /// What is written: this level and those after it.
  public enum Level: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning

    /// By severity.
    public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

    /// "debug", "info", "warning".
    public var name: String {
      switch self {
      case .debug: "debug"
      case .info: "info"
      case .warning: "warning"
      }
    }

    /// From its name; nil for another one.
    public init?(name: String) {
      guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
      self = level
    }
  }

  /// A line is cut here: a pipe takes this much at once.
  private static let lineByteLimit = 4_000
  private static let valueByteLimit = 300
  /// Fields that are numbers, as which JSON has them. By name and not by look: what a client chooses may look like one, and a
  /// field whose type changes from line to line cannot be searched.
  private static let numberNames: Set<String> = [
    "attempt", "blobs", "bytes", "count", "dropped", "expires_unix", "ms", "open", "participants", "pauses",
    "port",
    "seconds", "status", "worker", "workers",
  ]

  /// How a line is written.
  public enum Format: Sendable, CaseIterable {
    /// `time level message key=value …`, for people and for tools that read logfmt.
    case text
    /// `{"time":…,"level":…,"message":…,"key":"value","count":7,…}`
    case json
  }

  private let threshold: Atomic<Int>
  private let format: Format
  private let descriptor: Int32
  /// Lines that nobody read.
  private let lost = Mutex(0)

  /// Writes lines of at least `level` to `descriptor`, by default standard error.
  public init(level: Level, format: Format = .text, descriptor: Int32 = STDERR_FILENO) {
    threshold = Atomic(level.rawValue)
    self.format = format
    self.descriptor = descriptor
  }

  /// From now on writes lines of at least `level`.
  public func setLevel(_ level: Level) { threshold.store(level.rawValue, ordering: .relaxed) }

  /// What is written now.
  public var level: Level { Level(rawValue: threshold.load(ordering: .relaxed)) ?? .info }

  /// Writes one line, if its level is high enough.
  public func write(
    _ level: Level, _ message: String, _ fields: @autoclosure () -> [(name: String, value: String)] = []
  ) {
    guard level.rawValue >= threshold.load(ordering: .relaxed) else { return }
    let line = self.line(level, message, fields())
    lost.withLock { lost in
      if lost > 0,
        put(self.line(.warning, "log lines lost", [("count", "\(lost)")]))
      {
        lost = 0
      }
      if !put(line) { lost += 1 }
    }
  }

  /// False when the reader does not keep up.
  private func put(_ line: [UInt8]) -> Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    guard poll(&ready, 1, 0) == 1 else { return false }
    return Glibc.write(descriptor, line, line.count) == line.count
  }

  private func line(
    _ level: Level, _ message: String, _ fields: [(name: String, value: String)]
  ) -> [UInt8] {
    let now = WallClock.unixNanoseconds() / 1_000_000
    switch format {
    case .text: return Self.line(level, message, fields, unixMilliseconds: now)
    case .json: return Self.object(level, message, fields, unixMilliseconds: now)
    }
  }

  static func object(
    _ level: Level, _ message: String, _ fields: [(name: String, value: String)], unixMilliseconds: Int64
  ) -> [UInt8] {
    var writer = JSONWriter()
    writer.beginObject()
    let head = [("time", timestamp(unixMilliseconds)), ("level", level.name), ("message", message)]
    for (name, value) in head {
      writer.key(name)
      writer.string(value)
    }
    for field in fields where writer.bytes.count < lineByteLimit - 2 * valueByteLimit {
      writer.key(field.name)
      if numberNames.contains(field.name), let number = Int64(field.value), "\(number)" == field.value {
        writer.integer(number)
        continue
      }
      writer.string(field.value.utf8.count <= valueByteLimit ? field.value : cut(field.value))
    }
    writer.endObject()
    return writer.bytes + [UInt8(ascii: "\n")]
  }

  private static func cut(_ value: String) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      guard text.utf8.count < valueByteLimit else { break }
      text.unicodeScalars.append(scalar)
    }
    return text + "…"
  }

  static func line(
    _ level: Level, _ message: String, _ fields: [(name: String, value: String)], unixMilliseconds: Int64
  ) -> [UInt8] {
    var text = "\(timestamp(unixMilliseconds)) \(level.name) \(message)"
    for field in fields { text += " \(field.name)=\(quoted(field.value))" }
    return Array(text.utf8.prefix(lineByteLimit)) + [UInt8(ascii: "\n")]
  }

  private static func timestamp(_ unixMilliseconds: Int64) -> String {
    var seconds = time_t(unixMilliseconds / 1_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ value: Int32, _ count: Int) -> String {
      let text = String(value)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let day = "\(digits(parts.tm_year + 1_900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
    let time = "\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))"
    return "\(day)T\(time).\(digits(Int32(unixMilliseconds % 1_000), 3))Z"
  }

  /// The value itself when it is plain, else in quotes with everything unusual escaped.
  private static func quoted(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x3d && $0 != 0x5c }
    if isPlain, !value.isEmpty, value.utf8.count <= valueByteLimit { return value }
    var text = "\""
    for scalar in value.unicodeScalars {
      guard text.utf8.count < valueByteLimit else {
        text += "…"
        break
      }
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
        text += "\\u{\(String(scalar.value, radix: 16))}"
      default:
        if scalar == "\"" || scalar == "\\" { text += "\\" }
        text.unicodeScalars.append(scalar)
      }
    }
    return text + "\""
  }
}
