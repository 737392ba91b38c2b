import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: groups")
struct EngineGroupTests {
  /// A group of three users, the first its owner, with everything settled.
  struct Group {
    let world: ChatWorld
    let phones: [Phone]
    let chats: [ChatID]

    init(seed: UInt64, _ names: [String] = ["anna", "ben", "carl"], title: String? = "Tea") throws {
      let world = try ChatWorld(seed: seed)
      let phones = names.map { world.addPhone($0) }
      world.settle()
      let chat = try world.groupChat(phones[0], phones.dropFirst().map(\.user), title: title)
      try world.send("hello", from: phones[0], to: chat)
      #expect(world.settle())
      let group = world.head(phones[0], chat)?.group
      chats = try phones.map { try #require(world.chat($0, group)) }
      (self.world, self.phones) = (world, phones)
    }

    func head(_ place: Int) -> ChatHead? { world.head(phones[place], chats[place]) }
    func expectSound(_ location: SourceLocation = #_sourceLocation) {
      #expect(world.settle(), sourceLocation: location)
      #expect(world.violations() == [], sourceLocation: location)
    }
    func end(_ place: Int, _ command: EngineCommand) -> CommandResult? {
      let id = world.command(phones[place], command)
      world.settle()
      return world.result(of: id, phones[place])
    }
  }

  @Test("S0-14, S0-30, S0-105: a group with a name that the server cannot read; its maker is the owner")
  func founded() throws {
    let group = try Group(seed: 11)
    group.expectSound()
    for place in 0..<3 {
      #expect(group.world.texts(group.phones[place], group.chats[place]) == ["hello"])
      #expect(group.head(place)?.shape.role(of: group.phones[0].user) == .owner)
      #expect(group.head(place)?.shape.role(of: group.phones[1].user) == .member)
      #expect(group.world.summary(group.phones[place], group.chats[place])?.profile.name == "Tea")
    }
  }

  @Test("3 #2: a member who sends proposals keeps nobody from adding or removing somebody")
  func proposals() throws {
    let group = try Group(seed: 19)
    let dora = group.world.addPhone("dora")
    group.world.settle()
    let id = try #require(group.head(0)?.group)
    try group.world.propose(group.phones[2], in: id)
    #expect(group.end(0, .addMember(group.chats[0], dora.user)) == .done)
    try group.world.propose(group.phones[2], in: id)
    #expect(group.end(0, .removeMember(group.chats[0], group.phones[2].user)) == .done)
    #expect(group.head(0)?.shape.role(of: dora.user) == .member)
  }

  @Test("S0-103, S0-104: somebody is added with all devices and sees what is said from then on")
  func added() throws {
    let group = try Group(seed: 12)
    let dora = group.world.addPhone("dora.1")
    let doras = group.world.addPhone("dora.2", of: dora.user)
    group.world.settle()
    #expect(group.end(1, .addMember(group.chats[1], dora.user)) == .done)
    try group.world.send("welcome", from: group.phones[2], to: group.chats[2])
    group.expectSound()
    for phone in [dora, doras] {
      let chat = try #require(group.world.chat(phone, group.head(0)?.group))
      #expect(group.world.texts(phone, chat) == ["welcome"])
      #expect(group.world.summary(phone, chat)?.profile.name == "Tea")
    }
    // Again it is nothing.
    #expect(group.end(0, .addMember(group.chats[0], dora.user)) == .done)
    group.expectSound()
  }

  @Test("S0-103: who is removed is told, hears no more, and a gap shows when they come again (2.9d)")
  func removed() throws {
    let group = try Group(seed: 13)
    #expect(group.end(1, .removeMember(group.chats[1], group.phones[2].user)) == .failed(code: "forbidden"))
    #expect(group.end(0, .removeMember(group.chats[0], group.phones[2].user)) == .done)
    try group.world.send("without carl", from: group.phones[1], to: group.chats[1])
    group.expectSound()
    #expect(group.head(2)?.standing == .removed)
    #expect(group.world.texts(group.phones[2], group.chats[2]) == ["hello"])
    #expect(throws: EngineError.notAMember) {
      try group.world.send("still here?", from: group.phones[2], to: group.chats[2])
    }

