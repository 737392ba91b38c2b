import PalbeChatCore
import PalbeUnits

/// Lives a story: what some users do, what the network does to them, and where their processes end; then everything is
/// well again, and what must hold is looked at.
///
///     var history = try ChatHistory(.make(seed: 7))
///     let problems = history.run()          // empty, or history.story.text goes into a file
package struct ChatHistory {
  package let world: ChatWorld
  package let story: ChatStory
  /// Whether names and timers must agree too.
  package var checksProfiles = false
  /// Where every device's process is to end once, whenever it comes there.
  package var hunted: CrashPoint?
  /// What was done, for a report.
  package private(set) var log: [String] = []
  /// The steps that did something.
  package private(set) var operations = 0
  var users: [UserID] = []
  private var number = 0
  /// Messages that were refused and that somebody may think better of.
  var texts: [UserID: Int] = [:]

  package init(_ story: ChatStory, registry: CrashRegistry = CrashRegistry()) throws {
    self.story = story
    world = try ChatWorld(seed: story.seed, registry: registry)
  }

  /// Lives, heals and comes to rest; what does not hold then.
  package mutating func run() -> [String] {
    for place in 0..<story.devices {
      let phone = addPhone(of: place < story.users ? nil : users[place % story.users])
      if place < story.users { users.append(phone.user) }
    }
    world.settle()
    world.network.loss = story.loss
    world.network.duplication = story.duplication
    world.network.latency = story.latency
    for step in story.steps {
      world.random = RandomSource(seed: step.seed)
      world.run(for: .milliseconds(step.wait))
      if live(step) { operations += 1 }
    }
    return heal()
  }

  /// How many processes ended.
  package var crashes: Int { world.phones.reduce(0) { $0 + $1.crashes } }

  mutating func note(_ line: String) {
    log.append("\(world.now.instant.nanoseconds / 1_000_000) \(line)")
  }

  mutating func nextText() -> String {
    number += 1
    return "m\(number)"
  }

  @discardableResult
  mutating func addPhone(of user: UserID?) -> Phone {
    let owner = user.flatMap { users.firstIndex(of: $0) } ?? users.count
    let asks = story.asksConsent
    // A process ends at a point of its own in each history.
    var trap: CrashPoint?
    if story.steps.contains(where: { $0.action == .trap }) {
      let number = story.seed &* 7 &+ UInt64(world.phones.count)
      trap = CrashPoint.drawn[Int(number % UInt64(CrashPoint.drawn.count))]
    }
    // Where there are few key packages the last resort is used.
    let hasFew = story.seed % 4 == 1
    return world.addPhone("u\(owner).\(world.phones.count)", of: user, trap: trap, hunted: hunted) {
      $0.asksConsent = asks
      if hasFew { ($0.keyPackageCount, $0.keyPackageFloor) = (1, 1) }
    }
  }

  /// The network is well again and everybody runs; then time goes by until nothing is left to do.
  private mutating func heal() -> [String] {
    note("heals")
    world.random = RandomSource(seed: story.seed &+ 99)
    world.network = NetworkConditions()
    world.outage = .zero
    for phone in world.phones {
      phone.storage.disarm()
      world.setClock(phone, ahead: .zero)
      if !phone.isReachable { world.setReachable(phone, true) }
      if !phone.isRunning { world.start(phone) }
      for chat in phone.engine?.allChats ?? [] { world.setTyping(false, phone, chat) }
    }
    world.run(for: .seconds(90))
    guard world.settle(within: .seconds(600)) else { return ["never quiet"] + world.violations() }
    // What disappears by time, and secrets of epochs that ended meanwhile.
    world.run(for: .seconds(60))
    world.settle()
    return world.violations() + world.leftovers() + (checksProfiles ? world.differingProfiles() : [])
  }
}
