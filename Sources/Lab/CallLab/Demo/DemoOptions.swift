import Foundation
import Glibc

/// What `palbe-call demo` was asked to do.
public struct DemoOptions: Sendable {
  /// Seconds for which the call is measured, 3 to 600.
  public var seconds = 10
  /// The `palbe-sfu` to start; nil for the one beside the running program.
  public var sfuPath: String?
  /// Where the report goes as JSON; nil for nowhere.
  public var reportPath: String?
  /// How many set-ups are timed, the call's own included, 1 to 50; their median is reported.
  public var setupRuns = 1

  /// The usual demo: ten seconds, one set-up, no report file.
  public init() {}

  /// What cannot be done as asked, found before anything is started. Its description is one line for a person.
  struct Misuse: Error, Equatable, CustomStringConvertible {
    var description: String
  }

  /// The SFU's program, after everything was checked that can be checked beforehand.
  func checkedSFUPath() throws(Misuse) -> String {
    guard (3...600).contains(seconds) else {
      throw Misuse(description: "a demo lasts 3 to 600 seconds, not \(seconds)")
    }
    guard (1...50).contains(setupRuns) else {
      throw Misuse(description: "1 to 50 set-ups can be timed, not \(setupRuns)")
    }
    let path = sfuPath ?? Self.programBesideThisOne("palbe-sfu")
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw Misuse(
        description: "palbe-sfu is not at \(path); build it with "
          + "'swift build -c release --product palbe-sfu', or pass --sfu PATH")
    }
    var isFolder = ObjCBool(false)
    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard !isFolder.boolValue else {
      throw Misuse(description: "palbe-sfu must be a program, and this is a folder: \(path)")
    }
    return path
  }

  /// The report's file, opened for writing so that a call is not placed for nothing; nil when none was asked for.
  func openReport() throws(Misuse) -> ReportFile? {
    guard let reportPath else { return nil }
    guard !reportPath.isEmpty else { throw Misuse(description: "the report's path is empty") }
    do {
      return try ReportFile(reportPath)
    } catch {
      throw Misuse(description: "the report cannot be written: \(error)")
    }
  }

  private static func programBesideThisOne(_ name: String) -> String {
    let own =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(name).path
  }
}

/// The file for a report, open from before the call until the report is in it.
///
/// A file that exists keeps what it holds until then; one that was made for the report goes when there is none.
struct ReportFile: ~Copyable {
  /// What the system said.
  struct SystemError: Error, CustomStringConvertible {
    var path: String
    var errno: Int32
    var description: String { "\(path) (\(String(cString: strerror(errno))))" }
  }

  private let path: String
  private let descriptor: Int32
  private let wasMade: Bool

  /// Opens or makes the file.
  init(_ path: String) throws(SystemError) {
    // Without O_NONBLOCK a pipe that nobody reads would be waited for here.
    let flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK
    var descriptor = Glibc.open(path, flags)
    let isMissing = descriptor < 0 && errno == ENOENT
    if isMissing { descriptor = Glibc.open(path, flags | O_CREAT, 0o666) }
    guard descriptor >= 0 else { throw SystemError(path: path, errno: errno) }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
    self.path = path
    self.descriptor = descriptor
    wasMade = isMissing
  }

  deinit { close(descriptor) }

  /// Replaces what the file holds; removes the file when that fails and it was made for the report.
  consuming func write(_ data: Data) throws(SystemError) {
    // Fails for what has no length, such as a pipe; there is nothing to shorten then.
    _ = ftruncate(descriptor, 0)
    var rest = Array(data)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count < 0 {
        guard errno != EINTR else { continue }
        let error = SystemError(path: path, errno: errno)
        discard()
        throw error
      }
      rest = rest.dropFirst(count)
    }
  }

  /// Removes the file when it was made for the report.
  consuming func discard() {
    // Only the file that was opened: the name may be somebody else's by now.
    guard wasMade, let real = realpath(path, nil) else { return }
    defer { free(real) }
    var (opened, named) = (stat(), stat())
    guard fstat(descriptor, &opened) == 0, lstat(real, &named) == 0, opened.st_ino == named.st_ino,
      opened.st_dev == named.st_dev
    else { return }
    unlink(real)
  }
}
