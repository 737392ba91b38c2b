import Foundation
import Glibc
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
    #expect(busy.code == 3 && busy.errors.contains("check a backup of it"))
    let target = folder.path("copy")
    let backup = try ToolProcess.run("palbe-server", ["backup", "--data", data, "--to", target])
    #expect(backup.code == 0 && backup.output.hasPrefix("wrote \(target), "), "\(backup)")
    let inside = try ToolProcess.run(
      "palbe-server", ["backup", "--data", data, "--to", data + "/blobs/copy"])
    #expect(inside.code == 1 && inside.errors.contains("is inside the data folder"), "\(inside)")
    let nowhere = try ToolProcess.run(
      "palbe-server", ["backup", "--data", data, "--to", "/nonexistent/copy"])
    #expect(nowhere.code == 1 && nowhere.errors.contains("the server that runs writes"), "\(nowhere)")
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

  @Test("A start that is refused leaves no folder behind, and says where it could not listen")
  func refusedStart() throws {
    let folder = try TemporaryFolder()
    let (process, port) = try start(folder.path("data"))
    let other = folder.path("other")
    for (arguments, words) in [
      (["--port", "\(port)"], "port \(port) is in use"),
      (["--port", "1\(port % 10_000)", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1"),
    ] {
      let end = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", other] + arguments)
      #expect(end.code == 2 && end.errors.contains(words) && end.errors.contains("--host"), "\(end)")
      #expect(!FileManager.default.fileExists(atPath: other))
    }
    process.terminate()
    _ = process.finish()
  }

  @Test(
    "check tells a folder that lacks its messages from one that holds nothing, and leaves both as they are")
  func incomplete() throws {
    let folder = try TemporaryFolder()
    let data = folder.path("data")
    let (process, _) = try start(data)
    process.terminate()
    _ = process.finish()
    try FileManager.default.removeItem(atPath: data + "/messages.sqlite")
    let end = try ToolProcess.run("palbe-server", ["check", "--data", data])
    #expect(end.code == 1 && end.output.contains("messages.sqlite is missing"), "\(end)")
    let backup = try ToolProcess.run("palbe-server", ["backup", "--data", data, "--to", folder.path("copy")])
    #expect(backup.code == 1 && backup.errors.contains("messages.sqlite is missing"), "\(backup)")
    let none = try ToolProcess.run("palbe-server", ["check", "--data", folder.path("none")])
    #expect(none.code == 2 && none.errors.contains("holds no data"), "\(none)")
    #expect(!FileManager.default.fileExists(atPath: folder.path("none")))
  }

  @Test("Bug: a configuration that is a pipe was waited for without end")
  func pipe() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    try expectMisuse(["serve", "--config", path], says: "it is no file; expected a regular one")
  }

  @Test(
    "Bug: a write-ahead log that somebody deleted after a crash took what was acknowledged with it, without a word"
  )
  func lostLog() throws {
    let folder = try TemporaryFolder()
    let data = folder.path("data")
    let arguments = ["serve", "--dev", "--data", data, "--port", "0"]
    var users = 0
    func crash() throws {
      users += 1
      let (process, port) = try start(data)
      let anna = try ServerClient.signedIn(
        port: port, "user\(users)@example.org", "correct horse", seed: UInt64(users))
      _ = try anna.found(with: [])
      process.terminate(with: SIGKILL)
      _ = process.finish()
    }
    try crash()
    // A start that does not get far, a check and a backup merge the log; that is no loss.
    let failing = try ToolProcess.run("palbe-server", arguments + ["--host", "192.0.2.77"])
    #expect(failing.code == 2, "\(failing)")
    for look in 0..<3 {
      if look == 1 { #expect(try ToolProcess.run("palbe-server", ["check", "--data", data]).code == 0) }
      if look == 2 {
        let backup = try ToolProcess.run(
          "palbe-server", ["backup", "--data", data, "--to", folder.path("copy")])
        #expect(backup.code == 0, "\(backup)")
      }
      try crash()
    }
    for name in ["messages.sqlite-wal", "accounts.sqlite-wal"] {
      #expect(unlink("\(data)/\(name)") == 0)
      let refused = try ToolProcess.run("palbe-server", arguments)
      #expect(refused.code != 0 && refused.errors.contains("\(name) is gone"), "\(refused)")
      #expect(refused.errors.filter(\.isNewline).count == 1)
      let backup = try ToolProcess.run(
        "palbe-server", ["backup", "--data", data, "--to", folder.path("no")])
      #expect(backup.code != 0 && backup.errors.contains("\(name) is gone"), "\(backup)")
      for _ in 0..<2 {
        let check = try ToolProcess.run("palbe-server", ["check", "--data", data])
        #expect(check.code != 0 && (check.output + check.errors).contains("\(name) is gone"), "\(check)")
      }
      #expect(unlink(data + "/lock") == 0)
      try crash()
    }
    // Who ends by himself leaves nothing behind that could be missing.
    let (process, _) = try start(data)
    process.terminate()
    #expect(process.finish().code == 0)
    #expect(access(data + "/messages.sqlite-wal", F_OK) != 0)
    #expect(try ToolProcess.run("palbe-server", ["check", "--data", data]).code == 0)
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
      try expectMisuse(arguments)
    }
    // What serve would refuse, config refuses too: it stands before it in the unit.
    for (arguments, words) in [
      ([], "no folder for the data"),
      (["--data", "/x", "--push-command", "/nonexistent"], "is not a program"),
      (["--data", "/x", "--tls-cert", "/nonexistent"], "cannot read '/nonexistent'"),
      (
        ["--dev", "--identity-issuer", "a", "--identity-audience", "b", "--identity-keys", "/nonexistent"],
        "/nonexistent"
      ),
    ] {
      let end = try ToolProcess.run("palbe-server", ["config"] + arguments)
      #expect(end.code == 2 && end.errors.contains(words), "\(end)")
    }
    #expect(try ToolProcess.run("palbe-server", ["completion", "bash"]).output.contains("--reserved-space"))
  }

  /// One line on standard error, whatever is in it, and exit 2.
  private func expectMisuse(_ arguments: [String], says words: String = "") throws {
    let result = try ToolProcess.run("palbe-server", arguments)
    #expect(result.code == 2 && result.output.isEmpty, "\(arguments): \(result)")
    #expect(
      result.errors.hasPrefix("palbe-server: ") && (words.isEmpty || result.errors.contains(words)),
      "\(result)")
    #expect(result.errors.dropLast().allSatisfy { !$0.isNewline && $0 != "\u{1b}" }, "\(result)")
    #expect(result.errors.last == "\n")
  }

  @Test("Bug: a line break or ESC in an option, a value, a path or a file's key was printed as it is")
  func oneLine() throws {
    let folder = try TemporaryFolder()
    try expectMisuse(["serve", "--po\nrt\u{1b}[31m", "1"], says: #"'--po\u{A}rt\u{1B}[31m'"#)
    try expectMisuse(["serve", "--port", "1\n2"], says: #"'1\u{A}2'"#)
    try expectMisuse(["serve", "--config", "/none\nthere"], says: #"'/none\u{A}there'"#)
    let config = folder.path("server.yaml")
    try Data("\"po\\e[31m\\nrt\": 1\n".utf8).write(to: URL(fileURLWithPath: config))
    try expectMisuse(["config", "--config", config], says: #"unknown key 'po\u{1B}[31m\u{A}rt'"#)
    try expectMisuse(["serve", "--port", "0", "--data", "/dev/null/a\nb"], says: #"/dev/null/a\u{A}b"#)
  }

  @Test(
    "Bug: a program for pushes or a file of keys that is not there was found out when somebody needed it; keys of TLS without each other"
  )
  func startRefused() throws {
    let folder = try TemporaryFolder()
    let serve = ["serve", "--dev", "--data", folder.path("data"), "--port", "0"]
    let identity = ["--identity-issuer", "a", "--identity-audience", "b", "--identity-keys"]
    let file = folder.path("file")
    try Data("{}".utf8).write(to: URL(fileURLWithPath: file))
    try expectMisuse(serve + ["--push-command", "/nope/x"], says: "'/nope/x' for pushes is not a program")
    try expectMisuse(serve + ["--push-file", folder.url.path], says: "cannot append pushes to")
    try expectMisuse(serve + identity + ["/nope"], says: "in '/nope': No such file or directory")
    try expectMisuse(serve + identity + [file], says: "not a JSON web key set")
    try expectMisuse(serve + ["--tls-key", file], says: "'tls.key_file' needs 'tls.cert_file'")
    // Nothing was made for a server that does not start.
    #expect(!FileManager.default.fileExists(atPath: folder.path("data/messages.sqlite")))
    let certificate = folder.path("cert.pem")
    try Data(TestCertificates.first.utf8).write(to: URL(fileURLWithPath: certificate))
    try expectMisuse(serve + ["--tls-cert", certificate], says: certificate)
  }

  @Test(
    "Bug: without a descriptor left the server took a whole processor and said nothing; it pauses, and goes on"
  )
  func descriptors() throws {
    let folder = try TemporaryFolder()
    let process = try ToolProcess(
      "palbe-server", ["serve", "--dev", "--data", folder.path("data"), "--port", "0"], descriptorLimit: 64)
    let port = try process.readPort()
    let kept = HTTPConnection(port: port)
    #expect(try kept.send("GET", "/v1/ready").status == 204)
    // The kernel takes them, the server cannot.
    let idle = try (0..<80).map { _ in try IdleConnection(port: port) }
    for _ in 0..<20 { #expect(try kept.send("GET", "/v1/ready").status == 204) }
    for connection in idle { connection.end() }
    #expect(try HTTPConnection(port: port).send("GET", "/v1/ready").status == 204)
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0)
    let lines = end.errors.split(separator: "\n").filter { $0.contains("connections cannot be taken") }
    #expect(lines.count == 1, "\(end.errors)")
    #expect(
      lines.first?.contains(#"warning connections cannot be taken reason="Too many open files" pauses=1"#)
        == true)
  }
}

/// A TCP connection that sends nothing.
private final class IdleConnection {
  private var descriptor: Int32

  init(port: UInt16) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(result == 0)
  }

  func end() {
    close(descriptor)
    descriptor = -1
  }

  deinit { if descriptor >= 0 { close(descriptor) } }
}
