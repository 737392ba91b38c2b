import Glibc
import Testing

@testable import PalbeServerObservation

@Suite("The log")
struct ServerLogTests {
  private func line(_ fields: [(name: String, value: String)]) -> String {
    let bytes = ServerLog.line(.info, "participant joined", fields, unixMilliseconds: 1_700_000_000_045)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("one line: time, level, message, fields")
  func format() {
    #expect(
      line([("room", "hall"), ("identity", "anna#1")])
        == "2023-11-14T22:13:20.045Z info participant joined room=hall identity=anna#1\n")
  }

  @Test("a value cannot forge a line or a field")
  func escapes() {
    let text = line([("identity", "a\nb c=d\"e\\f\u{7f}\u{2028}\u{202e}ä"), ("empty", "")])
    #expect(
      text.hasSuffix(
        #"identity="a\u{a}b c=d\"e\\f\u{7f}\u{2028}\u{202e}ä" empty="""# + "\n"))
    #expect(text.filter(\.isNewline).count == 1)
    #expect(line([("long", String(repeating: "x", count: 100_000))]).utf8.count < 400)
  }

  @Test("the same as a JSON object, whatever a value holds")
  func json() throws {
    func object(_ fields: [(name: String, value: String)]) -> String {
      let bytes = ServerLog.object(.info, "participant joined", fields, unixMilliseconds: 1_700_000_000_045)
      return String(decoding: bytes, as: UTF8.self)
    }
    #expect(
      object([("room", "hall"), ("identity", "a\n\"\\")])
        == #"{"time":"2023-11-14T22:13:20.045Z","level":"info","message":"participant joined","room":"hall","#
        + #""identity":"a\n\"\\"}"# + "\n")
    #expect(
      object([("port", "19464"), ("request", "7"), ("count", "07")]).hasSuffix(
        #""port":19464,"request":"7","count":"07"}"# + "\n"))
    #expect(object([("long", String(repeating: "x", count: 100_000))]).utf8.count < 500)
    let many = (0..<100).map { (name: "field\($0)", value: String(repeating: "\u{1}", count: 300)) }
    #expect(object(many).utf8.count < 6_000)
    #expect(object(many).hasSuffix("}\n"))
  }

  @Test("the level can change")
  func level() {
    let log = ServerLog(level: .warning)
    log.setLevel(.debug)
    #expect(log.level == .debug)
  }

  @Test("a reader that does not read loses lines and holds nobody up")
  func fullPipe() {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let log = ServerLog(level: .info, descriptor: ends[1])
    for index in 0..<10_000 { log.write(.info, "line", [("index", "\(index)")]) }
    log.write(.debug, "not asked for")
    // Empties the pipe; the next line is preceded by the count of the lost ones.
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    #expect(read(ends[0], &buffer, buffer.count) > 0)
    log.write(.info, "again")
    let count = read(ends[0], &buffer, buffer.count)
    let text = String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    #expect(text.contains("log lines lost count="))
    #expect(text.hasSuffix("info again\n"))
    close(ends[0])
    close(ends[1])
  }
}
