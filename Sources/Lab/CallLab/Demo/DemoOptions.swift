import Foundation

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
    if let reportPath {
      let folder = URL(fileURLWithPath: reportPath).deletingLastPathComponent().path
      var isFolder = ObjCBool(false)
      guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
        throw Misuse(description: "the report's folder does not exist: \(folder)")
      }
      isFolder = false
      let exists = FileManager.default.fileExists(atPath: reportPath, isDirectory: &isFolder)
      guard !isFolder.boolValue, FileManager.default.isWritableFile(atPath: exists ? reportPath : folder)
      else { throw Misuse(description: "the report cannot be written: \(reportPath)") }
    }
    let path = sfuPath ?? Self.programBesideThisOne("palbe-sfu")
    guard FileManager.default.isExecutableFile(atPath: path) else {
      throw Misuse(
        description: "palbe-sfu is not at \(path); build it with "
          + "'swift build -c release --product palbe-sfu', or pass --sfu PATH")
    }
    return path
  }

  private static func programBesideThisOne(_ name: String) -> String {
    let own =
      (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
      ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent(name).path
  }
}
