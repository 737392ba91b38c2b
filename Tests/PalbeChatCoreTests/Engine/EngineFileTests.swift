import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: files on their way")
struct EngineFileTests {
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
    }

    func captions(_ phone: Phone, _ chat: ChatID) -> [String?] {
      world.rows(phone, chat).map { $0.text ?? $0.caption }
    }
    func uploads() -> [PendingUpload] {
      (try? world.use(anna) { (engine, _) in engine.pendingUploads() }) ?? []
    }
    func expectSound(_ location: SourceLocation = #_sourceLocation) {
      #expect(world.settle(), sourceLocation: location)
      #expect(world.violations() == [], sourceLocation: location)
      #expect(anna.spools.isEmpty && ben.spools.isEmpty, sourceLocation: location)
    }
  }

  @Test(
    "S3-13, S3-18: a file stands at once, what is said behind it overtakes it, and it goes when its bytes are up"
  )
  func overtaken() throws {
    let pair = try Pair(seed: 61)
    let id = try pair.world.sendFile("photo", from: pair.anna, to: pair.annas, kind: .image, taking: 20_000)
    try pair.world.send("behind it", from: pair.anna, to: pair.annas)
    #expect(pair.captions(pair.anna, pair.annas) == ["hello", "photo", "behind it"])
    #expect(pair.uploads().map(\.standing) == [.waiting])
    pair.world.run(for: .seconds(5))
    #expect(pair.captions(pair.ben, pair.bens) == ["hello", "behind it"])
    #expect(pair.world.rows(pair.anna, pair.annas).last?.delivery == .pending)
    pair.expectSound()
    #expect(pair.captions(pair.ben, pair.bens) == ["hello", "behind it", "photo"])
    #expect(pair.captions(pair.anna, pair.annas) == ["hello", "behind it", "photo"])
    // What is sent names the bytes that went up.
    let rows = [pair.world.rows(pair.anna, pair.annas), pair.world.rows(pair.ben, pair.bens)].compactMap(
      \.last)
    #expect(rows[0].attachment == rows[1].attachment)
    #expect(pair.uploads().isEmpty)
    let settled = pair.anna.events.compactMap { event -> Int64? in
      if case .settled(pair.annas, id, let seq, _) = event { seq } else { nil }
    }
    #expect(settled == [rows[0].seq])
  }

  @Test("S3-18: an upload that fails shows, is wanted again by a retry, and can be given up")
  func failed() throws {
    let pair = try Pair(seed: 62)
    let first = try pair.world.sendFile("first", from: pair.anna, to: pair.annas, failures: 1)
    let second = try pair.world.sendFile("second", from: pair.anna, to: pair.annas, failures: 1)
    #expect(pair.world.settle())
    #expect(
      pair.world.rows(pair.anna, pair.annas).suffix(2).allSatisfy {
        $0.delivery == .failed(code: "attachment_too_large")
      })
    #expect(pair.anna.events.contains(.failed(pair.annas, first, code: "attachment_too_large")))
    #expect(
      pair.uploads().map(\.standing) == .init(repeating: .failed(code: "attachment_too_large"), count: 2))
    #expect(pair.anna.spools.count == 2)
    try pair.world.use(pair.anna) { (engine, now) throws(EngineError) in
      try engine.retry(first, in: pair.annas, at: now)
      try engine.cancel(second, in: pair.annas, at: now)
    }
    pair.expectSound()
    #expect(pair.captions(pair.ben, pair.bens) == ["hello", "first"])
    #expect(pair.captions(pair.anna, pair.annas) == ["hello", "first"])
  }

  @Test("Section 3 #17, S3-14: a file that waits for its bytes or for the server is there after a restart")
  func restarted() throws {
    let pair = try Pair(seed: 63)
    try pair.world.sendFile("one", from: pair.anna, to: pair.annas, taking: 5_000)
    pair.world.run(for: .seconds(1))
    pair.world.restart(pair.anna)
    #expect(pair.captions(pair.anna, pair.annas) == ["hello", "one"])
    #expect(pair.uploads().map(\.standing) == [.waiting])
    pair.world.losesRequest = { _, request in if case .send = request { true } else { false } }
    pair.world.run(for: .seconds(8))
    #expect(pair.uploads().map(\.standing) == [.released])
    pair.world.restart(pair.anna)
    #expect(pair.uploads().map(\.standing) == [.released])
    pair.world.losesRequest = nil
    pair.expectSound()
    #expect(pair.captions(pair.ben, pair.bens) == ["hello", "one"])
  }

  @Test("S0-12, S3-14: a file can be the first thing said; it is not lost where its chat is over")
  func founding() throws {
    let pair = try Pair(seed: 64)
    let carl = pair.world.addPhone("carl")
    pair.world.settle()
    let chat = try pair.world.directChat(pair.anna, with: carl.user)
    try pair.world.sendFile("voice", from: pair.anna, to: chat, kind: .voice)
    pair.expectSound()
    let other = try #require(pair.world.chat(carl, pair.world.head(pair.anna, chat)?.group))
    #expect(pair.captions(carl, other) == ["voice"])

    try pair.world.sendFile("late", from: pair.anna, to: chat, taking: 60_000)
    pair.world.command(pair.anna, .leave(chat))
    pair.world.run(for: .seconds(5))
    #expect(pair.world.head(pair.anna, chat)?.standing == .left)
    #expect(pair.uploads().map(\.standing) == [.failed(code: "not_a_member")])
    let message = try #require(pair.uploads().first?.message)
    // The pair begins again, and the bytes go up to the new group.
    try pair.world.use(pair.anna) { (engine, now) throws(EngineError) in
      try engine.retry(message, in: chat, at: now)
    }
    pair.expectSound()
    #expect(
      pair.captions(carl, try #require(pair.world.chat(carl, pair.world.head(pair.anna, chat)?.group))).last
        == "late")
  }
}
