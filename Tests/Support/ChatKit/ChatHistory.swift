import PalbeChatCore
import PalbeUnits

/// A seeded random life of some users: what they do, what the network does to them, and where their processes end.
package struct ChatHistory {
  package struct Settings: Sendable {
    package var users = 3
    package var devices = 5
    package var steps = 60
    package var loss = 60
    package var duplication = 30
    package var latency = 5...120
    package var crashes = true
    package var partitions = true

    package init() {}
  }

  package let world: ChatWorld
  private var settings: Settings
  private var number = 0
  /// What was done, for a report.
  package private(set) var log: [String] = []

  package init(seed: UInt64, _ settings: Settings = Settings(), registry: CrashRegistry = CrashRegistry())
    throws
  {
    self.settings = settings
    world = try ChatWorld(seed: seed, registry: registry)
  }

  /// Lives, heals and comes to rest; what does not hold then.
  package mutating func run() -> [String] {
    var users: [UserID] = []
    for place in 0..<settings.devices {
      let phone = world.addPhone(
        "u\(place % settings.users).\(place)",
        of: place < settings.users ? nil : users[place % settings.users])
      if place < settings.users { users.append(phone.user) }
    }
    world.settle()
    world.network.loss = settings.loss
    world.network.duplication = settings.duplication
    world.network.latency = settings.latency
    for _ in 0..<settings.steps { step(users) }
    return heal()
  }

  private mutating func pick<Element>(_ elements: [Element]) -> Element? {
    elements.isEmpty ? nil : elements[Int.random(in: 0..<elements.count, using: &world.random)]
  }

  private func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &world.random) < percent }

  private mutating func step(_ users: [UserID]) {
    world.run(for: .milliseconds(Int.random(in: 0...700, using: &world.random)))
    guard let phone = pick(world.phones) else { return }
    guard phone.isRunning else { return world.start(phone) }
    switch Int.random(in: 0..<100, using: &world.random) {
    case ..<55: say(phone)
    case ..<63: begin(phone, users)
    case ..<78: change(phone, users)
    case ..<86: read(phone)
    case ..<91 where settings.partitions:
      note("\(phone.name) reachable \(!phone.isReachable)")
      world.setReachable(phone, !phone.isReachable)
    case ..<94 where settings.partitions: world.dropSocket(phone)
    case ..<97 where settings.crashes:
      note("\(phone.name) dies")
      world.restart(phone)
    case _ where settings.crashes:
      let moment: CrashingStorage.Moment = chance(50) ? .before : .after
      let passes = Int.random(in: 0...5, using: &world.random)
      note("\(phone.name) will die \(moment) \(passes)")
      phone.storage.arm(nil, moment, passes: passes)
    default: break
    }
  }

  private mutating func note(_ line: String) {
    log.append("\(world.now.instant.nanoseconds / 1_000_000) \(line)")
  }

  private func chats(_ phone: Phone) -> [ChatID] { phone.engine?.allChats ?? [] }

  private mutating func say(_ phone: Phone) {
    guard let chat = pick(chats(phone)) else { return }
    number += 1
    note("\(phone.name) says m\(number) in \(chat)")
    let rows = world.rows(phone, chat)
    if chance(20), let row = pick(rows.filter { $0.kind == .text && !$0.isDeleted }) {
      let content: Content =
        chance(70) ? .reaction(target: row.id, emoji: "👍", isRemoved: false) : .delete(target: row.id)
      if case .delete = content, row.sender?.user != phone.user { return }
      _ = try? world.use(phone) { (engine, now) throws(EngineError) in
        try engine.send(content, to: chat, at: now)
      }
    } else {
      _ = try? world.send("m\(number)", from: phone, to: chat)
    }
  }

  private mutating func begin(_ phone: Phone, _ users: [UserID]) {
    guard let other = pick(users.filter { $0 != phone.user }) else { return }
    note("\(phone.name) begins a chat")
    number += 1
    if chance(50) {
      guard let chat = try? world.directChat(phone, with: other) else { return }
      _ = try? world.send("m\(number)", from: phone, to: chat)
    } else {
      guard let chat = try? world.groupChat(phone, users.filter { _ in chance(60) }, title: "g\(number)")
      else { return }
      _ = try? world.send("m\(number)", from: phone, to: chat)
    }
  }

  private mutating func change(_ phone: Phone, _ users: [UserID]) {
    guard let chat = pick(chats(phone)), let user = pick(users) else { return }
    let command: EngineCommand =
      switch Int.random(in: 0..<10, using: &world.random) {
      case ..<4: .addMember(chat, user)
      case ..<6: .removeMember(chat, user)
      case ..<9: .setRole(chat, user, chance(50) ? .admin : .owner)
      default: .leave(chat)
      }
    note("\(phone.name) \(command)")
    world.command(phone, command)
  }

  private mutating func read(_ phone: Phone) {
    guard let chat = pick(chats(phone)), let seq = pick(world.rows(phone, chat).compactMap(\.seq)) else {
      return
    }
    world.command(phone, .markRead(chat, upTo: seq))
  }

  /// The network is well again and everybody runs; then time goes by until nothing is left to do.
  private mutating func heal() -> [String] {
    note("heals")
    world.network = NetworkConditions()
    for phone in world.phones {
      phone.storage.disarm()
      if !phone.isReachable { world.setReachable(phone, true) }
      if !phone.isRunning { world.start(phone) }
    }
    world.run(for: .seconds(90))
    guard world.settle(within: .seconds(600)) else { return ["never quiet"] + world.violations() }
    world.run(for: .seconds(5))
    world.settle()
    return world.violations()
  }
}
