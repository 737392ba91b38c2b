import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

@Suite("Engine: where a process can end")
struct EngineCrashTests {
  /// Does something once more where the process ended in it.
  private static func again<Value>(_ world: ChatWorld, _ body: () throws -> Value) throws -> Value {
    if let value = try? body() { return value }
    world.run(for: .seconds(1))
    return try body()
  }

  /// A life with everything in it that is stored.
  private static func live(_ world: ChatWorld, _ arm: (String, Phone) -> Void) throws -> [String] {
    let anna = world.addPhone("anna")
    let ben = world.addPhone("ben")
    let carl = world.addPhone("carl")
    world.settle()
    for phone in [anna, ben, carl] { arm(phone.name, phone) }
    let direct = try again(world) { try world.directChat(anna, with: ben.user) }
    let bens = try again(world) { try world.directChat(ben, with: anna.user) }
    _ = try? world.send("a", from: anna, to: direct)
    _ = try? world.send("b", from: ben, to: bens)
    world.run(for: .seconds(5))
    let group = try? world.groupChat(anna, [ben.user], title: "Tea")
    if let group {
      _ = try? world.send("c", from: anna, to: group)
      world.run(for: .seconds(5))
      world.command(anna, .addMember(group, carl.user))
      world.run(for: .seconds(5))
      world.command(anna, .setRole(group, ben.user, .admin))
      _ = try? world.send("d", from: anna, to: group)
      world.run(for: .seconds(5))
      world.command(anna, .reset(group))
      world.run(for: .seconds(5))
      if let name = world.head(anna, group)?.group {
        for phone in [ben, carl] {
          guard let chat = world.chat(phone, name) else { continue }
          _ = try? world.send("e \(phone.name)", from: phone, to: chat)
          let seqs = world.rows(phone, chat).compactMap(\.seq)
          if let seq = seqs.last { world.command(phone, .markRead(chat, upTo: seq)) }
        }
        world.run(for: .seconds(5))
        world.command(anna, .removeMember(group, carl.user))
        world.run(for: .seconds(5))
        if let chat = world.chat(ben, name) { world.command(ben, .leave(chat)) }
      }
    }
    world.run(for: .seconds(40))
    for phone in [anna, ben, carl] { phone.storage.disarm() }
    for phone in world.phones where !phone.isRunning { world.start(phone) }
    guard world.settle() else { return ["never quiet"] + world.violations() }
    return world.violations()
  }

  @Test(
    "S0-55, section 3 #1, #2, #3, #17: a process that ends before or after any transaction leaves nothing half done"
  )
  func everyPoint() throws {
    let plain = CrashRegistry()
    let quiet = try ChatWorld(seed: 41, registry: plain)
    #expect(try Self.live(quiet) { _, _ in } == [])
    let labels = plain.seen.sorted()
    #expect(labels.count >= 8)

    let registry = CrashRegistry()
    var runs = 0
    for label in labels {
      for moment in CrashingStorage.Moment.allCases {
        for victim in ["anna", "ben", "carl"] {
          let world = try ChatWorld(seed: 41, registry: registry)
          let problems = try Self.live(world) { name, phone in
            if name == victim { phone.storage.arm(label, moment) }
          }
          runs += 1
          #expect(problems == [], "\(victim) ends \(moment) \(label)")
        }
      }
    }
    let points = Set(
      labels.flatMap { label in CrashingStorage.Moment.allCases.map { "\(label) \($0.rawValue)" } })
    let missed = points.subtracting(registry.hit).sorted()
    // What is written only before a trap can be set, while a device enrols, has a test of its own.
    #expect(
      missed.allSatisfy { $0.hasPrefix("device") || $0.hasPrefix("keys") || $0.contains("device+keys") })
    #expect(runs == labels.count * 6)
  }
}
