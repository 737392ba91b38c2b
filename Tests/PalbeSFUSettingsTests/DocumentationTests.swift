import Foundation
import PalbeServerSettings
import PalbeTestKit
import Testing

@testable import PalbeSFUSettings

@Suite("docs/sfu.md says what is there")
struct DocumentationTests {
  @Test("the table of keys is the one that `palbe-sfu config --table` prints")
  func table() throws {
    let text = try String(
      contentsOf: Vectors.projectRoot.appendingPathComponent("docs/sfu.md"), encoding: .utf8)
    let start = "<!-- palbe-sfu config --table -->\n"
    let end = "\n<!-- end -->"
    let begin = try #require(text.range(of: start)?.upperBound)
    let table = text[begin...].range(of: end).map { String(text[begin..<$0.lowerBound]) }
    #expect(table == Settings.schema.table)
  }

  @Test("every option of the unit and of the examples is there")
  func examples() throws {
    let text = try String(
      contentsOf: Vectors.projectRoot.appendingPathComponent("docs/sfu.md"), encoding: .utf8)
    let known = Set(
      SFUKeys.all.map(\.option) + ["--config", "--table", "--json", "--url", "--unmute", "--help"])
    for line in text.split(separator: "\n") where line.hasPrefix("    palbe-sfu ") {
      for word in line.split(separator: " ") where word.hasPrefix("--") {
        #expect(known.contains(String(word.prefix { $0 != "=" })), "\(line)")
      }
    }
  }

  @Test("docs/protocol-coverage.md: every item that is done names a test, and every named file is there")
  func coverage() throws {
    let root = Vectors.projectRoot
    let text = try String(
      contentsOf: root.appendingPathComponent("docs/protocol-coverage.md"), encoding: .utf8)
    let folders = [
      "C": ("Tests/PalbeSFUCoreTests/", "Tests.swift"), "S": ("Tests/PalbeSFUServerTests/", "Tests.swift"),
      "R": ("Tests/RealClients/", ".py"),
    ]
    for line in text.split(separator: "\n") where line.hasPrefix("| ") {
      let cells = line.split(separator: "|", omittingEmptySubsequences: false)
      let names = cells[3].matches(of: #/`([^`]+)`/#).map { String($0.1) }
      if cells[2].contains(" done "), !cells[2].contains("not done") { #expect(!names.isEmpty, "\(line)") }
      for name in names {
        let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
        let path = folders[parts[0]].map { $0.0 + parts[1] + $0.1 } ?? name
        #expect(FileManager.default.fileExists(atPath: root.appendingPathComponent(path).path), "\(path)")
      }
    }
  }
}
