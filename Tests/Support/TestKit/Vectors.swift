import Foundation

/// Test vectors that lie beside the project, and the project's own golden vectors.
public enum Vectors {
  /// `PALBE_VECTORS`, else `../shared/vectors` beside the project; nil where neither exists.
  public static let directory: URL? = {
    let environment = ProcessInfo.processInfo.environment["PALBE_VECTORS"]
    let url =
      environment.map { URL(fileURLWithPath: $0, isDirectory: true) }
      ?? projectRoot.deletingLastPathComponent().appendingPathComponent("shared/vectors", isDirectory: true)
    return FileManager.default.fileExists(atPath: url.path) ? url : nil
  }()

  /// The folder that holds `Package.swift`.
  public static let projectRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// True when a file such as `mls/tree-math.json` can be read. For `.enabled(if:)`, so that a skip is reported.
  public static func has(_ path: String) -> Bool {
    guard let directory else { return false }
    return FileManager.default.fileExists(atPath: directory.appendingPathComponent(path).path)
  }

  /// Decodes a vector file.
  public static func load<T: Decodable>(_ path: String, as type: T.Type = T.self) throws -> T {
    guard let directory else { throw CocoaError(.fileNoSuchFile) }
    return try JSONDecoder().decode(T.self, from: Data(contentsOf: directory.appendingPathComponent(path)))
  }

  /// Reads a golden file of the project's own, a path below the project root.
  public static func golden(_ path: String) throws -> Data {
    try Data(contentsOf: projectRoot.appendingPathComponent(path))
  }

  /// Decodes a golden JSON file of the project's own, a path below the project root.
  public static func goldenJSON<T: Decodable>(_ path: String, as type: T.Type = T.self) throws -> T {
    try JSONDecoder().decode(T.self, from: golden(path))
  }
}
