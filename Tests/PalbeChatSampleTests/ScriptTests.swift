import Foundation
import PalbeTestKit
import Testing

@testable import palbe_chat

@Suite("The language of palbe-chat")
struct ScriptTests {
  @Test("Commands, waits, expectations, failures and comments")
  func parses() throws {
    let script = try Script(
      """
      # a comment
      /dm ben

      hello there
      wait "ben: hi *" 20
      wait hello
      expect "read by ben"
      meet cleo 3
      pause 0.5
      ! /add cleo
      """, name: "x")
    #expect(
      script.lines.map(\.step) == [
        .command("/dm ben"), .command("hello there"), .wait(Pattern("ben: hi *"), seconds: 20),
        .wait(Pattern("hello"), seconds: 10), .expect(Pattern("read by ben")), .meet("cleo", seconds: 3),
        .pause(seconds: 0.5), .failing("/add cleo"),
      ])
    #expect(script.lines.map(\.number) == [2, 4, 5, 6, 7, 8, 9, 10])
  }

  @Test(
    "A line that is none is a misuse, with its number",
    arguments: [
      "/nonsense", "wait", "wait a b", "wait \"a", "wait a 9999", "expect", "/edit 3", "/timer -1",
      "/role ben king",
      "/prefs presence maybe", "/more none", "/dm ben cleo", "! /nonsense", "/video a.mp4 soon",
    ])
  func misuse(_ line: String) {
    #expect {
      try Script("/chats\n\(line)\n", name: "x.chat")
    } throws: { error in
      (error as? Misuse)?.description.hasPrefix("x.chat:2: ") == true
    }
  }

  @Test("Each command of the help can be typed, and stands in docs/chat.md")
  func commands() throws {
    let document = try String(
      contentsOf: Vectors.projectRoot.appendingPathComponent("docs/chat.md"), encoding: .utf8)
    for (usage, help) in Command.table {
      let line =
        usage
        .replacingOccurrences(of: "on|off", with: "on").replacingOccurrences(of: "SECONDS|off", with: "30")
        .replacingOccurrences(of: "[send|read]", with: "read").replacingOccurrences(
          of: "send|read", with: "read"
        )
        .replacingOccurrences(of: "owner|admin|member", with: "admin")
        .replacingOccurrences(of: "allow|deny|unknown", with: "allow")
        .replacingOccurrences(of: "[presence|receipts on]…", with: "presence on")
        .replacingOccurrences(of: "MILLISECONDS", with: "100").replacingOccurrences(of: "SECONDS", with: "30")
        .replacingOccurrences(of: "[COUNT]", with: "5").filter { !"[]…".contains($0) }
      #expect(throws: Never.self, "\(line)") { _ = try Command(line) }
      #expect(
        document.contains("| `\(usage.replacingOccurrences(of: "|", with: "\\|"))` | \(help) |"), "\(usage)")
    }
  }

  @Test("Stars stand for anything, in order")
  func patterns() {
    #expect(Pattern("ben: *there*").matches("12:00 ben: hello there, you"))
    #expect(!Pattern("there*ben").matches("ben: there"))
    #expect(Pattern("*").matches(""))
  }

  @Test("The scripts of the conversation are scripts", arguments: ["anna", "ben", "cleo"])
  func conversation(_ name: String) throws {
    let file = Vectors.projectRoot.appendingPathComponent("samples/palbe-chat/conversation/\(name).chat")
    #expect(try Script(String(contentsOf: file, encoding: .utf8), name: name).lines.count > 10)
  }

  @Test(
    "A misuse of the program exits 2 with one line",
    .enabled(if: ToolProcess.executable("palbe-chat") != nil),
    arguments: [
      ["--nonsense"], ["talk"], ["--server"],
      ["--server", "not an address", "--data", "/tmp/palbe-chat-misuse"],
      ["--data", "/nonexistent/palbe"], ["--server", "http://127.0.0.1:1", "--data", "/proc/none"],
      ["--script", "/nonexistent/x.chat"], ["side-by-side"], ["--name", "two words"], ["--quiet=yes"],
    ])
  func programMisuse(_ words: [String]) throws {
    let result = try ToolProcess.run("palbe-chat", words)
    #expect(result.code == 2)
    #expect(result.output.isEmpty)
    #expect(result.errors.hasPrefix("palbe-chat: "))
    #expect(result.errors.split(separator: "\n").count == 1, "\(result.errors)")
  }
}
