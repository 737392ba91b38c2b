import PalbeChatCore
import PalbeChatKit
import PalbeMLS
import PalbeUnits
import Testing

@Suite("Engine: sessions, clocks, sleep, and what it costs")
struct EngineLifecycleTests {
  @Test("2.2 no_key_package: a message to who has no device yet waits, says why, and goes once there is one")
  func peerWithoutDevice() throws {
    let world = try ChatWorld(seed: 71)
    let anna = world.addPhone("anna")
    world.settle()
    let ben = try world.addUser()
    let chat = try world.directChat(anna, with: ben)
    var claims = 0
    world.onRequest = { _, request in if case .claimKeyPackages(ben) = request { claims += 1 } }
    let message = try world.send("hello", from: anna, to: chat)
    world.run(for: .seconds(3_600))
    #expect(world.rows(anna, chat).map(\.delivery) == [.pending])
    #expect(try world.use(anna) { (engine, _) in engine.waitReason(of: chat) } == "no_key_package")
    // Waits grow.
    #expect((8...14).contains(claims), "\(claims) in an hour")
    let before = claims
    try world.use(anna) { (engine, now) throws(EngineError) in try engine.retry(message, in: chat, at: now) }
    world.dropSocket(anna)
    world.run(for: .seconds(1))
    #expect(claims > before)
    world.restart(anna)
    world.run(for: .seconds(1))
    #expect(world.rows(anna, chat).map(\.delivery) == [.pending])

    let phone = world.addPhone("ben", of: ben)
    world.run(for: .seconds(60))
    #expect(world.settle())
    #expect(world.rows(anna, chat).map(\.delivery) == [.sent])
    #expect(try world.use(anna) { (engine, _) in engine.waitReason(of: chat) } == nil)
    let other = try #require(world.chat(phone, world.head(anna, chat)?.group))
    #expect(world.texts(phone, other) == ["hello"])
    #expect(world.violations() == [])
  }

  @Test(
    "2.2 no_key_package: what waits for a peer's first device can be given up, and their own first message ends it"
  )
  func peerComes() throws {
    let world = try ChatWorld(seed: 72)
    let anna = world.addPhone("anna")
    world.settle()
    let ben = try world.addUser()
    let chat = try world.directChat(anna, with: ben)
    let first = try world.send("first", from: anna, to: chat)
    try world.send("second", from: anna, to: chat)
    world.run(for: .seconds(300))
    try world.use(anna) { (engine, now) throws(EngineError) in try engine.cancel(first, in: chat, at: now) }
    let phone = world.addPhone("ben", of: ben)
    world.run(for: .seconds(2))
    let bens = try world.directChat(phone, with: anna.user)
    try world.send("hi", from: phone, to: bens)
    #expect(world.settle())
    #expect(world.texts(anna, chat) == ["hi", "second"])
    #expect(world.violations() == [])
  }

  @Test(
    "Section 3 #30: what disappears while the process does not run is gone when it opens, without a network")
  func expiredAtOpening() throws {
    let group = try EngineGroupTests.Group(seed: 73)
    let (world, phone, chat) = (group.world, group.phones[1], group.chats[1])
    try world.use(group.phones[0]) { (engine, now) throws(EngineError) in
      _ = try engine.send(
        .text(TextBody("passing")), to: group.chats[0], expiry: Expiry(seconds: 30, start: .send), at: now)
    }
    // The others still have it, until their time comes.
    #expect(world.settle())
    #expect(world.texts(phone, chat) == ["hello", "passing"])
    world.kill(phone)
    world.setReachable(phone, false)
    world.run(for: .seconds(40))
    world.start(phone)
    #expect(world.texts(phone, chat) == ["hello"])
    #expect(world.summary(phone, chat)?.lastMessage?.text == "hello")
    #expect(world.summary(phone, chat)?.unreadCount == 1)
    world.setReachable(phone, true)
    #expect(world.settle())
  }

  @Test("Section 3 #30: a machine that slept is told that its clock moved, and what is over goes")
  func slept() throws {
    let group = try EngineGroupTests.Group(seed: 74)
    let (world, phone, chat) = (group.world, group.phones[1], group.chats[1])
    try world.use(group.phones[0]) { (engine, now) throws(EngineError) in
      _ = try engine.send(
        .text(TextBody("passing")), to: group.chats[0], expiry: Expiry(seconds: 3_000, start: .send), at: now)
    }
    #expect(world.settle())
    try world.use(phone) { (engine, now) in
      var later = now
      later.wall = later.wall + .seconds(3_600)
      engine.clockMoved(at: later)
    }
    #expect(world.texts(phone, chat) == ["hello"])
    try world.use(phone) { (engine, now) in engine.clockMoved(at: now) }
    world.run(for: .seconds(3_100))
    #expect(world.settle())
  }

