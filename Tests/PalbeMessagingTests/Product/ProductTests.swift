import Foundation
import PalbeTestKit
import Testing

/// What Package.swift says of the products.
private struct Manifest {
  private let text: String

  init() throws {
    text = try String(
      contentsOf: Vectors.projectRoot.appendingPathComponent("Package.swift"), encoding: .utf8)
  }

  /// The targets that a product of the SDK names, without the ones that all of ours stand on.
  func dependencies(of product: String) throws -> Set<String> {
    let pattern = try Regex(#"sdk\(\s*"\#(product)",\s*(?:base \+ )?\[([^\]]*)\]"#)
    let match = try #require(text.firstMatch(of: pattern), "\(product) is no product of the SDK")
    let list = try #require(match.output[1].substring)
    return Set(list.matches(of: /"(\w+)"/).map { String($0.1) })
  }

  /// A product of the SDK and all of its products that it stands on.
  func stack(of product: String) throws -> [String: Int] {
    var counts = [product: 1]
    for lower in try dependencies(of: product) where Self.products.contains(lower) {
      for (name, count) in try stack(of: lower) { counts[name, default: 0] += count }
    }
    return counts
  }

  func offers(_ product: String) -> Bool { text.contains(".library(name: \"\(product)\"") }

  static let products: Set<String> = ["Palbase", "Palbe", "PalbeMessaging", "PalbeCall"]
}

/// A document of the project.
private func document(_ path: String) throws -> String {
  try String(contentsOf: Vectors.projectRoot.appendingPathComponent(path), encoding: .utf8)
}

/// The rows of the table in a document that begins with a heading of these words: the cells of each.
private func table(_ heading: String, in text: String) throws -> [[String]] {
  let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
  let start = try #require(lines.firstIndex { $0.hasPrefix("| \(heading) |") }, "no table '\(heading)'")
  return lines[(start + 2)...].prefix { $0.hasPrefix("|") }.map { line in
    line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
  }
}

@Suite("The products, and what is said of them")
struct ProductTests {
  @Test("S0-1: chats are in PalbeMessaging; nothing that Palbe stands on knows them")
  func chatsAreApart() throws {
    let manifest = try Manifest()
    #expect(try manifest.dependencies(of: "PalbeMessaging").isSuperset(of: ["PalbeChatCore", "PalbeMLS"]))
    for product in ["Palbe", "Palbase"] {
      let dependencies = try manifest.dependencies(of: product)
      let chats: Set = ["PalbeMessaging", "PalbeChatCore", "PalbeMLS", "PalbeMLSMessages", "PalbeMLSFiles"]
      #expect(dependencies.isDisjoint(with: chats), "\(product)")
    }
  }

  @Test("S0-7, S0-133: the products stack, each lower one is there once, and the purchases stand beside them")
  func stack() throws {
    let manifest = try Manifest()
    for product in Manifest.products { #expect(manifest.offers(product), "\(product)") }
    #expect(try Set(manifest.stack(of: "PalbeCall").keys) == Manifest.products)
    #expect(try Set(manifest.stack(of: "PalbeMessaging").keys) == ["Palbase", "Palbe", "PalbeMessaging"])
    #expect(try Set(manifest.stack(of: "Palbe").keys) == ["Palbase", "Palbe"])
    // Media is behind a seam: who calls from a chat does not bring it.
    #expect(try !manifest.dependencies(of: "PalbeMessaging").contains("PalbeCall"))
    let text = try document("docs/sdk.md")
    #expect(!manifest.offers("PalbePurchases") && text.contains("`PalbePurchases`"))
    #expect(text.contains("an app links exactly one of them"))
  }

  @Test("S0-9, S4-55: what each product means for export compliance is said, and follows from what it links")
  func exportCompliance() throws {
    let rows = try table("product", in: document("docs/sdk.md"))
    let answers = Dictionary(uniqueKeysWithValues: rows.compactMap { $0.count > 2 ? ($0[0], $0[2]) : nil })
    #expect(answers == ["`Palbe`": "`false`", "`PalbeMessaging`": "`true`", "`PalbeCall`": "`true`"])
    let manifest = try Manifest()
    for (product, answer) in answers {
      let name = product.trimmingCharacters(in: ["`"])
      let below = try manifest.stack(of: name).keys.map { try manifest.dependencies(of: $0) }
      let links = below.reduce(Set()) { $0.union($1) }
      #expect(!links.isDisjoint(with: ["PalbeMLS", "PalbeDTLS"]) == (answer == "`true`"), "\(product)")
    }
  }

  @Test("S0-11: nine namespaces are reserved, and every one that pb has is among them")
  func reservedNamespaces() throws {
    let text = try document("docs/sdk.md")
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("Reserved: ") })
    let reserved = Set(line.matches(of: /`(\w+)`/).map { String($0.1) })
    #expect(
      reserved == [
        "auth", "analytics", "flags", "realtime", "notifications", "perf", "messaging", "purchases", "debug",
      ])
    var found = 0
    for source in try ProductSources() {
      for match in source.text.matches(of: /public (?:static )?var (\w+): \w+Namespace\b/) {
        found += 1
        #expect(reserved.contains(String(match.1)), "\(source.name): pb.\(match.1)")
      }
    }
    #expect(found >= 2)
  }

  @Test("S0-142: no route of the server asks for an attestation header")
  func noAttestation() throws {
    let text = try document("docs/openapi.json").lowercased()
    #expect(text.contains("\"bearer\"") && !text.contains("attest"))
  }
}
