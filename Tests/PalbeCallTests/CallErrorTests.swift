import PalbeCall
import Testing

@Suite("Text from the network never reaches the terminal raw")
struct CallErrorTests {
  @Test("an error is one line, whatever the address or the server says")
  func errors() {
    #expect(
      CallEngineError.malformedURL("ws://a\nb").description
        == "not a ws:// or wss:// address: 'ws://a\\u{A}b'")
    #expect(CallEngineError.noRoute(host: "a\u{1B}").description == "no route to 'a\\u{1B}'")
    #expect(
      CallEngineError.unreachable("no\n\u{1B}[1m").description == "cannot reach the server: no \\u{1B}[1m")
  }

  @Test("only 401 and 403 are about the token", arguments: [401, 403, 404, 500, 503])
  func statuses(status: Int) {
    let start = status < 404 ? "the server refused the token with HTTP" : "the server answered HTTP"
    #expect(
      CallEngineError.refused(status: status, body: "no\n\u{1B}c").description
        == "\(start) \(status): no \\u{1B}c")
    #expect(CallEngineError.refused(status: status, body: "").description == "\(start) \(status)")
  }
}
