import Foundation
import PalbeCallLab
import PalbeTestKit
import PalbeUnits
import Testing

@Suite(
  "palbe-call as a process", .timeLimit(.minutes(2)),
  .enabled(if: ToolProcess.executable("palbe-call") != nil, "palbe-call is not built: skipped"))
struct ToolRefusalTests {
  private static let closed = "ws://127.0.0.1:1"
  private static let hexKey = String(repeating: "ab", count: 32)
  private static func join(_ options: String...) -> [String] { ["join", "--seconds", "1"] + options }

  /// Nothing on standard output, one line on standard error that holds `words`, exit 2.
  private func expectRefusal(_ arguments: [String], _ words: String) throws {
    let result = try ToolProcess.run("palbe-call", arguments)
    #expect(result.code == 2)
    #expect(result.output.isEmpty)
    #expect(result.errors.hasPrefix("palbe-call") && result.errors.hasSuffix("\n"))
    #expect(result.errors.filter(\.isNewline).count == 1, "\(result.errors)")
    #expect(result.errors.contains(words), "\(result.errors)")
    #expect(!result.errors.contains("hush"))
  }

  @Test(
    "--help shows examples, --version the version",
    arguments: [[], ["demo"], ["join"], ["token"]])
  func help(command: [String]) throws {
    let help = try ToolProcess.run("palbe-call", command + ["--help"])
    #expect(help.code == 0)
    #expect(help.output.contains("Examples:\n  palbe-call " + (command.first ?? "")))
    #expect(help.errors.isEmpty)
    let version = try ToolProcess.run("palbe-call", command + ["--version"])
    #expect(version == ToolProcess.Result(code: 0, output: "palbe-call \(Release.version)\n", errors: ""))
  }

  @Test("S4 part 5: completion scripts of three shells name commands and options, as palbe-sfu's do")
  func completion() throws {
    for shell in ["bash", "zsh", "fish"] {
      let result = try ToolProcess.run("palbe-call", ["completion", shell])
      #expect(result.code == 0 && result.errors.isEmpty)
      for word in ["join", "demo", "token", "passphrase-file", "identity"] {
        #expect(result.output.contains(word))
      }
    }
    try expectRefusal(["completion", "tcsh"], "no completion for 'tcsh'")
  }

