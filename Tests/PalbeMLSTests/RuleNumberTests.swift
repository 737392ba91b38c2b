import Foundation
import PalbeTestKit
import PalbeWire
import Testing

@testable import PalbeMLS

@Suite("docs/mls-validation.md: the same numbers everywhere")
struct RuleNumberTests {
  private func text(_ path: String) throws -> String {
    String(decoding: try Vectors.golden(path), as: UTF8.self)
  }

  /// What a pattern's first group matches, with the second if there is one.
  private func matches(_ pattern: String, in text: String) throws -> [(String, String)] {
    let expression = try NSRegularExpression(pattern: pattern, options: .anchorsMatchLines)
    let whole = NSRange(text.startIndex..., in: text)
    return expression.matches(in: text, range: whole).compactMap { match in
      guard let first = Range(match.range(at: 1), in: text) else { return nil }
      let second = match.numberOfRanges > 2 ? Range(match.range(at: 2), in: text) : nil
      return (String(text[first]), second.map { String(text[$0]) } ?? "")
    }
  }

  @Test("Code, comments, document and tests name the same rules, each once")
  func numbers() throws {
    let code = try matches(
      #"^    case \.(\w+): "(V\d+)"$"#, in: try text("Sources/E2EE/MLS/ValidationRules.swift"))
    let numbers = code.map(\.1)
    #expect(numbers.count > 90)
    #expect(Set(numbers).count == numbers.count)
    let comments = try matches(#"^  /// (V\d+): "#, in: try text("Sources/E2EE/MLS/MLSError.swift"))
    #expect(comments.map(\.0).sorted() == numbers.sorted())

    let rows = try matches(
      #"^\| (V\d+) \| .*`(?:\w+\(\.)?(\w+)\)?` \| \w.* \|$"#, in: try text("docs/mls-validation.md"))
    #expect(rows.map(\.0).sorted() == numbers.sorted())
    let names = Dictionary(uniqueKeysWithValues: code.map { ($0.1, $0.0) })
    for (number, name) in rows { #expect(names[number] == name, "\(number)") }

    // A test that claims a rule in its `Rules:` line also has the rule's error.
    let folder = Vectors.projectRoot.appendingPathComponent("Tests/PalbeMLSTests")
    var tested: Set<String> = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    where file.hasSuffix(".swift") && file != "RuleNumberTests.swift" {
      let source = try text("Tests/PalbeMLSTests/" + file)
      tested.formUnion(try matches(#"expectRule\("(V\d+)""#, in: source).map(\.0))
      for part in source.components(separatedBy: "// Rules:").dropFirst() {
        let pieces = part.components(separatedBy: "@Test")
        let claimed = try matches(#"(V\d+)"#, in: pieces[0]).map(\.0)
        for number in claimed {
          let name = try #require(names[number], "\(number) in \(file) is no rule")
          #expect(pieces.count > 1 && pieces[1].contains("." + name), "\(file): \(number), \(name)")
        }
        tested.formUnion(claimed)
      }
    }
    #expect(tested.sorted() == numbers.sorted())
  }

  @Test("An error tells its rule; a state is none")
  func rule() {
    #expect(MLSError.leafNode(.expired(notAfter: 1)).rule == "V116")
    #expect(MLSError.malformed(.trailing(count: 1)).rule == "V001")
    #expect(MLSError.tree(.invalidParentKey(node: 1)).rule == "V301")
    #expect(MLSError.state(.exporterWiped).rule == nil)
  }
}
