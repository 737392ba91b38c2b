import PalbeChatKit
import Testing

@Suite("Engine: random histories")
struct EngineHistoryTests {
  @Test(
    "Issue 6: over a network that loses, doubles and reorders, all that was taken stands once, in one order",
    arguments: 1...12)
  func network(seed: UInt64) throws {
    try expectSound(.make(seed: seed, faults: [.connections]))
  }

  @Test(
    "S3-30, issue 6: the same with processes that end at every transaction, partitions and clocks that jump",
    arguments: 1...24)
  func crashes(seed: UInt64) throws {
    try expectSound(.make(seed: seed &+ 10_000))
  }

  private func expectSound(_ story: ChatStory) throws {
    var history = try ChatHistory(story)
    let problems = history.run()
    #expect(problems == [], "\(story.text)\n\(history.log.suffix(60).joined(separator: "\n"))")
  }

  @Test("Issue 6: a history is a value: it replays from its file, and the same again")
  func replays() throws {
    let story = ChatStory.make(seed: 7)
    #expect(ChatStory(text: story.text) == story)
    #expect(ChatStory(text: "story 1 2") == nil)
    #expect(ChatStory(text: story.text + "dance 1 2 3 4 5\n") == nil)
    var (one, other) = (try ChatHistory(story), try ChatHistory(story))
    #expect(one.run() == other.run())
    #expect(one.log == other.log)
    #expect(one.world.ledger.messages == other.world.ledger.messages)
  }

  @Test("Issue 6: a history that fails is made small: what does not matter is gone")
  func shrinks() {
    let story = ChatStory.make(seed: 3)
    // What "fails" here needs a message and, somewhere behind it, a reaction.
    func fails(_ story: ChatStory) -> Bool {
      guard let said = story.steps.firstIndex(where: { $0.action == .say }) else { return false }
      return story.steps[said...].contains { $0.action == .react }
    }
    let small = story.shrunk(while: fails)
    #expect(fails(story))
    #expect(small.steps.map(\.action) == [.say, .react])
    #expect(small.loss == 0 && small.devices == 1)
  }
}
