import PalbeCommandLine
import Testing

@Suite("Spelling and switches")
struct SpellingTests {
  @Test("the nearest word, if any is near")
  func nearest() {
    let words = ["port", "keys", "room.auto_create"]
    #expect(Spelling.nearest(to: "prot", among: words) == "port")
    #expect(Spelling.nearest(to: "room.auto_creat", among: words) == "room.auto_create")
    #expect(Spelling.nearest(to: "zzzz", among: words) == nil)
    #expect(Spelling.nearest(to: String(repeating: "p", count: 10_000), among: words) == nil)
    #expect(Spelling.nearest(to: "x", among: [String]()) == nil)
  }

  @Test("a switch takes no value, =true or =false; a flag takes none")
  func switches() throws {
    let command = Command(
      name: "c", summary: "", options: [.toggle("--on", "on", default: "false"), .flag("--dev", "dev")],
      examples: [])
    #expect(try command.parse(["--on"]).strings("--on") == ["true"])
    #expect(try command.parse(["--on=false"]).strings("--on") == ["false"])
    #expect(try command.parse([]).strings("--on") == [])
    #expect(throws: ArgumentError.self) { try command.parse(["--dev=true"]) }
  }
}
