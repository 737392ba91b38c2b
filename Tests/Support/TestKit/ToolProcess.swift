import Foundation
import Glibc

/// A run of one of the built tools, which lie beside the test bundle. Never outlives the test.
public final class ToolProcess {
  private let process = Process()
  private let output = Pipe()
  private let errors = Pipe()

  /// How a run ended.
  public struct Result: Equatable, Sendable {
    public let code: Int32
    public let output: String
    public let errors: String

    public init(code: Int32, output: String, errors: String) {
      self.code = code
      self.output = output
      self.errors = errors
    }
  }

  /// Where SwiftPM puts a product: the folder of the test executable; nil when it is not built.
  public static func executable(_ tool: String) -> URL? {
    let link = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    let candidates =
      [link.deletingLastPathComponent()]
      + CommandLine.arguments.map { URL(fileURLWithPath: $0).deletingLastPathComponent() }
      + ["debug", "release"].map { Vectors.projectRoot.appendingPathComponent(".build/\($0)") }
    return candidates.map { $0.appendingPathComponent(tool) }
      .first { FileManager.default.isExecutableFile(atPath: $0.path) }
  }

  /// Starts a tool such as "palbe-sfu".
  /// - Parameters:
  ///   - descriptorLimit: how many descriptors it may have (RLIMIT_NOFILE).
  ///   - fileByteLimit: no file may grow beyond it (RLIMIT_FSIZE): like a disk that is full.
  ///   - disk: a folder that is there, on which it finds a disk of its own of so many bytes; others reach that by `path(inside:)`.
  ///     Needs `canMountDisks`.
  ///   - environment: variables besides those of the test.
  public init(
    _ tool: String, _ arguments: [String], fileByteLimit: Int? = nil, descriptorLimit: Int? = nil,
    disk: (folder: String, byteCount: Int)? = nil, environment: [String: String] = [:]
  ) throws {
    guard let executable = Self.executable(tool) else { throw CocoaError(.fileNoSuchFile) }
    process.executableURL = executable
    process.arguments = arguments
    // The shell counts files in blocks of 512 bytes.
    let limits =
      (fileByteLimit.map { ["ulimit -f \($0 / 512)"] } ?? [])
      + (descriptorLimit.map { ["ulimit -n \($0)"] } ?? [])
    if !limits.isEmpty {
      process.executableURL = URL(fileURLWithPath: "/bin/sh")
      process.arguments =
        ["-c", (limits + ["exec \"$0\" \"$@\""]).joined(separator: "; "), executable.path] + arguments
    }
    if let disk {
      process.arguments =
        [
          "-m", "--propagation", "private", "/bin/sh", "-c",
          "mount -t tmpfs -o size=\(disk.byteCount) tmpfs '\(disk.folder)' && exec \"$0\" \"$@\"",
          executable.path,
        ] + arguments
      process.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    }
    if !environment.isEmpty {
      // Through another program: a library that is loaded first may move the environment, by which Swift finds its arguments.
      process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
      process.arguments = [executable.path] + arguments
      process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    }
    process.standardOutput = output
    process.standardError = errors
    process.standardInput = FileHandle.nullDevice
    try process.run()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// One line of standard output, without its end.
  public func readLine() -> String {
    var line = [UInt8]()
    while let byte = try? output.fileHandleForReading.read(upToCount: 1)?.first, byte != 0x0a {
      line.append(byte)
    }
    return String(decoding: line, as: UTF8.self)
  }

  /// The first line was not what a server prints when it listens.
  public struct NoPort: Error, CustomStringConvertible {
    public let line: String
    public var description: String { "no port at the end of: \(line)" }
  }

  /// The port at the end of the line that a server prints when it listens.
  public func readPort() throws -> UInt16 {
    let line = readLine()
    guard let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw NoPort(line: line)
    }
    return port
  }

  /// Whether this process may give another one disks of its own.
  public static let canMountDisks: Bool = {
    let trial = Process()
    trial.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
    trial.arguments = ["-m", "/bin/sh", "-c", "mount -t tmpfs tmpfs /mnt"]
    trial.standardError = FileHandle.nullDevice
    guard (try? trial.run()) != nil else { return false }
    trial.waitUntilExit()
    return trial.terminationStatus == 0
  }()

  /// Where others find what it has at a path.
  public func path(inside path: String) -> String { "/proc/\(processIdentifier)/root" + path }

  /// For looking at it from outside.
  public var processIdentifier: Int32 { process.processIdentifier }

  /// Sends a signal.
  public func terminate(with signal: Int32 = SIGTERM) { kill(process.processIdentifier, signal) }

  /// Waits for the end: exit code, and what came on both streams.
  public func finish() -> Result {
    let told = (try? errors.fileHandleForReading.readToEnd()) ?? Data()
    let printed = (try? output.fileHandleForReading.readToEnd()) ?? Data()
    process.waitUntilExit()
    return Result(
      code: process.terminationStatus, output: String(decoding: printed, as: UTF8.self),
      errors: String(decoding: told, as: UTF8.self))
  }

  /// Runs a tool to its end.
  public static func run(_ tool: String, _ arguments: [String]) throws -> Result {
    try ToolProcess(tool, arguments).finish()
  }
}
