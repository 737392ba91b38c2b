import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: chats between two")
struct EngineDirectChatTests {
  @Test(
    "S0-3, S0-12, S0-16, S0-31: the first message founds a chat, which appears at the other and can be answered"
  )
  func conversation() throws {
    let world = try ChatWorld(seed: 1)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    #expect(world.settle())
    let chat = try world.directChat(anna, with: ben.user)
    #expect(try world.directChat(anna, with: ben.user) == chat)
    #expect(world.settle())
    #expect(world.head(anna, chat)?.standing == .draft)

    try world.send("hello", from: anna, to: chat)
    #expect(world.texts(anna, chat) == ["hello"])
    #expect(world.rows(anna, chat).first?.delivery == .pending)
    #expect(world.settle())
    let group = try #require(world.head(anna, chat)?.group)
    let other = try #require(world.chat(ben, group))
    #expect(world.texts(ben, other) == ["hello"])
    #expect(world.rows(anna, chat).first?.delivery == .sent)
    #expect(world.summary(ben, other)?.unreadCount == 1)

    try world.send("hi", from: ben, to: other)
    #expect(world.settle())
    #expect(world.texts(anna, chat) == ["hello", "hi"])
    #expect(world.texts(ben, other) == ["hello", "hi"])
    #expect(world.violations() == [])
  }

  @Test(
    "Section 3 #35, 2.9c: both begin at once; one group wins, and nothing that was queued is lost",
    arguments: 1...8)
  func bothAtOnce(seed: UInt64) throws {
    let world = try ChatWorld(seed: seed)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    world.settle()
    let annas = try world.directChat(anna, with: ben.user)
    let bens = try world.directChat(ben, with: anna.user)
    try world.send("from anna", from: anna, to: annas)
    try world.send("from ben", from: ben, to: bens)
    #expect(world.settle())
    #expect(world.head(anna, annas)?.group == world.head(ben, bens)?.group)
    #expect(Set(world.texts(anna, annas)) == ["from anna", "from ben"])
    #expect(world.texts(anna, annas) == world.texts(ben, bens))
    #expect(world.violations() == [])
  }

  @Test("S0-104, 2.9f: all devices of both are in it, and one's own sends come to one's other devices")
  func severalDevices() throws {
    let world = try ChatWorld(seed: 3)
    let anna = world.addPhone("anna.1")
    let annas = world.addPhone("anna.2", of: anna.user)
    let ben = world.addPhone("ben.1")
    let bens = world.addPhone("ben.2", of: ben.user)
    world.settle()
    let chat = try world.directChat(anna, with: ben.user)
    try world.send("hello", from: anna, to: chat)
    #expect(world.settle())
    let group = try #require(world.head(anna, chat)?.group)
    for phone in [annas, ben, bens] {
      let chat = try #require(world.chat(phone, group))
      #expect(world.texts(phone, chat) == ["hello"])
    }
    let own = try #require(world.chat(annas, group))
    #expect(world.summary(annas, own)?.unreadCount == 0)
    try world.send("from the other", from: annas, to: own)
    #expect(world.settle())
    #expect(world.texts(anna, chat) == ["hello", "from the other"])
    #expect(world.violations() == [])
  }

  @Test(
    "2.2 no_key_package: a peer without a device fails the message with a code, and a retry reaches them later"
  )
  func nobodyThere() throws {
    let world = try ChatWorld(seed: 4)
    let anna = world.addPhone("anna")
    world.settle()
    let ben = UserID(at: world.now.wall, using: &world.random)
    let chat = try world.directChat(anna, with: ben)
    let message = try world.send("hello", from: anna, to: chat)
    #expect(world.settle())
    #expect(world.rows(anna, chat).first?.delivery == .failed(code: "user_not_found"))
    #expect(world.head(anna, chat)?.standing == .draft)

    let phone = world.addPhone("ben", of: ben)
    world.settle()
    try world.use(anna) { (engine, now) throws(EngineError) in try engine.retry(message, in: chat, at: now) }
    #expect(world.settle())
    #expect(world.rows(anna, chat).first?.delivery == .sent)
    let other = try #require(world.chat(phone, world.head(anna, chat)?.group))
    #expect(world.texts(phone, other) == ["hello"])
    #expect(world.violations() == [])
  }

  @Test("S3-18: a message that failed can be given up")
  func cancelled() throws {
    let world = try ChatWorld(seed: 5)
    let anna = world.addPhone("anna")
    world.settle()
    let chat = try world.directChat(anna, with: UserID(at: world.now.wall, using: &world.random))
    let message = try world.send("hello", from: anna, to: chat)
    world.settle()
    try world.use(anna) { (engine, now) throws(EngineError) in try engine.cancel(message, in: chat, at: now) }
    #expect(world.rows(anna, chat).isEmpty)
    world.restart(anna)
    #expect(world.settle())
    #expect(world.rows(anna, chat).isEmpty)
  }

  @Test("Section 3 #1: an answer that is lost changes nothing: the same bytes go again, and stand once")
  func lostAnswers() throws {
    let world = try ChatWorld(seed: 6)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    world.settle()
    let chat = try world.directChat(anna, with: ben.user)
    var losses = 0
    world.losesAnswer = { _, request in
      switch request {
      case .createGroup, .send:
        losses += 1
        return losses <= 4
      default: return false
      }
    }
    try world.send("one", from: anna, to: chat)
    try world.send("two", from: anna, to: chat)
    #expect(world.settle())
    let other = try #require(world.chat(ben, world.head(anna, chat)?.group))
    #expect(world.texts(ben, other) == ["one", "two"])
    #expect(world.texts(anna, chat) == ["one", "two"])
    #expect(world.violations() == [])
  }

  @Test(
    "Section 3 #17, #3: the queue comes again after a crash between storing and acknowledging, and changes nothing"
  )
  func crashBeforeAcknowledging() throws {
    let world = try ChatWorld(seed: 7)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    world.settle()
    let chat = try world.directChat(anna, with: ben.user)
    world.losesRequest = { phone, request in
      if case .acknowledge = request { phone === ben } else { false }
    }
    try world.send("one", from: anna, to: chat)
    world.run(for: .seconds(1))
    let other = try #require(world.chat(ben, world.head(anna, chat)?.group))
    #expect(world.texts(ben, other) == ["one"])
    world.restart(ben)
    world.run(for: .seconds(5))
    #expect(world.texts(ben, other) == ["one"])
    world.losesRequest = nil
    #expect(world.settle())
    #expect(world.texts(ben, other) == ["one"])
    #expect(world.violations() == [])
  }
}
