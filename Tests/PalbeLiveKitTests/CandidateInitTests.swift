import PalbeLiveKit
import PalbeUnits
import PalbeWire
import Testing

struct CandidateInitTests {
  typealias CandidateInit = LiveKit.CandidateInit

  @Test("a candidate is written with all three members and read back")
  func roundTrip() throws {
    let candidate = CandidateInit(
      candidate: "candidate:1 1 udp 2130706431 192.0.2.1 7882 typ host", sdpMid: "0", sdpMLineIndex: 0)
    #expect(
      candidate.json
        == #"{"candidate":"candidate:1 1 udp 2130706431 192.0.2.1 7882 typ host","sdpMid":"0","sdpMLineIndex":0}"#
    )
    #expect(try CandidateInit(json: candidate.json) == candidate)
    let strange = CandidateInit(
      candidate: "\"\\\n\u{1}é🎈", sdpMid: nil, sdpMLineIndex: nil, usernameFragment: "u/+f")
    #expect(try CandidateInit(json: strange.json) == strange)
  }

  @Test("members come in any order, among others, escaped or null")
  func reading() throws {
    let json = #"""
       { "sdpMLineIndex" : 3 , "x": [1, -0.5e+3, {"y": [true, false, null, ""]}, []], "usernameFragment":null,
       "sdpMid":"a\u0062\ud83c\udf88\/", "candidate":"" }
      """#
    #expect(try CandidateInit(json: json) == CandidateInit(candidate: "", sdpMid: "ab🎈/", sdpMLineIndex: 3))
  }

  @Test(
    "malformed JSON is a typed error",
    arguments: [
      "", "{", "{}x", "[]", "null", "\"candidate\"", "{\"candidate\"}", "{\"candidate\":}",
      "{\"candidate\":1}",
      "{\"candidate\":\"a\"", "{\"candidate\":\"a\",}", "{\"candidate\":\"a\" \"b\":1}", "{'candidate':'a'}",
      "{\"candidate\":\"a\",\"sdpMLineIndex\":-1}", "{\"candidate\":\"a\",\"sdpMLineIndex\":65536}",
      "{\"candidate\":\"a\",\"sdpMLineIndex\":1.5}", "{\"candidate\":\"a\",\"sdpMLineIndex\":01}",
      "{\"candidate\":\"a\",\"sdpMLineIndex\":\"1\"}", "{\"candidate\":\"a\",\"sdpMid\":0}",
      "{\"candidate\":\"\\x\"}", "{\"candidate\":\"\\u12\"}", "{\"candidate\":\"\\ud800\"}",
      "{\"candidate\":\"\\udc00\"}", "{\"candidate\":\"\\ud800\\u0041\"}", "{\"candidate\":\"a\nb\"}",
      "{\"candidate\":nul}", "{\"x\":tru}", "{\"x\":-}", "{\"x\":1.}", "{\"x\":1e}", "{\"x\":+1}",
    ])
  func malformed(_ json: String) {
    #expect(throws: LiveKit.JSONError.self) { _ = try CandidateInit(json: json) }
  }

  @Test("size and depth are limited, and the candidate must be there")
  func limits() {
    let deep = "{\"x\":" + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}"
    #expect(throws: LiveKit.JSONError.tooDeep(limit: 8)) { _ = try CandidateInit(json: deep) }
    let long = "{\"candidate\":\"" + String(repeating: "a", count: 4_096) + "\"}"
    #expect(throws: LiveKit.JSONError.tooLong(limit: 4_096)) { _ = try CandidateInit(json: long) }
    #expect(throws: LiveKit.JSONError.missing) { _ = try CandidateInit(json: "{\"sdpMid\":\"0\"}") }
  }

  @Test("every prefix of a candidate throws")
  func truncation() {
    let json = CandidateInit(candidate: "candidate:1", sdpMid: "0", sdpMLineIndex: 12, usernameFragment: "f")
      .json
    for length in 0..<json.count {
      #expect(throws: LiveKit.JSONError.self) { _ = try CandidateInit(json: String(json.prefix(length))) }
    }
  }
}
