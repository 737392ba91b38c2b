import Foundation
import Glibc
import PalbeLiveKit
import PalbeProtobuf
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Testing

@_spi(Testing) @testable import PalbeSFUServer

@Suite(
  "palbe-sfu as a process", .timeLimit(.minutes(2)),
  .enabled(if: ToolProcess.executable("palbe-sfu") != nil, "palbe-sfu is not built: skipped"))
struct ToolTests {
  /// The ports of "palbe-sfu 1.0.0 listening: signaling 127.0.0.1:7880, media 127.0.0.1:7882".
  private func listening(_ line: String) -> (signaling: UInt16, media: UInt16)? {
    let words = line.split(separator: " ")
    guard line.hasPrefix("palbe-sfu \(Release.version) listening: signaling 127.0.0.1:"), words.count == 7,
      let signaling = words[4].split(separator: ":").last.flatMap({ UInt16($0.dropLast()) }),
      let media = words[6].split(separator: ":").last.flatMap({ UInt16($0) })
    else { return nil }
    return (signaling, media)
  }

  @Test("--help shows examples, --version the version", arguments: [["--help"], ["serve", "--help"]])
  func help(arguments: [String]) throws {
    let result = try ToolProcess.run("palbe-sfu", arguments)
    #expect(result.code == 0)
    #expect(result.output.contains("palbe-sfu serve --dev"))
    let version = try ToolProcess.run("palbe-sfu", ["--version"])
    #expect(version.code == 0)
    #expect(version.output == "palbe-sfu \(Release.version)\n")
  }

  @Test(
    "misuse: one line, exit 2",
    arguments: [
      [], ["serve"], ["serve", "--devv"], ["serve", "--key", "nocolon"], ["serve", "--key", ":secret"],
      ["serve", "--key", "name:"], ["serve", "--dev", "--port", "70000"],
      ["serve", "--dev", "--host", "localhost"],
      ["serve", "--dev", "--log-level", "loud"], ["serve", "--dev", "--workers", "0"], ["run"],
      ["serve", "--dev", "--key", "a:b", "--key", "a:c"], ["serve", "--dev", "--key", "devkey:x"],
      ["serve", "--dev", "--host", "192.0.2.77", "--port", "0", "--udp-port", "0", "--log-level", "warning"],
      ["serve", "--dev", "--port", "0", "--udp-port", "65535", "--workers", "2", "--log-level", "warning"],
      ["serve", "--dev", "--port", "0", "--udp-port", "0", "--audit-log", "/nowhere/at/all"],
      ["serve", "--dev", "--po\nrt", "1"], ["serve", "--config", "/none\nthere"], ["none\n\u{1b}[31m"],
      ["serve", "--dev", "--node-ip", "0.0.0.0"], ["serve", "--dev", "--node-ip", "::"],
      ["serve", "--dev", "--tls-key", "/etc/hosts"], ["serve", "--dev", "--tls-cert", "/etc/hosts"],
    ])
  func misuse(arguments: [String]) throws {
    let result = try ToolProcess.run("palbe-sfu", arguments)
    #expect(result.code == 2)
    #expect(result.output.isEmpty)
    #expect(result.errors.hasPrefix("palbe-sfu: "))
    #expect(result.errors.filter(\.isNewline).count == 1 && !result.errors.contains("\u{1b}"))
    #expect(!result.errors.contains("nocolon"))
  }

