import Foundation

/// A folder of one test, gone when the test ends.
public final class TemporaryFolder {
  /// Where it is.
  public let url: URL

  /// A folder with a name of its own.
  public init() throws {
    url = FileManager.default.temporaryDirectory.appendingPathComponent("palbe-\(UUID().uuidString)")
    // As private as what is kept in one is to be.
    try FileManager.default.createDirectory(
      at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  deinit { try? FileManager.default.removeItem(at: url) }

  /// The path of a file in it.
  public func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// The bytes of every file in it.
  public func dump() throws -> [[UInt8]] {
    try FileManager.default.contentsOfDirectory(atPath: url.path).map {
      [UInt8](try Data(contentsOf: url.appendingPathComponent($0)))
    }
  }
}
