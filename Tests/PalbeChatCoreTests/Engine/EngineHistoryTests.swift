import PalbeChatCore
import PalbeChatKit
import Testing

@Suite("Engine: random histories")
struct EngineHistoryTests {
  @Test(
    "Issue 6: over a network that loses, doubles and reorders, all that was taken stands once, in one order",
    arguments: 1...60)
  func network(seed: UInt64) throws {
    var settings = ChatHistory.Settings()
    settings.crashes = false
    settings.partitions = false
    var history = try ChatHistory(seed: seed, settings)
    let problems = history.run()
    #expect(problems == [], "seed \(seed)\n\(history.log.suffix(60).joined(separator: "\n"))")
  }

  @Test(
    "Issue 6: the same with processes that end at every transaction, and with partitions", arguments: 1...160)
  func crashes(seed: UInt64) throws {
    var history = try ChatHistory(seed: seed &+ 10_000)
    let problems = history.run()
    #expect(problems == [], "seed \(seed &+ 10_000)\n\(history.log.suffix(60).joined(separator: "\n"))")
  }
}
