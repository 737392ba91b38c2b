import Foundation
import Glibc
import PalbeTestKit
import Synchronization

/// A run of the built `palbe-sfu`, which lies beside the test bundle. Never outlives the test.
final class ToolProcess {
  let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  /// Where SwiftPM puts products: the folder of the test executable.
  static let executable: URL? = {
    let link = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    let candidates =
      [link.deletingLastPathComponent()]
      + CommandLine.arguments.map { URL(fileURLWithPath: $0).deletingLastPathComponent() }
      + ["debug", "release"].map { Vectors.projectRoot.appendingPathComponent(".build/\($0)") }
    return candidates.map { $0.appendingPathComponent("palbe-sfu") }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }()

  init(_ arguments: [String]) throws {
    process.executableURL = Self.executable
    process.arguments = arguments
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// One line of standard output, without its end.
  func readLine() -> String {
    var line = [UInt8]()
    while let byte = try? output.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0a {
      line.append(byte)
    }
    return String(decoding: line, as: UTF8.self)
  }

  func terminate(with signal: Int32 = SIGTERM) { kill(process.processIdentifier, signal) }

  /// Waits for the end: exit code, and what came on both streams.
  func finish() -> (code: Int32, output: String, errors: String) {
    let told = (try? errors.fileHandleForReading.readToEnd()) ?? Data()
    let printed = (try? output.fileHandleForReading.readToEnd()) ?? Data()
    process.waitUntilExit()
    return (
      process.terminationStatus, String(decoding: printed, as: UTF8.self),
      String(decoding: told, as: UTF8.self)
    )
  }

  /// Runs to the end.
  static func run(_ arguments: String...) throws -> (code: Int32, output: String, errors: String) {
    try ToolProcess(arguments).finish()
  }
}
