import Glibc
import PalbeCommandLine
import PalbeSFUSettings

/// Where settings come from on this host.
enum SettingsFiles {
  private static let byteLimit = 1 << 20

  /// From the command line, this process's environment and files; ends the program where something is wrong.
  static func load(_ arguments: ParsedArguments) -> Settings {
    do throws(SettingsError) { return try read(arguments) } catch { fail(error.description) }
  }

  static func read(_ arguments: ParsedArguments) throws(SettingsError) -> Settings {
    try Settings(options: arguments, environment: environment()) { path, isPrivate throws(SettingsError) in
      try contents(of: path, isPrivate: isPrivate)
    }
  }

  static func environment() -> [String: String] {
    var found: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      entry += 1
      let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if pair.count == 2 { found[String(pair[0])] = String(pair[1]) }
    }
    return found
  }

  /// A file's bytes. One with keys must not be for everybody to read.
  static func contents(of path: String, isPrivate: Bool) throws(SettingsError) -> [UInt8] {
    func failure(_ reason: String) -> SettingsError { SettingsError("cannot read '\(path)': \(reason)") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(String(cString: strerror(errno))) }
    guard !isPrivate || status.st_mode & 0o007 == 0 else {
      throw failure("everybody may; take that away with: chmod o= '\(path)'")
    }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure(String(cString: strerror(errno))) }
      guard count > 0 else { return bytes }
      bytes += buffer[..<count]
      guard bytes.count <= byteLimit else { throw failure("it is larger than \(byteLimit) bytes") }
    }
  }
}