  @Test(
    "misuse of the command line",
    arguments: [
      ([], "expected a command"), (["call"], "unknown command 'call'"), (["--hlep"], "unknown command"),
      (["ca\nll\u{1B}"], #"unknown command 'ca\u{A}ll\u{1B}'"#),
      (join("--url", closed, "--token", "t"), "'--key HEX', '--e2ee livekit' or '--no-e2ee'"),
      (join("--url", closed, "--token", "t", "--e2ee", "gcm"), "none of 'sframe'"),
      (join("--url", closed, "--token", "t", "--e2ee", "sframe"), "'--key' is missing"),
      (join("--url", closed, "--token", "t", "--e2ee", "livekit", "--key", hexKey), "exclude each other"),
      (join("--url", closed, "--token", "t", "--e2ee", "livekit", "--no-e2ee"), "exclude each other"),
      (
        join("--url", closed, "--token", "t", "--e2ee", "none", "--passphrase-file", "x"),
        "exclude each other"
      ),
      (join("--url", closed, "--token", "t", "--key", hexKey, "--kdf", "hkdf"), "exclude each other"),
      (join("--url", closed, "--token", "t", "--e2ee", "livekit", "--kdf", "scrypt"), "neither 'pbkdf2' nor"),
      (join("--url", closed, "--token", "t", "--e2ee", "livekit"), "PALBE_PASSPHRASE"),
      (
        join("--url", closed, "--token", "t", "--e2ee", "livekit", "--passphrase-file", "/nowhere/p"),
        "/nowhere/p"
      ),
      (
        join("--url", closed, "--token", "t", "--e2ee", "livekit", "--passphrase-file", "/dev/null"),
        "is empty"
      ),
      (
        join("--url", closed, "--token", "t", "--e2ee", "livekit", "--passphrase-file", "/dev/zero"),
        "above 65536"
      ),
      (join("--url", closed, "--token", "t", "--key", hexKey, "--no-e2ee"), "exclude each other"),
      (join("--url", closed, "--token", "t", "--key", "abcd"), "has 2 bytes"),
      (join("--url", closed, "--token", "t", "--key", hexKey + "00"), "has 33 bytes"),
      (join("--url", closed, "--token", "t", "--key", "hush"), "not hexadecimal"),
      (join("--url", closed, "--token", "t", "--key", ""), "has 0 bytes"),
      (join("--url", closed, "--token", "t", "--no-e2ee", "--vidoe", "x"), "did you mean '--video'?"),
      (join("--token", "t", "--no-e2ee"), "'--url' is missing"),
      (join("--url", closed, "--no-e2ee"), "'--token' is missing"),
      (join("--url", closed, "--no-e2ee", "--token"), "needs a value"),
      (join("--url", closed, "--token", "t", "--no-e2ee", "--listen", "--audio", "x"), "'--listen'"),
      (["join", "--url", closed, "--token", "t", "--no-e2ee", "--seconds", "0"], "whole number from 1"),
      (["demo", "--seconds", "2"], "from 3 to 600"), (["demo", "--setups", "many"], "whole number"),
      (["demo", "--report", "/nowhere/report.json"], "/nowhere"), (["demo", "--report", "/"], "report"),
      (["demo", "--sfu", "/nowhere/palbe-sfu"], "/nowhere/palbe-sfu"),
      (["demo", "x"], "unexpected argument"),
      (["token", "--room", "r"], "'--identity' is missing"),
      (["token", "--identity", "ada"], "'--room' is missing"),
      (["token", "--room", "r", "--identity", "ada", "--key", "hush"], "expected NAME:SECRET"),
      (["token", "--room", "r", "--identity", "ada", "--key", ":hush"], "expected NAME:SECRET"),
      (["token", "--room", "r", "--identity", "ada", "--valid", "soon"], "whole number"),
    ])
  func misuse(arguments: [String], words: String) throws { try expectRefusal(arguments, words) }

  @Test("addresses: none, of another scheme, and of nobody")
  func addresses() throws {
    let token = try TestSFU.token("ada")
    for url in ["", "127.0.0.1:7880", "http://127.0.0.1:1", "ws://", "ws://127.0.0.1:99999"] {
      try expectRefusal(Self.join("--url", url, "--token", token, "--no-e2ee"), "address: '\(url)'")
    }
    try expectRefusal(Self.join("--url", Self.closed, "--token", token, "--no-e2ee"), "cannot reach")
    try expectRefusal(Self.join("--url", Self.closed, "--token", "no-token", "--no-e2ee"), "token")
  }

  @Test("tokens that the server refuses: expired, of another secret, of an unknown key, changed")
  func tokens() throws {
    let sfu = try TestSFU()
    defer { sfu.stop() }
    func token(key: String = TestSFU.key, secret: String = TestSFU.secret, valid: Int64 = 600) throws
      -> String
    {
      var token = TestToken(room: "refused", identity: "ada")
      token.validSeconds = valid
      return try token.signed(key: key, secret: secret, now: Int64(Date().timeIntervalSince1970))
    }
    let good = try token()
    for (token, words) in [
      (try token(valid: -120), "expired"),
      (try token(secret: "another secret of more than thirty-two characters"), "signature"),
      (try token(key: "nobody"), "unknown API key"),
      (good.dropLast(4) + "AAAA", "signature"),
    ] {
      try expectRefusal(Self.join("--url", sfu.url, "--token", token, "--no-e2ee"), words)
      try expectRefusal(Self.join("--url", sfu.url, "--token", token, "--key", Self.hexKey), words)
    }
    // The token command's own expired token.
    let minted = try ToolProcess.run(
      "palbe-call",
      [
        "token", "--room", "r", "--identity", "ada", "--key", "\(TestSFU.key):\(TestSFU.secret)", "--valid",
        "-120",
      ])
    #expect(minted.code == 0 && minted.errors.isEmpty)
    let expired = minted.output.trimmingCharacters(in: .newlines)
    try expectRefusal(Self.join("--url", sfu.url, "--token", expired, "--no-e2ee"), "expired")
  }

  @Test("files to send or write into that are missing, malformed or of the other kind")
  func files() throws {
    let sfu = try TestSFU()
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("palbe-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer {
      sfu.stop()
      try? FileManager.default.removeItem(at: folder)
    }
    func file(_ name: String, _ text: String) throws -> String {
      let url = folder.appendingPathComponent(name)
      try Data(text.utf8).write(to: url)
      return url.path
    }
    let missing = folder.appendingPathComponent("missing").path
    let empty = try file("empty", "")
    let wav = try file("cut.wav", "RIFF\u{24}\0\0\0WAVEfmt \u{10}\0\0\0\u{1}\0")
    let y4m = try file("cut.y4m", "YUV4MPEG2 W640 H360 F30:1 C420jpeg\nFRAME\nshort")
    let options = Self.join("--url", sfu.url, "--token", try TestSFU.token("ada"), "--no-e2ee")
    for path in [missing, empty, wav, y4m, folder.path] {
      try expectRefusal(options + ["--audio", path], path)
      try expectRefusal(options + ["--video", path], path)
    }
    try expectRefusal(options + ["--record", empty], empty)
  }
}

@Suite(
  "Bad input: palbe-bench as a process", .timeLimit(.minutes(2)),
  .enabled(if: ToolProcess.executable("palbe-bench") != nil, "palbe-bench is not built: skipped"))
struct BenchRefusalTests {
  @Test("--help shows examples, --version the version", arguments: [[], ["frames"], ["mls"]])
  func help(command: [String]) throws {
    let help = try ToolProcess.run("palbe-bench", command + ["--help"])
    #expect(help.code == 0 && help.errors.isEmpty)
    #expect(help.output.contains("palbe-bench \(command.first ?? "frames") --json"))
    let version = try ToolProcess.run("palbe-bench", command + ["--version"])
    #expect(version == ToolProcess.Result(code: 0, output: "palbe-bench \(Release.version)\n", errors: ""))
  }

  @Test(
    "misuse: one line, exit 2",
    arguments: [
      [], ["frame"], ["frames", "--jsno"], ["frames", "--json=1"], ["frames", "--slices"],
      ["frames", "--slices", "0"], ["frames", "--slices", "ten"], ["frames", "10"],
      ["mls", "--members", "1"], ["mls", "--members", "2,"], ["mls", "--members", "20001"],
      ["mls", "--slices", "0"],
    ])
  func misuse(arguments: [String]) throws {
    let result = try ToolProcess.run("palbe-bench", arguments)
    #expect(result.code == 2)
    #expect(result.output.isEmpty)
    #expect(result.errors.hasPrefix("palbe-bench: "))
    #expect(result.errors.filter(\.isNewline).count == 1)
  }
}
