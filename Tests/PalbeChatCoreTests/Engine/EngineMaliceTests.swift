import PalbeChatCore
import PalbeChatKit
import PalbeUnits
import Testing

/// A server that says anything: nothing traps or hangs, and once it is honest again an honest message is read.
@Suite("Engine: a server that follows no rule")
struct EngineMaliceTests {
  private static let numbers: [Int64] = [.min, -1, 0, 1, 1 << 50, 1 << 51, .max - 1, .max]

  private static func blob(_ blob: [UInt8], _ random: inout RandomSource) -> [UInt8] {
    switch Int.random(in: 0..<4, using: &random) {
    case 0: return []
    case 1: return random.bytes(Int.random(in: 1...200, using: &random))
    case 2: return Array(blob.prefix(Int.random(in: 0...blob.count, using: &random)))
    default:
      guard !blob.isEmpty else { return [] }
      var changed = blob
      changed[Int.random(in: 0..<blob.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
      return changed
    }
  }

  private static func row(_ row: QueueRow, _ world: Names, _ random: inout RandomSource) -> QueueRow {
    let number = numbers.randomElement(using: &random)!
    let user = world.users.randomElement(using: &random)!
    let content: QueueRow.Content =
      switch Int.random(in: 0..<9, using: &random) {
      case 0: .malformed
      case 1: .welcome(world.group, blob(random.bytes(64), &random))
      case 2: .devicesChanged(user)
      case 3: .roleChanged(world.group, user, .owner)
      case 4: .historyGap(world.group)
      case 5:
        .message(
          world.group,
          ServerLogRow(
            seq: number, epoch: UInt64(bitPattern: number), generation: number,
            kind: [.application, .proposal, .commit].randomElement(using: &random)!, sender: world.device,
            blob: random.bytes(80), at: WallTime(microseconds: number)))
      default: row.content
      }
    guard case .message(let group, var message) = content, Bool.random(using: &random) else {
      return QueueRow(id: row.id, content: content)
    }
    message.blob = blob(message.blob, &random)
    if Bool.random(using: &random) { message.at = WallTime(microseconds: number) }
    return QueueRow(id: row.id, content: .message(group, message))
  }

  private struct Names {
    let group: GroupID
    let users: [UserID]
    let device: DeviceID
  }

  private static func answer(_ number: Int64, _ world: Names, _ random: inout RandomSource) -> Result<
    ServerAnswer, ServerRefusal
  > {
    let any = UInt64(bitPattern: number)
    switch Int.random(in: 0..<14, using: &random) {
    case 0: return .success(.done)
    case 1: return .success(.committed(seq: number, epoch: any))
    case 2: return .success(.keyPackageCount(Int(number), hasLastResort: false))
    case 3:
      return .success(
        .unread(ServerUnread(groupMaxSeq: number, lastReadSeq: 0, deliveredSeq: number, unreadCount: number)))
    case 4:
      return .success(
        .keyPackages([ServerKeyPackage(device: world.device, blob: random.bytes(70))], missing: []))
    case 5: return .success(.groups([], hasMore: false))
    case 6: return .success(.commits([]))
    case 7: return .success(.subscribed(world.group, online: world.users, typing: [world.device]))
    case 8: return .success(.queue([], hasMore: false))
    case 9: return .failure(.rateLimited(retryAfter: TimeDelta(nanoseconds: number)))
    case 10: return .failure(.unavailable)
    case 11: return .failure(.unreachable)
    case 12: return .failure(.commitIncomplete([world.device]))
    default: return .success(.enrolled(world.device))
    }
  }

  @Test(
    "Section 3 #4: rows, answers and events that no server says; the engine goes on, and the others read what is said",
    arguments: 1...24)
  func anything(seed: UInt64) throws {
    let group = try EngineGroupTests.Group(seed: 900 + seed)
    let world = group.world
    let names = Names(
      group: try #require(group.head(0)?.group), users: group.phones.map(\.user),
      device: DeviceID(at: world.now.wall, using: &world.random))
    var random = RandomSource(seed: seed)
    let victim = group.phones[2]
    world.tampers = { phone, row in
      phone === victim && Int.random(in: 0..<3, using: &random) == 0 ? Self.row(row, names, &random) : row
    }
    world.answers = { phone, request, answer in
      // The queue's rows are spoiled one by one; what the server took it took.
      if case .queue = answer { return .success(answer) }
      if case .accepted = answer { return .success(answer) }
      guard phone === victim, Int.random(in: 0..<4, using: &random) == 0 else { return .success(answer) }
      return Self.answer(Self.numbers.randomElement(using: &random)!, names, &random)
    }
    for number in 0..<12 {
      _ = try? world.send("m\(number)", from: group.phones[number % 3], to: group.chats[number % 3])
      if number % 4 == 1 { world.command(victim, .refreshUnread(group.chats[2])) }
      if number % 5 == 2 {
        world.command(
          group.phones[0], .setRole(group.chats[0], names.users[1], number % 2 == 0 ? .admin : .member))
      }
      let seq = Self.numbers.randomElement(using: &random)!
      let user = names.users.randomElement(using: &random)!
      let events: [LiveEvent] = [
        .typing(names.group, user, names.device, true),
        .presence(names.group, user, isOnline: number % 2 == 0),
        .delivered(names.group, user, names.device, seq), .read(names.group, user, seq), .queueChanged,
      ]
      world.tell(events.randomElement(using: &random)!, to: victim)
      world.run(for: .milliseconds(700))
    }
    world.tampers = nil
    world.answers = nil
    world.run(for: .seconds(60))
    // What it could not follow shows, and founding anew brings it back.
    if group.head(2)?.standing != .active { _ = group.end(0, .reset(group.chats[0])) }
    try world.send("honest", from: group.phones[0], to: group.chats[0])
    world.run(for: .seconds(120))
    // A server that lies about numbers can withhold what it likes; it stops nobody's engine.
    #expect(try world.use(victim) { (engine, _) in !engine.hasStopped })
    #expect(world.texts(group.phones[1], group.chats[1]).last == "honest")
  }
}
