import Glibc

/// Where settings come from on this host.
public enum SettingsFiles {
  private static let byteLimit = 1 << 20

  /// This process's variables.
  public static func environment() -> [String: String] {
    var found: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      entry += 1
      let pair = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if pair.count == 2 { found[String(pair[0])] = String(pair[1]) }
    }
    return found
  }

  /// A file's bytes. One with keys must not be for everybody to read. A pipe or a device is refused: nobody may ever write to it,
  /// and a reload could not read it again.
  public static func contents(of path: String, isPrivate: Bool) throws(SettingsError) -> [UInt8] {
    func failure(_ reason: String) -> SettingsError { SettingsError("cannot read '\(path)': \(reason)") }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { throw failure(String(cString: strerror(errno))) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failure(String(cString: strerror(errno))) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw failure("it is no file; expected a regular one") }
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
