import PalbeCommandLine
import Testing

@Suite("API keys on a command line")
struct APIKeyTests {
  @Test("NAME:SECRET is read; the secret may hold colons")
  func reads() throws {
    #expect(try APIKey(parsing: "app:s", of: "--key") == APIKey(name: "app", secret: "s"))
    #expect(try APIKey(parsing: "app:s:t:", of: "--key") == APIKey(name: "app", secret: "s:t:"))
  }

  @Test("what is malformed is refused without being repeated", arguments: ["", ":", "app", "app:", ":hush"])
  func refuses(text: String) {
    let expected = ArgumentError("option '--key' is malformed; expected NAME:SECRET")
    #expect(throws: expected) { try APIKey(parsing: text, of: "--key") }
  }
}
