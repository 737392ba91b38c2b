import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: what is live")
struct EngineLiveTests {
  private struct Pair {
    let world: ChatWorld
    let anna: Phone
    let ben: Phone
    let annas: ChatID
    let bens: ChatID

    init(seed: UInt64) throws {
      world = try ChatWorld(seed: seed)
      anna = world.addPhone("anna")
      ben = world.addPhone("ben")
      world.settle()
      annas = try world.directChat(anna, with: ben.user)
      try world.send("hello", from: anna, to: annas)
      #expect(world.settle())
      bens = try #require(world.chat(ben, world.head(anna, annas)?.group))
      world.run(for: .seconds(1))
    }

    func typing(_ phone: Phone) -> [[UserID]] {
      phone.events.compactMap { if case .typing(_, let users) = $0 { users } else { nil } }
    }
  }

  @Test(
    "S0-94, S0-98, 2.9k: typing is told every three seconds, ends at once, and clears by itself after six")
  func typing() throws {
    let pair = try Pair(seed: 21)
    var told = 0
    pair.world.onRequest = { _, request in if case .setTyping = request { told += 1 } }
    for _ in 0..<20 {
      pair.world.setTyping(true, pair.anna, pair.annas)
      pair.world.run(for: .milliseconds(250))
    }
    #expect((2...3).contains(told))
    #expect(pair.typing(pair.ben).last == [pair.anna.user])
    pair.world.setTyping(false, pair.anna, pair.annas)
    pair.world.run(for: .milliseconds(200))
    #expect(pair.typing(pair.ben).last == [])

    pair.world.setTyping(true, pair.anna, pair.annas)
    pair.world.run(for: .milliseconds(500))
    #expect(pair.typing(pair.ben).last == [pair.anna.user])
    pair.world.kill(pair.anna)
    pair.world.run(for: .seconds(7))
    #expect(pair.typing(pair.ben).last == [])
  }

  @Test(
    "S0-91, S0-92, S0-96: delivered and read watermarks rise and never fall; the cursor goes to one's own devices"
  )
  func receipts() throws {
    let pair = try Pair(seed: 22)
    #expect(pair.world.summary(pair.anna, pair.annas)?.deliveredUpTo ?? 0 > 0)
    #expect(pair.world.summary(pair.anna, pair.annas)?.readUpTo == 0)
    let seq = try #require(pair.world.rows(pair.ben, pair.bens).last?.seq)
    #expect(pair.world.summary(pair.ben, pair.bens)?.unreadCount == 1)
    pair.world.command(pair.ben, .markRead(pair.bens, upTo: seq))
    #expect(pair.world.settle())
    pair.world.run(for: .seconds(1))
    #expect(pair.world.summary(pair.ben, pair.bens)?.unreadCount == 0)
    #expect(pair.world.summary(pair.anna, pair.annas)?.readUpTo == seq)
    pair.world.command(pair.ben, .markRead(pair.bens, upTo: seq - 1))
    #expect(pair.world.settle())
    #expect(pair.world.summary(pair.anna, pair.annas)?.readUpTo == seq)
    #expect(pair.world.violations() == [])
  }

  @Test("S0-87, S0-90: scope and the server's count; both are refused on a draft (S0-17)")
  func scope() throws {
    let pair = try Pair(seed: 23)
    let set = pair.world.command(pair.ben, .setNotifyScope(pair.bens, .none))
    let unread = pair.world.command(pair.ben, .refreshUnread(pair.bens))
    #expect(pair.world.settle())
    #expect(pair.world.result(of: set, pair.ben) == .notifyScope(.none))
    #expect(pair.world.summary(pair.ben, pair.bens)?.notifyScope == NotifyScope.none)
    guard case .unread(let count)? = pair.world.result(of: unread, pair.ben) else {
      Issue.record("no count")
      return
    }
    #expect(count.unreadCount == 1)
    let draft = try pair.world.groupChat(pair.ben, [])
    let refused = pair.world.command(pair.ben, .refreshUnread(draft))
    #expect(pair.world.result(of: refused, pair.ben) == .failed(code: "chat_is_draft"))
  }

  @Test(
    "Section 3 #26: a call's key is alike in an epoch; the one before stays for ten seconds, and no longer")
  func secrets() throws {
    let world = try ChatWorld(seed: 24)
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    let carl = world.addPhone("carl")
    world.settle()
    let chat = try world.groupChat(anna, [ben.user])
    try world.send("hello", from: anna, to: chat)
    #expect(world.settle())
    let other = try #require(world.chat(ben, world.head(anna, chat)?.group))
    func key(_ phone: Phone, _ chat: ChatID, _ epoch: UInt64) -> [UInt8]? {
      world.callKey(phone, chat, epoch)
    }
    let epoch = try #require(world.head(anna, chat)?.epoch)
    let first = try #require(key(anna, chat, epoch))
    #expect(key(ben, other, epoch) == first)
    world.command(anna, .addMember(chat, carl.user))
    #expect(world.settle())
    #expect(key(anna, chat, epoch) == first)
    #expect(key(ben, other, epoch) == first)
    let second = try #require(key(anna, chat, epoch + 1))
    #expect(second != first)
    #expect(key(ben, other, epoch + 1) == second)
    world.run(for: .seconds(21))
    #expect(key(anna, chat, epoch) == nil)
    #expect(key(ben, other, epoch) == nil)
  }
}
