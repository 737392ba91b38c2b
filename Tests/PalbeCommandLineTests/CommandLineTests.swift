import PalbeCommandLine
import Testing

@Suite("Command lines")
struct CommandLineTests {
  let program = Program(
    name: "tool", version: "1.2.3", summary: "does things",
    commands: [
      Command(
        name: "serve", summary: "serves",
        options: [
          .value("--port", "N", "the port", default: "7880"), .flag("--dev", "for development"),
          .value("--key", "NAME:SECRET", "a key", repeatable: true), .value("--file", "FILE", "a file"),
          .toggle("--sign-up", "whether anybody may come", default: "true"),
        ], examples: ["tool serve --port 1"])
    ])

  private func parse(_ arguments: String...) throws(ArgumentError) -> ParsedArguments {
    guard case .run(_, let parsed) = try program.request(arguments) else { throw ArgumentError("not a run") }
    return parsed
  }

  private func misuse(_ arguments: String...) -> String? {
    do {
      guard case .run(_, let parsed) = try program.request(arguments) else { return nil }
      _ = try parsed.integer("--port", in: 0...65_535)
      return nil
    } catch { return error.description }
  }

  @Test(
    "a switch that is on is turned off by --no-NAME or =false; a value behind it is told how to be written")
  func switches() throws {
    #expect(try parse("serve").string("--sign-up") == "true")
    #expect(try parse("serve", "--no-sign-up").string("--sign-up") == "false")
    #expect(try parse("serve", "--sign-up=false").string("--sign-up") == "false")
    #expect(
      misuse("serve", "--sign-up", "false")
        == "unexpected argument 'false'; write '--sign-up=false' or '--no-sign-up'")
    #expect(misuse("serve", "--no-sign-up=true") == "option '--no-sign-up' takes no value")
    #expect(misuse("serve", "--sign-up", "--no-sign-up") == "option '--sign-up' is given twice")
    #expect(misuse("serve", "--no-dev")?.hasPrefix("unknown option '--no-dev'") == true)
  }

  @Test("values, defaults, flags and repeats are read")
  func reads() throws {
    let parsed = try parse("serve", "--port=81", "--dev", "--key", "a:b", "--key", "c:d")
    #expect(try parsed.integer("--port", in: 0...65_535) == 81)
    #expect(parsed.has("--dev"))
    #expect(parsed.strings("--key") == ["a:b", "c:d"])
    #expect(parsed.string("--file") == nil)
    #expect(throws: ArgumentError.self) { try parsed.required("--file") }
    #expect(try parse("serve").integer("--port", in: 0...65_535) == 7880)
  }

  @Test("a misuse is one line that says what was expected")
  func refuses() {
    #expect(misuse() == "expected a command: serve; see --help")
    #expect(misuse("sevre") == "unknown command 'sevre'; expected serve; see --help")
    #expect(misuse("serve", "--prot", "1") == "unknown option '--prot'; did you mean '--port'?")
    #expect(misuse("serve", "--zzzzzzzz") == "unknown option '--zzzzzzzz'; see --help")
    #expect(misuse("serve", "--port") == "option '--port' needs a value: --port N")
    #expect(misuse("serve", "--port", "1", "--port", "2") == "option '--port' is given twice")
    #expect(misuse("serve", "--dev=1") == "option '--dev' takes no value")
    #expect(misuse("serve", "x") == "unexpected argument 'x'; options start with --")
    #expect(
      misuse("serve", "--port", "65536")
        == "option '--port' is '65536'; expected a whole number from 0 to 65535")
  }

  @Test("Bug: a misuse was more than one line where an argument had a line break in it")
  func complaints() {
    let misuse = misuse("serve", "--po\u{1b}[2J\r\nrt") ?? ""
    #expect(
      Program.complaint(by: "tool", misuse)
        == #"tool: unknown option '--po\u{1B}[2J\u{D}\u{A}rt'; see --help"#)
  }

  @Test("help names every option and an example; the version stands alone")
  func helps() throws {
    guard case .print(let help) = try program.request(["serve", "--help"]) else {
      return #expect(Bool(false))
    }
    for word in ["--port N", "--dev", "--key NAME:SECRET", "(default 7880)", "tool serve --port 1"] {
      #expect(help.contains(word))
    }
    guard case .print(let version) = try program.request(["--version"]) else { return #expect(Bool(false)) }
    #expect(version == "tool 1.2.3")
  }
}
