import PalbeUnits
import Testing

@testable import PalbeYAML

@Suite("YAML documents (YAML 1.1 through libyaml, S4 part 5)")
struct YAMLTests {
  private func parse(_ text: String, _ limits: YAMLLimits = YAMLLimits()) throws -> YAMLNode? {
    try YAMLNode(parsing: Array(text.utf8), limits: limits)
  }

  private func refusal(_ text: String, _ limits: YAMLLimits = YAMLLimits()) -> YAMLError? {
    do throws(YAMLError) {
      _ = try YAMLNode(parsing: Array(text.utf8), limits: limits)
      return nil
    } catch { return error }
  }

  /// The document as one line, for comparing.
  private func shown(_ node: YAMLNode?) -> String {
    switch node?.content {
    case nil: "-"
    case .scalar(let text, isPlain: true): text
    case .scalar(let text, isPlain: false): "'\(text)'"
    case .sequence(let items): "[" + items.map(shown).joined(separator: ", ") + "]"
    case .mapping(let entries):
      "{" + entries.map { "\($0.key): \(shown($0.value))" }.joined(separator: ", ") + "}"
    }
  }

  @Test(
    "documents and what they hold",
    arguments: [
      ("", "-"), ("# nothing\n", "-"), ("port: 7880\n", "{port: 7880}"),
      (
        "rtc:\n  udp_port: 7882-7889\n  node_ip: \"192.0.2.1\"\n",
        "{rtc: {udp_port: 7882-7889, node_ip: '192.0.2.1'}}"
      ),
      ("keys:\n  a: b\n  'c d': >\n    folded\n    text\n", "{keys: {a: b, c d: 'folded text\n'}}"),
      ("list:\n- 1\n- [2, {x: y}]\n", "{list: [1, [2, {x: y}]]}"),
      ("a: &x {b: 1}\nc: *x\n", "{a: {b: 1}, c: {b: 1}}"),
      ("empty:\n", "{empty: }"), ("n: !!str 12\n", "{n: '12'}"), ("n: ! 12\n", "{n: '12'}"),
      ("\u{feff}a: ü\n", "{a: ü}"),
    ])
  func documents(text: String, expected: String) throws {
    #expect(shown(try parse(text)) == expected)
  }

  @Test("null is told from text")
  func null() throws {
    for (text, isNull) in [
      ("a:", true), ("a: ~", true), ("a: null", true), ("a: ''", false), ("a: 0", false),
    ] {
      guard case .mapping(let entries)? = try parse(text)?.content else { return #expect(Bool(false)) }
      #expect(entries[0].value.isNull == isNull, "\(text)")
    }
  }

  @Test("places count from 1")
  func places() throws {
    guard case .mapping(let entries)? = try parse("a: 1\nrtc:\n  b: [x,\n    y]\n")?.content,
      case .mapping(let inner) = entries[1].value.content,
      case .sequence(let items) = inner[0].value.content
    else { return #expect(Bool(false)) }
    #expect(entries[1].keyPosition == YAMLPosition(line: 2, column: 1))
    #expect(inner[0].keyPosition == YAMLPosition(line: 3, column: 3))
    #expect(items[1].position == YAMLPosition(line: 4, column: 5))
  }

  @Test(
    "refused, with line and column",
    arguments: [
      ("a: 1\na: 2\n", 2, 1, "already"), ("a: [1\n", 2, 1, ""), ("a: b: c\n", 1, 5, ""),
      ("a: 1\n---\nb: 2\n", 2, 1, "second document"), ("? [a]\n: 1\n", 1, 3, "key"),
      ("a: *b\n", 1, 4, "alias"), ("a: &b [*b]\n", 1, 8, "alias"), ("a: !tag x\n", 1, 4, "tags"),
      ("a: {b: 1}\nc:\n  <<: {d: 1}\n", 3, 3, "merge"), ("a: \u{1}\n", 1, 1, ""), ("\ta: 1\n", 1, 1, ""),
    ])
  func refused(text: String, line: Int, column: Int, words: String) throws {
    let error = try #require(refusal(text))
    #expect(error.position.line == line && (words.isEmpty || error.position.column == column), "\(error)")
    #expect(words.isEmpty || error.reason.contains(words), "\(error)")
  }

  @Test("bytes that are no UTF-8 are refused")
  func notText() {
    #expect(throws: YAMLError.self) { try YAMLNode(parsing: [0x61, 0x3a, 0x20, 0xff, 0xfe]) }
    #expect(throws: YAMLError.self) { try YAMLNode(parsing: [0xff, 0xfe, 0x61, 0]) }
    #expect(throws: YAMLError.self) { try YAMLNode(parsing: [0x61, 0x3a, 0x20, 0]) }
  }

  @Test("size, depth and number of values are bounded")
  func bounds() throws {
    var limits = YAMLLimits()
    limits.byteCount = 8
    #expect(refusal("a: 123456", limits)?.reason.contains("larger") == true)
    #expect(try parse("a: 12345", limits) != nil)
    limits = YAMLLimits()
    limits.depth = 3
    #expect(try parse("[[[1]]]", limits) != nil)
    #expect(refusal("[[[[1]]]]", limits)?.reason.contains("levels") == true)
    // An alias counts with its own levels.
    #expect(refusal("a: &x [[1]]\nb: [*x]\n", limits)?.reason.contains("levels") == true)
    limits = YAMLLimits()
    limits.nodeCount = 4
    #expect(try parse("[1, 2, 3]", limits) != nil)
    #expect(refusal("[1, 2, 3, 4]", limits)?.reason.contains("values") == true)
  }

  @Test("a tower of aliases is refused before it costs anything")
  func aliasTower() {
    var text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in 1...20 {
      let items = Array(repeating: "*a\(level - 1)", count: 10).joined(separator: ", ")
      text += "a\(level): &a\(level) [\(items)]\n"
    }
    #expect(refusal(text)?.reason.contains("values") == true)
  }

  @Test("a hundred thousand open brackets, and as many open mappings, end at the bound of levels")
  func manyBrackets() {
    for bracket in ["[", "{a: ", "- "] {
      let text = String(repeating: bracket, count: 100_000)
      #expect(refusal(text) != nil)
    }
  }

  @Test("no prefix of a document traps, and an error never repeats a value")
  func prefixes() {
    let text =
      "keys: {app: &k sEcReT}\nrtc:\n  list:\n  - \"q\\u00e9\"\n  - |\n    block\nalso: [*k, !!str x]\n"
    let bytes = Array(text.utf8)
    for count in 0...bytes.count {
      do throws(YAMLError) { _ = try YAMLNode(parsing: Array(bytes[..<count])) } catch {
        #expect(!error.description.contains("sEcReT"))
      }
    }
  }

  @Test("random changes of a document never trap")
  func changes() {
    var random = RandomSource(seed: 4)
    let bytes = Array("a: &x [1, {b: 'c'}]\nd: *x\ne: >-\n  text\n  more\n? f\n: \"\\x41\"\n".utf8)
    for _ in 0..<3_000 {
      var changed = bytes
      for _ in 0..<3 {
        changed[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      _ = try? YAMLNode(parsing: changed)
    }
  }
}
