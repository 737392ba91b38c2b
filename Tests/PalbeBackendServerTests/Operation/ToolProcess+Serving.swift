import PalbeTestKit

extension ToolProcess {
  /// The real server on a free port, which `readPort` tells.
  static func serving(
    _ data: String, _ more: [String] = [], fileByteLimit: Int? = nil,
    disk: (folder: String, byteCount: Int)? = nil, environment: [String: String] = [:]
  ) throws -> ToolProcess {
    try ToolProcess(
      "palbe-server", ["serve", "--dev", "--data", data, "--port", "0"] + more, fileByteLimit: fileByteLimit,
      disk: disk, environment: environment)
  }
}
