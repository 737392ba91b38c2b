import Foundation
import PalbeTestKit
import Testing

/// The sources of the products, comments left out.
struct ProductSources: Sequence {
  struct Source {
    let name: String
    /// `PalbeMessaging` and the like.
    let product: String
    let text: String
  }

  let sources: [Source]

  init() throws {
    let root = Vectors.projectRoot.appendingPathComponent("Sources/SDK")
    let files = FileManager.default.enumerator(at: root, includingPropertiesForKeys: nil)
    sources = try (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "swift" }.map {
      file in
      let text = try String(contentsOf: file, encoding: .utf8)
      let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        .filter { !$0.drop { $0 == " " }.hasPrefix("//") }
      let product = file.path.dropFirst(root.path.count + 1).prefix { $0 != "/" }
      return Source(
        name: file.lastPathComponent, product: String(product), text: lines.joined(separator: "\n"))
    }
  }

  func makeIterator() -> [Source].Iterator { sources.makeIterator() }

  /// Names of types, functions and properties that are public in the products of chats.
  func publicNames() -> Set<String> {
    var names: Set<String> = []
    for source in sources where ["Palbase", "Palbe", "PalbeMessaging"].contains(source.product) {
      let declarations = source.text.matches(
        of:
          /public (?:internal\(set\) |private\(set\) |package\(set\) |nonisolated |static |final |mutating |indirect |convenience )*(?:struct|enum|class|actor|protocol|typealias|func|var|let) (\w+)/
      )
      for match in declarations { names.insert(String(match.1)) }
    }
    return names
  }
}

@Suite("What the products show, and what they do not")
struct PublicNamesTests {
  @Test("S0-10, S4-50: no product imports an inner module into its interface")
  func inner() throws {
    let allowed: Set = ["Foundation", "Observation", "Palbase", "Palbe", "PalbeMessaging", "Dispatch"]
    var seen = 0
    for source in try ProductSources() where source.product != "MLSFiles" {
      for match in source.text.matches(of: /(?m)^\s*(?:@\w+ )*public import (?:\w+ )?(\w+)/) {
        seen += 1
        #expect(allowed.contains(String(match.1)), "\(source.name) shows \(match.1)")
      }
      #expect(!source.text.contains("@_exported import PalbeChatCore"), "\(source.name)")
      for match in source.text.matches(of: /@_exported (?:public )?import (\w+)/) {
        #expect(allowed.contains(String(match.1)), "\(source.name) exports \(match.1)")
      }
    }
    #expect(seen > 0)
  }

  @Test("S0-10, S0-138: what the original showed of its engine is not public")
  func engineNames() throws {
    let names = try ProductSources().publicNames()
    for name in [
      "PalbeMlsClient", "PalbeMlsGroup", "generateClient", "PalbeMlsError", "RebaseExhausted", "ChatEngine",
      "MLSGroup", "MLSTransaction", "Transcript",
      "enroll", "createGroup", "history", "onMessage", "claimKeyPackages", "listDevices", "replenish",
      "resetMessagingLocalState", "onKeyChange",
    ] {
      #expect(!names.contains(name), "\(name)")
    }
    // The look itself finds what is there.
    #expect(names.isSuperset(of: ["configure", "registerDeviceToken", "BackendError", "CallMediaRegistry"]))
  }

  @Test("S0-99, S0-135: no store that nobody fills, no spaces and no threads")
  func absentNames() throws {
    let names = try ProductSources().publicNames()
    for name in ["PresenceStore", "TypingStore", "ReceiptsStore"] {
      #expect(!names.contains(name), "\(name)")
    }
    for name in names {
      let word = name.lowercased()
      #expect(!word.hasPrefix("space") && !word.contains("threadid") && !word.hasPrefix("thread"), "\(name)")
    }
  }

  @Test("S0-136, S0-139: what the original lacks is there")
  func presentNames() throws {
    let sources = try ProductSources()
    let names = sources.publicNames()
    for name in [
      "rename", "setRole", "disappearingAckedBy", "KeyChangeEvent", "displayName", "isMuted", "refound",
    ] {
      #expect(names.contains(name), "\(name)")
    }
    let chats = sources.filter { $0.product == "PalbeMessaging" }.map(\.text).joined()
    #expect(chats.contains(/public func send\(\s*video/) && chats.contains(/case changed\(KeyChangeEvent\)/))
  }
}