    #expect(group.end(1, .addMember(group.chats[1], group.phones[2].user)) == .done)
    try group.world.send("carl again", from: group.phones[0], to: group.chats[0])
    group.expectSound()
    #expect(group.head(2)?.standing == .active)
    #expect(group.world.texts(group.phones[2], group.chats[2]) == ["hello", "carl again"])
    #expect(
      group.world.rows(group.phones[2], group.chats[2]).contains { $0.kind == .system(.historyGap) })
  }

  @Test("S0-106: roles are given by owners, and what a role allows follows")
  func roles() throws {
    let group = try Group(seed: 14)
    #expect(
      group.end(1, .setRole(group.chats[1], group.phones[2].user, .admin)) == .failed(code: "forbidden"))
    #expect(group.end(0, .setRole(group.chats[0], group.phones[1].user, .admin)) == .done)
    group.expectSound()
    #expect(group.head(2)?.shape.role(of: group.phones[1].user) == .admin)
    #expect(group.end(1, .removeMember(group.chats[1], group.phones[2].user)) == .done)
    group.expectSound()
    #expect(group.head(0)?.shape.members.count == 2)
    // The last owner stays one.
    #expect(
      group.end(0, .setRole(group.chats[0], group.phones[0].user, .member)) == .failed(code: "forbidden"))
  }

  @Test("S0-29: a rename is an encrypted control, and who may not rename is not heard")
  func renamed() throws {
    let group = try Group(seed: 15)
    try group.world.use(group.phones[0]) { (engine, now) throws(EngineError) in
      try engine.send(.control(.renamed("Coffee")), to: group.chats[0], at: now)
    }
    group.expectSound()
    for place in 0..<3 {
      #expect(group.world.summary(group.phones[place], group.chats[place])?.profile.name == "Coffee")
    }
    #expect(throws: EngineError.forbidden) {
      try group.world.use(group.phones[1]) { (engine, now) throws(EngineError) in
        try engine.send(.control(.renamed("Mine")), to: group.chats[1], at: now)
      }
    }
  }

  @Test("2.9e: the owner leaves; the oldest admin, else the oldest member, is the owner everywhere")
  func ownerLeaves() throws {
    let group = try Group(seed: 16)
    #expect(group.end(0, .leave(group.chats[0])) == .done)
    group.world.run(for: .seconds(20))
    group.expectSound()
    #expect(group.head(0)?.standing == .left)
    let heirs = (1...2).map { place in
      group.head(place)?.shape.users.first { group.head(place)?.shape.role(of: $0) == .owner }
    }
    #expect(heirs[0] != nil && heirs[0] == heirs[1])
    #expect(group.head(1)?.shape.members.count == 2)
    let heir = try #require(group.phones.firstIndex { $0.user == heirs[0] })
    let other = 3 - heir
    #expect(group.end(heir, .removeMember(group.chats[heir], group.phones[other].user)) == .done)
    group.expectSound()
  }

  @Test("2.9h: a new device of a member is added by somebody, and a revoked one is removed")
  func devices() throws {
    let group = try Group(seed: 17)
    let tablet = group.world.addPhone("ben.2", of: group.phones[1].user)
    group.world.run(for: .seconds(30))
    try group.world.send("for the tablet", from: group.phones[0], to: group.chats[0])
    group.expectSound()
    let chat = try #require(group.world.chat(tablet, group.head(0)?.group))
    #expect(group.world.texts(tablet, chat) == ["for the tablet"])

    try group.world.revoke(tablet, by: group.phones[1])
    group.world.run(for: .seconds(30))
    try group.world.send("without the tablet", from: group.phones[2], to: group.chats[2])
    group.expectSound()
    #expect(tablet.events.contains(.deviceRevoked))
    #expect(group.world.texts(tablet, chat) == ["for the tablet"])
    let left = group.phones[0].events.contains { event in
      if case .devicesChanged(_, group.phones[1].user, _, let removed) = event {
        !removed.isEmpty
      } else {
        false
      }
    }
    #expect(left)
  }

  @Test(
    "Section 3 #7, #8: commits and messages race; one commit wins an epoch, and every message arrives",
    arguments: 1...6)
  func races(seed: UInt64) throws {
    let group = try Group(seed: 100 + seed)
    let more = (0..<3).map { group.world.addPhone("guest\($0)") }
    group.world.settle()
    for (place, guest) in more.enumerated() {
      group.world.command(group.phones[place], .addMember(group.chats[place], guest.user))
      try group.world.send("race \(place)", from: group.phones[place], to: group.chats[place])
    }
    group.expectSound()
    for place in 0..<3 { #expect(group.head(place)?.shape.members.count == 6) }
  }

  @Test(
    "Section 3 #2: a commit whose answer is lost is found in the log and merged, also after a restart",
    arguments: [false, true])
  func lostCommitAnswer(restarts: Bool) throws {
    let group = try Group(seed: 18)
    let dora = group.world.addPhone("dora")
    group.world.settle()
    var lost = 0
    group.world.losesAnswer = { _, request in
      if case .commit = request {
        lost += 1
        return lost <= 2
      }
      return false
    }
    group.world.command(group.phones[0], .addMember(group.chats[0], dora.user))
    group.world.run(for: .milliseconds(300))
    // The others are ahead now, and say so.
    try group.world.send("ahead", from: group.phones[1], to: group.chats[1])
    group.world.run(for: .milliseconds(300))
    if restarts { group.world.restart(group.phones[0]) }
    group.expectSound()
    #expect(group.head(0)?.shape.members.count == 4)
    #expect(group.world.texts(group.phones[0], group.chats[0]) == ["hello", "ahead"])
  }

  @Test("Section 3 #9, #11: a group is founded anew, with its roles and its name, and goes on")
  func reset() throws {
    let group = try Group(seed: 19)
    #expect(group.end(1, .reset(group.chats[1])) == .failed(code: "forbidden"))
    let id = group.world.command(group.phones[0], .reset(group.chats[0]))
    try group.world.send("meanwhile", from: group.phones[1], to: group.chats[1])
    group.expectSound()
    #expect(group.world.result(of: id, group.phones[0]) == .done)
    try group.world.send("after", from: group.phones[2], to: group.chats[2])
    group.expectSound()
    for place in 0..<3 {
      #expect(group.world.texts(group.phones[place], group.chats[place]) == ["hello", "meanwhile", "after"])
      #expect(group.head(place)?.shape.role(of: group.phones[0].user) == .owner)
    }
  }

  @Test("2.9f: who leaves on one device has left on the others")
  func leavesEverywhere() throws {
    let group = try Group(seed: 20)
    let tablet = group.world.addPhone("ben.2", of: group.phones[1].user)
    group.world.run(for: .seconds(30))
    group.expectSound()
    let chat = try #require(group.world.chat(tablet, group.head(0)?.group))
    #expect(group.end(1, .leave(group.chats[1])) == .done)
    group.world.run(for: .seconds(20))
    group.expectSound()
    #expect(group.head(1)?.standing == .left)
    #expect(group.world.head(tablet, chat)?.standing == .left)
    #expect(group.head(0)?.shape.members.count == 2)
  }

  @Test("S0-84, S0-86: a timer is a control that holds for all, and each member tells that it does")
  func timer() throws {
    let group = try Group(seed: 25)
    try group.world.use(group.phones[1]) { (engine, now) throws(EngineError) in
      try engine.send(.control(.timer(Expiry(seconds: 3_600))), to: group.chats[1], at: now)
    }
    group.expectSound()
    let users = Set(group.phones.map(\.user))
    for place in 0..<3 {
      #expect(
        group.world.summary(group.phones[place], group.chats[place])?.profile.timer == Expiry(seconds: 3_600))
      #expect(Set(group.world.timerAcknowledgedBy(group.phones[place], group.chats[place])) == users)
    }
  }
}
