import Foundation
import PalbeServerClient
import PalbeTestKit
import Testing

@testable import PalbeBackendServer

@Suite("palbe-server at a shell", .enabled(if: ToolProcess.executable("palbe-server") != nil))
struct ServerToolTests {
  private func start(_ folder: String, _ more: [String] = []) throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess.serving(folder, more)
    return (process, try process.readPort())
  }

  @Test("serve, backup, a second server, check, SIGHUP, SIGTERM")
  func life() throws {
    let folder = try TemporaryFolder()
    let data = folder.path("data")
    let config = folder.path("server.yaml")
    try Data("logging: {level: info}\n".utf8).write(to: URL(fileURLWithPath: config))
    let (process, port) = try start(data, ["--config", config])
    #expect(try HTTPConnection(port: port).send("GET", "/v1/ready").status == 204)
    let second = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", data, "--port", "0"])
    #expect(second.code == 2 && second.errors.contains("another server uses"))
    let busy = try ToolProcess.run("palbe-server", ["check", "--data", data])
    #expect(busy.code == 1 && busy.errors.contains("another server uses"))
    let target = folder.path("copy")
    let backup = try ToolProcess.run("palbe-server", ["backup", "--data", data, "--to", target])
    #expect(backup.code == 0, "\(backup)")
    let check = try ToolProcess.run("palbe-server", ["check", "--data", target])
    #expect(check.code == 0 && check.output == "the data is as it has to be\n", "\(check)")
    try Data("logging: {level: debug}\nport: 1\nlimit: {message_size: 1KiB}\n".utf8).write(
      to: URL(fileURLWithPath: config))
    process.terminate(with: SIGHUP)
    // A line of debugging shows that it was read.
    let http = HTTPConnection(port: port)
    for _ in 0..<50 { _ = try http.send("GET", "/v1/ready") }
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0)
    #expect(end.errors.contains("configuration reloaded keys=limit.message_size,logging.level"))
    #expect(end.errors.contains("stopping signal=terminate"))
  }

  @Test("config shows what would run, and refuses what is wrong; misuse is exit 2")
  func config() throws {
    let shown = try ToolProcess.run(
      "palbe-server", ["config", "--dev", "--prometheus-password", "secret", "--prometheus-username", "a"])
    #expect(
      shown.code == 0 && shown.output.contains("development: true  # --dev")
        && !shown.output.contains("secret"))
    for arguments in [
      ["config", "--port", "x"], ["serve"], ["backup", "--data", "/nonexistent"], ["check"], ["none"],
    ] {
      let result = try ToolProcess.run("palbe-server", arguments)
      #expect(result.code == 2 && result.errors.hasPrefix("palbe-server: "), "\(arguments): \(result)")
    }
    #expect(try ToolProcess.run("palbe-server", ["completion", "bash"]).output.contains("--reserved-space"))
  }
}