  @Test(
    "Bug: a configuration that is a pipe was waited for without end", arguments: ["--config", "--key-file"])
  func pipe(option: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.path("pipe")
    try #require(mkfifo(path, 0o600) == 0)
    let result = try ToolProcess.run("palbe-sfu", ["serve", "--dev", option, path])
    #expect(result.code == 2)
    #expect(
      result.errors == "palbe-sfu: cannot read '\(path)': it is no file; expected a regular one\n",
      "\(result.errors)")
  }

  @Test(
    "serves, is joined, and ends with exit 0 within a second of the signal", arguments: [SIGTERM, SIGINT])
  func serves(signal: Int32) async throws {
    let tool = try ToolProcess(
      "palbe-sfu",
      [
        "serve", "--dev", "--port", "0", "--udp-port", "0", "--workers", "2", "--log-level", "debug",
      ])
    let ports = try #require(listening(tool.readLine()))
    #expect(ports.signaling > 0 && ports.media > 0)
    #expect(HTTP.ask(ports.signaling, "/").body == "OK")
    let token = Tokens.join(room: "hall", identity: "anna")
    let socket = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(ports.signaling)/rtc/v1?access_token=\(token)&join_request=\(JoinRequests.item())"
    )
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    tool.terminate(with: signal)
    while await messages.next() != nil {}
    let result = tool.finish()
    #expect(result.code == 0)
    #expect(result.errors.contains("room=hall"))
    for line in result.errors.split(separator: "\n") {
      #expect(line.firstMatch(of: #/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (debug|info|warning) /#) != nil)
    }
    // Never a token, a key or a session description.
    #expect(!result.errors.contains(token.suffix(20)))
    #expect(!result.errors.contains("secret"))
    #expect(!result.errors.contains("a=fingerprint"))
    #expect(!result.errors.contains("ice-pwd"))
    #expect(HTTP.ask(ports.signaling, "/").status == 0)
  }

  @Test("a port in use, TCP or UDP: one line, exit 2")
  func portInUse() throws {
    let first = try ToolProcess(
      "palbe-sfu", ["serve", "--dev", "--port", "0", "--udp-port", "0", "--workers", "1"])
    let ports = try #require(listening(first.readLine()))
    let quiet = ["--workers", "2"]
    for (options, word) in [
      (["--port", "\(ports.signaling)", "--udp-port", "0"], "TCP"),
      (["--port", "0", "--udp-port", "\(ports.media)"], "UDP"),
    ] {
      let result = try ToolProcess.run("palbe-sfu", ["serve", "--dev"] + options + quiet)
      #expect(result.code == 2)
      #expect(result.errors.contains("is in use"))
      #expect(result.errors.contains(word))
      #expect(result.errors.filter(\.isNewline).count == 1)
    }
    first.terminate()
    #expect(first.finish().code == 0)
  }

  @Test("a secret of fewer than 32 characters is a warning, a longer one is not")
  func weakKey() throws {
    for (secret, isWeak) in [("short", true), (String(repeating: "k", count: 32), false)] {
      let tool = try ToolProcess(
        "palbe-sfu",
        [
          "serve", "--key", "app:\(secret)", "--host", "127.0.0.1", "--port", "0", "--udp-port", "0",
          "--workers", "1",
        ])
      _ = tool.readLine()
      tool.terminate()
      let result = tool.finish()
      #expect(result.code == 0)
      #expect(result.errors.contains("weak API key") == isWeak)
      #expect(!result.errors.contains(secret))
    }
  }

  /// A running tool with somebody in room "hall".
  private func occupied(_ options: [String]) async throws -> (
    tool: ToolProcess, port: UInt16, WebSocketClient
  ) {
    let tool = try ToolProcess(
      "palbe-sfu",
      ["serve", "--host", "127.0.0.1", "--port", "0", "--udp-port", "0", "--workers", "1"] + options)
    let ports = try #require(listening(tool.readLine()))
    let token = Tokens.join(room: "hall", identity: "anna")
    let socket = try await WebSocketClient.connect(
      to: "ws://127.0.0.1:\(ports.signaling)/rtc/v1?access_token=\(token)&join_request=\(JoinRequests.item())"
    )
    var messages = socket.messages.makeAsyncIterator()
    _ = await messages.next()
    return (tool, ports.signaling, socket)
  }

  @Test("LiveKit protocol §4 (19): SIGTERM drains: an idle tab moves no deadline; then leave RECONNECT")
  func drains() async throws {
    let key = ["--key", "\(Tokens.key):\(Tokens.secret)"]
    let (tool, port, socket) = try await occupied(key + ["--drain-timeout", "1500ms"])
    tool.terminate()
    while HTTP.ask(port, "/ready").status == 200 {}
    #expect(HTTP.ask(port, "/").status == 200)
    var leaves: [LiveKit.LeaveRequest] = []
    for await message in socket.messages {
      if case .binary(let bytes) = message,
        case .leave(let leave)? = try? LiveKit.SignalResponse(serialized: bytes).message
      {
        leaves.append(leave)
      }
    }
    #expect(leaves.map(\.action) == [.reconnect])
    #expect(leaves.map(\.reason) == [.serverShutdown])
    let result = tool.finish()
    #expect(result.code == 0)
    #expect(result.errors.contains("stopping signal=terminate participants=1 seconds=1"))
  }

  @Test("a second signal ends it at once; the last participant's leave does too")
  func drainEnds() async throws {
    let key = ["--key", "\(Tokens.key):\(Tokens.secret)", "--drain-timeout", "1h"]
    for leavesByItself in [false, true] {
      let (tool, port, socket) = try await occupied(key)
      tool.terminate()
      while HTTP.ask(port, "/ready").status == 200 {}
      if leavesByItself { socket.close() } else { tool.terminate(with: SIGINT) }
      for await _ in socket.messages {}
      let result = tool.finish()
      #expect(result.code == 0)
      #expect(result.errors.contains("stopping at once") != leavesByItself)
    }
  }

  @Test(
    "SIGHUP reads the file again: new keys work at once, a wrong file changes nothing, a port needs a restart"
  )
  func reloads() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("sfu.yaml")
    func write(_ text: String) throws { try text.write(toFile: path, atomically: false, encoding: .utf8) }
    try write("keys: {\(Tokens.key): \(Tokens.secret)}\nport: 0\n")
    let tool = try ToolProcess(
      "palbe-sfu",
      ["serve", "--config", path, "--host", "127.0.0.1", "--udp-port", "0", "--workers", "1", "--log-json"])
    let ports = try #require(listening(tool.readLine()))
    func status(_ secret: String) -> Int {
      let token = Tokens.join(room: "hall", identity: "anna", secret: secret)
      return HTTP.ask(
        ports.signaling, "/rtc/v1/validate?access_token=\(token)&join_request=\(JoinRequests.item())"
      ).status
    }
    #expect(status(Tokens.secret) == 200)
    try write("keys: {\(Tokens.key): nOtToBeSeEn}\nport: 1\n")
    tool.terminate(with: SIGHUP)
    while status("nOtToBeSeEn") != 200 {}
    #expect(status(Tokens.secret) == 401)
    // The port waits for a restart still, and then no longer.
    for (port, secret) in [(1, "nOtToBeSeEn2"), (0, "nOtToBeSeEn3")] {
      try write("keys: {\(Tokens.key): \(secret)}\nport: \(port)\n")
      tool.terminate(with: SIGHUP)
      while status(secret) != 200 {}
    }
    try write("keys: {\(Tokens.key): nOtToBeSeEn}\nprot: 1\n")
    tool.terminate(with: SIGHUP)
    tool.terminate()
    let result = tool.finish()
    #expect(result.code == 0)
    let waiting = result.errors.components(
      separatedBy: #""message":"changed keys need a restart","keys":"port""#)
    #expect(waiting.count == 3, "\(result.errors)")
    #expect(!result.errors.contains("nOtToBeSeEn"))
    for line in result.errors.split(separator: "\n") { #expect(line.hasPrefix("{") && line.hasSuffix("}")) }
  }

  @Test(
    "S4 part 4: SIGHUP brings a new certificate to new connections, open ones stay; a broken one changes nothing"
  )
  func certificates() async throws {
    let folder = try TemporaryFolder()
    func write(_ text: String, _ name: String) throws {
      try text.write(toFile: folder.path(name), atomically: true, encoding: .utf8)
    }
    try write(TestCertificates.first, "first.pem")
    try write(TestCertificates.second, "second.pem")
    try write(TestCertificates.first, "cert.pem")
    try write(TestCertificates.firstKey, "key.pem")
    try write(
      "keys: {\(Tokens.key): one}\ntls: {cert_file: \(folder.path("cert.pem")), key_file: \(folder.path("key.pem"))}\n",
      "sfu.yaml")
    let tool = try ToolProcess(
      "palbe-sfu",
      [
        "serve", "--config", folder.path("sfu.yaml"), "--host", "127.0.0.1", "--port", "0", "--udp-port", "0",
        "--workers", "1",
      ])
    let port = try #require(listening(tool.readLine())).signaling
    func join(trusting name: String, secret: String) async throws -> WebSocketClient {
      let token = Tokens.join(room: "hall", identity: name + secret, secret: secret)
      var options = WebSocketClient.Options()
      options.trustedCertificateFile = folder.path(name)
      return try await WebSocketClient.connect(
        to: "wss://localhost:\(port)/rtc/v1?access_token=\(token)&join_request=\(JoinRequests.item())",
        options: options)
    }
    /// Reloads, and returns when that is done: then the key with this secret lets people in.
    func reload(secret: String, then name: String) async throws -> WebSocketClient {
      let text = try String(contentsOfFile: folder.path("sfu.yaml"), encoding: .utf8)
      let lines = text.split(separator: "\n").dropFirst()
      try write("keys: {\(Tokens.key): \(secret)}\n" + lines.joined(separator: "\n") + "\n", "sfu.yaml")
      tool.terminate(with: SIGHUP)
      while true {
        if let socket = try? await join(trusting: name, secret: secret) { return socket }
      }
    }
    func isAlive(_ socket: WebSocketClient) async -> Bool {
      socket.send(binary: LiveKit.SignalRequest(.ping(7)).serialized())
      for await message in socket.messages {
        if case .binary(let bytes) = message,
          case .pong? = try? LiveKit.SignalResponse(serialized: bytes).message
        {
          return true
        }
      }
      return false
    }
    let old = try await join(trusting: "first.pem", secret: "one")
    try write(TestCertificates.second, "cert.pem")
    try write(TestCertificates.secondKey, "key.pem")
    let new = try await reload(secret: "two", then: "second.pem")
    await #expect(throws: WebSocketClientError.self) { try await join(trusting: "first.pem", secret: "two") }
    #expect(await isAlive(old))
    try write("nothing of the kind", "cert.pem")
    // The next reload follows when this one is done.
    _ = try await reload(secret: "three", then: "second.pem")
    let newest = try await reload(secret: "four", then: "second.pem")
    for socket in [old, new, newest] { #expect(await isAlive(socket)) }
    tool.terminate(with: SIGINT)
    tool.terminate(with: SIGINT)
    let result = tool.finish()
    #expect(result.code == 0)
    #expect(result.errors.contains("info certificate loaded expires_unix="))
    #expect(result.errors.contains("warning certificate not reloaded reason="))
    #expect(!result.errors.contains("PRIVATE KEY"))
  }

  @Test("config prints what is in effect without secrets, and is one line where it is wrong")
  func config() throws {
    let result = try ToolProcess.run("palbe-sfu", ["config", "--key", "app:nOtToBeSeEn", "--port", "81"])
    #expect(result.code == 0)
    #expect(result.output.contains("port: 81  # --port\n"))
    #expect(!result.output.contains("nOtToBeSeEn"))
    let wrong = try ToolProcess.run("palbe-sfu", ["config", "--port", "x"])
    #expect(wrong.code == 2 && wrong.output.isEmpty && wrong.errors.filter(\.isNewline).count == 1)
  }

  @Test("rooms, participants, kick and mute call a running server; what it refuses is one line, exit 1")
  func operatorCommands() async throws {
    let key = ["--key", "\(Tokens.key):\(Tokens.secret)"]
    let (tool, port, socket) = try await occupied(key)
    let server = ["--url", "ws://127.0.0.1:\(port)"] + key
    let rooms = try ToolProcess.run("palbe-sfu", ["rooms"] + server)
    #expect(rooms.code == 0, "\(rooms.errors)")
    #expect(rooms.output.hasPrefix("ROOM  SID"))
    #expect(rooms.output.contains("\nhall  RM_"))
    #expect(rooms.output.filter(\.isNewline).count == 2)
    let people = try ToolProcess.run("palbe-sfu", ["participants", "hall", "--json"] + server)
    #expect(people.code == 0 && people.output.contains(#""identity":"anna""#))
    for (arguments, words) in [
      (["mute", "hall", "anna", "TR_none"], "track does not exist (not_found)"),
      (["kick", "hall", "nobody"], "participant does not exist (not_found)"),
      (["close", "nowhere"], "requested room does not exist (not_found)"),
    ] {
      let result = try ToolProcess.run("palbe-sfu", arguments + server)
      #expect(result.code == 1 && result.output.isEmpty)
      #expect(result.errors == "palbe-sfu: \(words)\n")
    }
    let kick = try ToolProcess.run("palbe-sfu", ["kick", "hall", "anna"] + server)
    #expect(kick.code == 0 && kick.output.isEmpty && kick.errors.isEmpty)
    for await _ in socket.messages {}
    tool.terminate()
    #expect(tool.finish().code == 0)
    let gone = try ToolProcess.run("palbe-sfu", ["rooms"] + server)
    #expect(gone.code == 1 && gone.errors.filter(\.isNewline).count == 1)
    for arguments in [["kick", "hall"], ["kick"], ["rooms", "more"], ["mute", "a", "b", "c", "d"]] {
      let misuse = try ToolProcess.run("palbe-sfu", arguments + server)
      #expect(misuse.code == 2 && misuse.errors.filter(\.isNewline).count == 1)
    }
  }

  @Test("bash completes commands, options, words and files; the other scripts name every option")
  func completion() throws {
    func complete(_ words: String...) throws -> [Substring] {
      let script = """
        source <(\(try #require(ToolProcess.executable("palbe-sfu")).path) completion bash)
        COMP_WORDS=(palbe-sfu \(words.map { "'\($0)'" }.joined(separator: " "))); COMP_CWORD=\(words.count)
        _palbe_sfu; printf '%s\\n' "${COMPREPLY[@]}"
        """
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/bin/bash")
      process.arguments = ["-c", script]
      let output = Pipe()
      process.standardOutput = output
      try process.run()
      let data = try output.fileHandleForReading.readToEnd() ?? Data()
      process.waitUntilExit()
      return String(decoding: data, as: UTF8.self).split(separator: "\n")
    }
    #expect(try complete("se") == ["serve"])
    #expect(try complete("serve", "--log-l") == ["--log-level"])
    #expect(try complete("serve", "--log-level", "") == ["debug", "info", "warning"])
    #expect(try complete("serve", "--port", "") == [])
    #expect(try complete("completion", "f") == ["fish"])
    for shell in ["zsh", "fish"] {
      let result = try ToolProcess.run("palbe-sfu", ["completion", shell])
      #expect(result.code == 0)
      for word in ["serve", "kick", "drain-timeout", "prometheus-port", "json"] {
        #expect(result.output.contains(word))
      }
    }
    #expect(try ToolProcess.run("palbe-sfu", ["completion", "tcsh"]).code == 2)
  }
}
