import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: what should not happen")
struct EngineFaultTests {
  private func spoiled(_ row: QueueRow, _ kind: ServerLogRow.Kind) -> QueueRow {
    guard case .message(let group, var message) = row.content, message.kind == kind else { return row }
    message.blob[message.blob.count - 1] ^= 1
    return QueueRow(id: row.id, content: .message(group, message))
  }

  @Test(
    "2.2 undecryptable: a message that cannot be read has a row, is gone from the queue, and the next one comes"
  )
  func unreadable() throws {
    let group = try EngineGroupTests.Group(seed: 51)
    group.world.tampers = { phone, row in phone.name == "carl" ? self.spoiled(row, .application) : row }
    try group.world.send("spoiled", from: group.phones[0], to: group.chats[0])
    #expect(group.world.settle())
    group.world.tampers = nil
    try group.world.send("whole", from: group.phones[0], to: group.chats[0])
    #expect(group.world.settle())
    #expect(group.world.texts(group.phones[2], group.chats[2]) == ["hello", "whole"])
    #expect(group.world.rows(group.phones[2], group.chats[2]).contains { $0.kind == .unreadable })
    #expect(group.phones[2].events.contains { if case .undecryptable = $0 { true } else { false } })
    #expect(group.world.texts(group.phones[1], group.chats[1]) == ["hello", "spoiled", "whole"])
  }

  @Test(
    "Section 3 #4, #9: a commit that cannot be followed is a state that shows; founding anew brings everybody back"
  )
  func diverged() throws {
    let group = try EngineGroupTests.Group(seed: 52)
    group.world.tampers = { phone, row in phone.name == "carl" ? self.spoiled(row, .commit) : row }
    #expect(group.end(0, .setRole(group.chats[0], group.phones[1].user, .admin)) == .done)
    group.world.tampers = nil
    #expect(group.head(2)?.standing == .diverged)
    #expect(group.phones[2].events.contains(.diverged(group.chats[2])))
    try group.world.send("carl is deaf", from: group.phones[1], to: group.chats[1])
    #expect(group.world.settle())
    #expect(group.world.texts(group.phones[2], group.chats[2]) == ["hello"])

    #expect(group.end(1, .reset(group.chats[1])) == .done)
    try group.world.send("again", from: group.phones[1], to: group.chats[1])
    group.expectSound()
    #expect(group.head(2)?.standing == .active)
    #expect(group.world.texts(group.phones[2], group.chats[2]) == ["hello", "again"])
    #expect(group.head(2)?.shape.role(of: group.phones[1].user) == .admin)
  }

  @Test("2.2 rebase_exhausted: a commit that is refused five times is given up with a code")
  func exhausted() throws {
    let group = try EngineGroupTests.Group(seed: 53)
    var refusals = 0
    group.world.refuses = { _, request in
      guard case .commit = request else { return nil }
      refusals += 1
      return .commitIncomplete([])
    }
    #expect(
      group.end(0, .setRole(group.chats[0], group.phones[1].user, .admin))
        == .failed(code: "rebase_exhausted"))
    #expect((5...6).contains(refusals))
    group.world.refuses = nil
    group.expectSound()
    #expect(group.end(0, .setRole(group.chats[0], group.phones[1].user, .admin)) == .done)
    group.expectSound()
  }

  @Test("2.9i: a device that was away for longer than its queue is kept comes back with a gap")
  func gap() throws {
    let group = try EngineGroupTests.Group(seed: 54)
    group.world.kill(group.phones[2])
    #expect(group.end(0, .setRole(group.chats[0], group.phones[1].user, .admin)) == .done)
    try group.world.send("long ago", from: group.phones[1], to: group.chats[1])
    group.world.settle()
    group.world.run(for: .seconds(32 * 86_400))
    #expect(group.end(0, .setRole(group.chats[0], group.phones[1].user, .member)) == .done)
    group.world.start(group.phones[2])
    try group.world.send("now", from: group.phones[1], to: group.chats[1])
    group.world.run(for: .seconds(30))
    group.expectSound()
    try group.world.send("later", from: group.phones[0], to: group.chats[0])
    group.expectSound()
    #expect(group.head(2)?.standing == .active)
    #expect(group.world.texts(group.phones[2], group.chats[2]).last == "later")
    #expect(group.world.rows(group.phones[2], group.chats[2]).contains { $0.kind == .system(.historyGap) })
  }

  @Test("2.9h: a new device that nobody adds comes in by itself")
  func alone() throws {
    let group = try EngineGroupTests.Group(seed: 55)
    for phone in group.phones { group.world.kill(phone) }
    let tablet = group.world.addPhone("anna.2", of: group.phones[0].user)
    group.world.run(for: .seconds(40))
    #expect(group.world.settle())
    for phone in group.phones { group.world.start(phone) }
    group.world.run(for: .seconds(30))
    try group.world.send("for the tablet", from: group.phones[1], to: group.chats[1])
    group.expectSound()
    let chat = try #require(group.world.chat(tablet, group.head(0)?.group))
    #expect(group.world.texts(tablet, chat) == ["for the tablet"])
    #expect(group.world.summary(tablet, chat)?.profile.name == "Tea")
  }
}
