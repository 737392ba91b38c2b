import Foundation
import PalbeTestKit
import Testing

@testable import Palbase

/// The sources of the products, each line without its comment.
private let sources: [(file: String, lines: [String])] = {
  let root = Vectors.projectRoot.appendingPathComponent("Sources/SDK")
  let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
  return (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }.compactMap { file in
    guard let text = try? String(contentsOf: file, encoding: .utf8) else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.drop { $0 == " " }.hasPrefix("//") ? "" : String(line)
    }
    return (file.lastPathComponent, lines)
  }
}()

/// Whether the products declare `member` as public in the type or extension of that name.
private func declares(_ type: String, _ member: String) -> Bool {
  sources.contains { _, lines in
    var isInside = false
    // Most lines have neither; the expressions are slow.
    for line in lines where line.contains("public ") || line.first?.isLetter == true {
      if let match = line.firstMatch(of: /^(?:public )?(?:struct|enum|extension|final class|actor) (\w+)/) {
        isInside = match.1 == type
      }
      if isInside,
        let match = line.firstMatch(of: /public (?:static |nonisolated )*(?:func|var|let) (\w+)/),
        match.1 == member
      {
        return true
      }
    }
    return false
  }
}

/// The type of a namespace of `pb`.
private func namespace(_ name: Substring) -> String? {
  for (_, lines) in sources {
    for line in lines where line.contains("Namespace") {
      if let match = line.firstMatch(of: /public var (\w+): (\w+Namespace)/), match.1 == name {
        return String(match.2)
      }
    }
  }
  return nil
}

@Suite("The public surface (S0-25, S0-118, S0-119, S0-142)")
struct SurfaceTests {
  @Test("S0-118: exactly two public overloads of configure: messagingAppGroup and onError")
  func configureOverloads() {
    let found = sources.flatMap { source in
      source.lines.filter { $0.contains("func configure(") }.compactMap { line in
        line.firstMatch(of: /public .*func configure\((\w+)/).map { String($0.1) }
      }
    }
    #expect(found.sorted() == ["messagingAppGroup", "onError"])
    // Nor an initializer of `pb` that takes a configuration.
    #expect(!declares("PalbeNamespace", "init"))
  }

  @Test("S0-25, S0-119: every API that a shipped text names exists")
  func namedAPI() {
    var seen = 0
    for (file, lines) in sources {
      for line in lines where line.contains("pb.") || line.contains("Palbe") {
        for match in line.matches(of: /\bpb\.(\w+)(?:\.(\w+))?/) {
          seen += 1
          if let member = match.2 {
            let type = namespace(match.1)
            #expect(type.map { declares($0, String(member)) } == true, "\(file): \(match.0)")
          } else {
            let isThere = declares("PalbeNamespace", String(match.1))
            #expect(isThere, "\(file): \(match.0)")
          }
        }
        for match in line.matches(of: /\b(Palbe[A-Z]\w*)\.(\w+)\(\)/) where line.contains("\"") {
          seen += 1
          #expect(declares(String(match.1), String(match.2)), "\(file): \(match.0)")
        }
      }
    }
    #expect(seen >= 4)
    // The scan itself finds what is not there.
    #expect(namespace("auth") == "AuthNamespace")
    #expect(!declares("AuthNamespace", "enroll") && declares("AuthNamespace", "signIn"))
    #expect(declares("PalbeCall", "enable"))
  }

  @Test("S0-25, S0-119: no text of the table names what never was public")
  func retiredNames() {
    for (code, facts) in FailureFacts.table {
      for text in [facts.message, facts.advice] {
        #expect(!text.contains("enroll(") && !text.contains("apiKey"), "\(code)")
      }
    }
  }

  @Test("S0-142: nothing in the SDK names an attestation header")
  func attestation() {
    for (file, lines) in sources {
      #expect(!lines.contains { $0.lowercased().contains("attest") }, "\(file)")
    }
  }
}