  @Test("S2-29: a suspended engine asks nothing, and goes on where it was")
  func suspended() throws {
    let group = try EngineGroupTests.Group(seed: 75)
    let (world, phone) = (group.world, group.phones[0])
    try world.send("before", from: phone, to: group.chats[0])
    try world.use(phone) { (engine, now) in engine.suspend(at: now) }
    var asked = 0
    world.onRequest = { asking, _ in if asking === phone { asked += 1 } }
    try world.send("meanwhile", from: phone, to: group.chats[0])
    try world.send("to you", from: group.phones[1], to: group.chats[1])
    world.run(for: .seconds(120))
    #expect(asked == 0)
    #expect(world.rows(phone, group.chats[0]).suffix(2).allSatisfy { $0.delivery == .pending })
    try world.use(phone) { (engine, now) in engine.start(at: now) }
    group.expectSound()
    #expect(Set(world.texts(phone, group.chats[0])) == ["hello", "before", "meanwhile", "to you"])
    #expect(world.texts(phone, group.chats[0]) == world.texts(group.phones[1], group.chats[1]))
  }

  @Test("2.2 not_signed_in: what waited for a session goes out as soon as there is one")
  func signedIn() throws {
    let group = try EngineGroupTests.Group(seed: 76)
    let (world, phone) = (group.world, group.phones[0])
    world.refuses = { asking, _ in asking === phone ? .notSignedIn : nil }
    try world.send("later", from: phone, to: group.chats[0])
    world.run(for: .seconds(5))
    #expect(phone.events.contains(.notSignedIn))
    world.refuses = nil
    try world.use(phone) { (engine, now) in engine.signedIn(at: now) }
    world.run(for: .milliseconds(500))
    #expect(world.texts(group.phones[1], group.chats[1]) == ["hello", "later"])
    group.expectSound()
  }

  @Test("S0-91, S0-97: watermarks of others are told, and can be read")
  func receipts() throws {
    let group = try EngineGroupTests.Group(seed: 77)
    let (world, anna, ben) = (group.world, group.phones[0], group.phones[1])
    let seq = try #require(world.rows(ben, group.chats[1]).last?.seq)
    world.command(ben, .markRead(group.chats[1], upTo: seq))
    #expect(world.settle())
    world.run(for: .seconds(1))
    #expect(anna.events.contains(.receipts(group.chats[0])))
    let read = try world.use(anna) { (engine, now) throws(EngineError) in
      (
        try engine.readWatermark(of: ben.user, in: group.chats[0], at: now),
        try engine.readers(upTo: seq, in: group.chats[0], at: now)
      )
    }
    #expect(read.0 == seq && read.1 == [ben.user])
    let devices = try world.use(anna) { (engine, now) throws(EngineError) in
      try engine.devices(of: ben.user, in: group.chats[0], at: now)
    }
    #expect(devices.count == 1 && devices.first?.signatureKey.isEmpty == false)
  }

  @Test(
    "Section 3 #18: a text is one transaction until its request, its confirmation another, and no record is written twice"
  )
  func transactions() throws {
    let group = try EngineGroupTests.Group(seed: 78, ["anna", "ben"])
    let (world, phone) = (group.world, group.phones[0])
    try world.send("warm", from: phone, to: group.chats[0])
    group.expectSound()
    _ = phone.storage.takeUsage()
    try world.send("text", from: phone, to: group.chats[0])
    let sent = phone.storage.takeUsage()
    #expect(sent.transactions == 1)
    #expect(Set(sent.records).count == sent.records.count)
    // The ratchet and the group's revision, what waits, the pending row, the summary.
    #expect(sent.records.count <= 6, "\(sent.records)")
    #expect(world.settle())
    world.run(for: .seconds(1))
    let confirmed = phone.storage.takeUsage()
    #expect(confirmed.transactions <= 2, "the confirmation, and the other's watermark")
    let receiver = group.phones[1]
    _ = receiver.storage.takeUsage()
    try world.send("another", from: phone, to: group.chats[0])
    #expect(world.settle())
    let received = receiver.storage.takeUsage()
    #expect(received.transactions == 1)
    #expect(received.records.count <= 7, "\(received.records)")
  }

  @Test("S3-28: opening reads two records a chat where the list was read before, and none of its rows")
  func opening() throws {
    let group = try EngineGroupTests.Group(seed: 79)
    let (world, phone) = (group.world, group.phones[0])
    for number in 0..<20 {
      try world.send("m\(number)", from: phone, to: group.chats[0])
      _ = try world.groupChat(phone, [], title: "g\(number)")
    }
    group.expectSound()
    let storage = phone.storage
    world.kill(phone)
    _ = storage.takeUsage()
    let summaries = try ChatSummary.all(in: storage)
    #expect(summaries.count == 21 && storage.takeUsage().reads.count == 21)
    var configuration = EngineConfiguration(me: phone.user)
    configuration.keyPackageCount = 6
    let engine = try ChatEngine.open(
      configuration, storage: storage, summaries: summaries, random: RandomSource(seed: 1), at: world.now)
    let usage = storage.takeUsage()
    #expect(usage.transactions == 0)
    // A head for each, how far its log got where there is one, and the device.
    #expect(usage.reads.count <= 21 * 2 + 4, "\(usage.reads.count)")
    #expect(engine.allChats.count == 21)
  }
}
