import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: what the server can tell of a message")
struct EngineBlindnessTests {
  /// What goes out for each content, from a chat of two.
  private func sent(_ contents: [(Content, Expiry?)]) throws -> [ServerMessage] {
    let world = try ChatWorld(seed: 81)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    #expect(world.settle())
    let chat = try world.directChat(anna, with: ben.user)
    try world.send("first", from: anna, to: chat)
    #expect(world.settle())
    var sent: [ServerMessage] = []
    world.onRequest = { phone, request in
      if phone === anna, case .send(_, let message) = request { sent.append(message) }
    }
    for (content, expiry) in contents {
      _ = try world.use(anna) { (engine, now) throws(EngineError) in
        try engine.send(content, to: chat, expiry: expiry, at: now)
      }
      #expect(world.settle())
    }
    // Those with a time to disappear do.
    world.run(for: .seconds(120))
    #expect(world.settle())
    #expect(world.violations() == [])
    return sent
  }

  private func isIn(_ part: [UInt8], _ whole: [UInt8]) -> Bool {
    whole.indices.contains { whole[$0...].starts(with: part) }
  }

  @Test("S0-2, S0-76, S0-79, S0-84: a mention and a time to disappear change nothing that the server sees")
  func sameToTheServer() throws {
    var random = RandomSource(seed: 5)
    let user = UserID(at: WallTime(microseconds: 1_800_000_000_000_000), using: &random)
    let text = "hello @ben, the secret word is xyzzy"
    let plain = Content.text(TextBody(text))
    let mentioning = Content.text(
      TextBody(text, mentions: [Mention(start: 6, length: 4, user: user)]))
    let messages = try sent([
      (plain, nil), (mentioning, nil), (plain, Expiry(seconds: 60)), (mentioning, Expiry(seconds: 60)),
    ])
    #expect(messages.count == 4)
    let first = try #require(messages.first)
    for message in messages {
      // An id that is random, and bytes of one length: all else is the same.
      #expect(message.wakes == first.wakes && message.epoch == first.epoch)
      #expect(message.blob.count == first.blob.count)
      #expect(!isIn(Array("xyzzy".utf8), message.blob) && !isIn(user.bytes, message.blob))
    }
    #expect(first.wakes)
  }

  @Test("S0-64, S0-69: of reactions, edits and deletions the server is told that nobody is to be woken")
  func silent() throws {
    var random = RandomSource(seed: 6)
    let target = ClientMessageID(at: WallTime(microseconds: 1_800_000_000_000_000), using: &random)
    let messages = try sent([
      (.reaction(target: target, emoji: "👍", isRemoved: false), nil), (.delete(target: target), nil),
      (.edit(target: target, TextBody("other")), nil), (.text(TextBody("said")), nil),
    ])
    #expect(messages.map(\.wakes) == [false, false, false, true])
  }
}
