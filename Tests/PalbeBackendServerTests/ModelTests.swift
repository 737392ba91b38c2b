import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// Random requests to a server over SQLite and one over dictionaries, which must answer alike, and as the model says.
private final class History {
  let memory: Rig<MemoryStore>
  var sqlite: Rig<SQLiteBackendStore>
  var model = ReferenceModel()
  var random: RandomSource
  let path: String
  let seed: UInt64
  var step = 0
  /// Under which key the requests go.
  var key: IdempotencyKey?

  init(seed: UInt64, path: String) throws {
    self.seed = seed
    self.path = path
    random = RandomSource(seed: seed)
    memory = try Rig(MemoryStore(), seed: seed)
    sqlite = try Rig(SQLiteBackendStore(path: path), seed: seed)
  }

  func pick<T>(_ values: [T]) -> T { values[Int(random.next() % UInt64(values.count))] }
  func below(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
  var note: Comment { "seed \(seed), step \(step)" }

  var devices: [DeviceID] { model.devices.keys.sorted() }
  var groups: [GroupID] { model.groups.keys.sorted() }
  func caller(_ device: DeviceID) -> Caller { model.devices[device]!.caller }

  /// Asks both.
  @discardableResult
  func ask(_ request: BackendRequest, _ caller: Caller) -> Result<BackendResponse, BackendFailure> {
    func result<S>(_ rig: Rig<S>) -> Result<BackendResponse, BackendFailure> {
      do throws(BackendFailure) { return .success(try rig.ask(request, caller, key: key)) } catch {
        return .failure(error)
      }
    }
    let (one, other) = (result(memory), result(sqlite))
    #expect(one == other, note)
    #expect(memory.events() == sqlite.events(), note)
    return one
  }

  func check(_ request: BackendRequest, _ device: DeviceID, _ verdict: ReferenceModel.Verdict) {
    let result = ask(request, caller(device))
    switch verdict {
    case .refused(let code):
      guard case .failure(let failure) = result else {
        Issue.record("\(note): \(result) and not \(code)")
        return
      }
      #expect(failure.code == code, note)
    case .accepted(let response): #expect(result == .success(response), note)
    case .ok: #expect(throws: Never.self, note) { try result.get() }
    }
  }

  // MARK: Operations

  func enrol(_ user: UserID) {
    // Both make up the same things, from one seed.
    let enrolment = memory.enrolment(of: user, packages: 2)
    _ = sqlite.enrolment(of: user, packages: 2)
    guard case .success(.enrolled(let device)) = ask(.enrolDevice(enrolment), Caller(user: user, device: nil))
    else {
      Issue.record(note)
      return
    }
    model.enrolled(Caller(user: user, device: device))
    ask(.setPushToken(PushToken(platform: .ios, bytes: [1])), caller(device))
  }

  /// Time goes by: wakes come due.
  func wait() {
    let delta = TimeDelta.milliseconds(below(3_000))
    memory.advance(by: delta)
    sqlite.advance(by: delta)
    #expect(memory.events() == sqlite.events(), note)
  }

  func devicesToAdd(_ user: UserID, _ by: Caller) -> [NewLeaf] {
    guard case .success(.keyPackages(let packages, _)) = ask(.claimKeyPackages(of: user), by) else {
      return []
    }
    return packages.map { NewLeaf(device: $0.device, index: 0) }
  }

  func found(direct: Bool) {
    let device = pick(devices)
    let own = caller(device)
    let users = Set(model.devices.values.map(\.caller.user)).sorted().filter { !model.live($0).isEmpty }
    guard !model.devices[device]!.isRevoked else { return }
    let id = MLSGroupID(random.bytes(32))
    var delta = MemberDelta()
    let peer = pick(users)
    if direct {
      if peer != own.user { delta.addedUsers = [peer] }
    } else {
      delta.addedUsers = users.filter { $0 != own.user && below(3) == 0 }
    }
    for user in delta.addedUsers { delta.addedLeaves += devicesToAdd(user, own) }
    if model.live(own.user).count > 1 { delta.addedLeaves += devicesToAdd(own.user, own) }
    for index in delta.addedLeaves.indices { delta.addedLeaves[index].index = UInt32(index + 1) }
    let commit = delta.addedLeaves.isEmpty ? nil : bundle(id, 0, delta)
    let founding = GroupFounding(
      mlsID: id, kind: direct ? .direct(peer) : .group, commit: commit, groupInfo: Wire.groupInfo(id, 0))
    let pair: Set<UserID>? = direct ? [own.user, peer] : nil
    let known = pair.flatMap { model.open(pair: $0) }
    guard case .success(.founded(let group)) = ask(.createGroup(founding), own) else {
      Issue.record(note)
      return
    }
    #expect(group.isExisting == (known != nil), note)
    if let known {
      #expect(group.id == known.id && group.mlsID == known.mlsID, note)
    } else {
      model.founded(group.id, founding, by: device, pair: pair)
    }
  }

  func bundle(_ id: MLSGroupID, _ epoch: Epoch, _ delta: MemberDelta) -> CommitBundle {
    CommitBundle(
      epoch: epoch, commit: Wire.commit(id, epoch, random.bytes(20)),
      welcome: delta.addedLeaves.isEmpty ? nil : Wire.welcome(random.bytes(10)),
      groupInfo: Wire.groupInfo(id, epoch + 1), delta: delta)
  }

  func commit() {
    guard !groups.isEmpty else { return }
    let group = model.groups[pick(groups)]!
    let candidates = group.leaves.keys.sorted()
    let device = below(8) == 0 || candidates.isEmpty ? pick(devices) : pick(candidates)
    let by = caller(device)
    var delta = MemberDelta()
    let users = Set(model.devices.values.map(\.caller.user)).sorted()
    switch below(4) {
    case 0:
      let outside = users.filter { group.members[$0] == nil && !model.live($0).isEmpty }
      if let user = outside.isEmpty ? nil : pick(outside), !model.devices[device]!.isRevoked {
        let leaves = devicesToAdd(user, by)
        if !leaves.isEmpty {
          delta.addedUsers = [user]
          delta.addedLeaves = leaves
        }
      }
    case 1:
      let inside = group.members.keys.sorted()
      if !inside.isEmpty { delta.removedUsers = [pick(inside)] }
    default: break
    }
    let skipsStale = below(10) == 0
    delta.removedLeaves = group.leaves.filter { id, leaf in
      id != device && (delta.removedUsers.contains(leaf.user) || (!leaf.isLive && !skipsStale))
    }.keys.sorted()
    var taken = Set(group.leaves.filter { !delta.removedLeaves.contains($0.key) }.map(\.value.index))
    for index in delta.addedLeaves.indices {
      let free = (0...).first { !taken.contains($0) }!
      taken.insert(free)
      delta.addedLeaves[index].index = free
    }
    let epoch = below(6) == 0 ? group.epoch &+ 1 : group.epoch
    var bundle = bundle(group.mlsID, epoch, delta)
    // Mostly what an honest client says; sometimes too little, nothing, or what is not there yet.
    bundle.proposalsUpTo = group.head
    switch below(6) {
    case 0, 1: bundle.proposalsUpTo = group.head - LogSequence(below(3))
    case 2: bundle.proposalsUpTo = nil
    case 3: bundle.proposalsUpTo = group.head + LogSequence(below(2))
    default: break
    }
    check(.commit(group.id, bundle), device, model.commit(bundle, to: group.id, by: device))
  }

  /// A member's device joins from outside.
  func rejoin() {
    guard !groups.isEmpty else { return }
    let group = model.groups[pick(groups)]!
    let device = pick(devices)
    var delta = MemberDelta()
    if group.leaves[device] != nil { delta.removedLeaves = [device] }
    let taken = Set(group.leaves.filter { $0.key != device }.map(\.value.index))
    delta.addedLeaves = [NewLeaf(device: device, index: (0...).first { !taken.contains($0) }!)]
    var bundle = bundle(group.mlsID, group.epoch, delta)
    bundle.welcome = nil
    check(.commit(group.id, bundle), device, model.commit(bundle, to: group.id, by: device))
  }

  func reset() {
    guard !groups.isEmpty else { return }
    let group = model.groups[pick(groups)]!
    let device = pick(devices)
    let id = MLSGroupID(random.bytes(32))
    var delta = MemberDelta()
    for user in group.members.keys.sorted() {
      for other in model.live(user).sorted() where other != device && below(20) > 0 {
        delta.addedLeaves.append(NewLeaf(device: other, index: UInt32(delta.addedLeaves.count + 1)))
      }
    }
    let founding = GroupFounding(
      mlsID: id, kind: .group, commit: delta.addedLeaves.isEmpty ? nil : bundle(id, 0, delta),
      groupInfo: Wire.groupInfo(id, 0))
    let generation = group.generation - (below(5) == 0 ? 1 : 0)
    check(
      .reset(group.id, generation: generation, founding), device,
      model.reset(group.id, generation: generation, founding, by: device))
  }

  /// A request that is repeated under its key, the second time perhaps after a restart.
  func repeated() throws {
    guard let group = model.groups.values.filter({ !$0.leaves.isEmpty }).min(by: { $0.id < $1.id }) else {
      return
    }
    let device = pick(group.leaves.keys.sorted())
    let request = BackendRequest.commit(group.id, bundle(group.mlsID, group.epoch, MemberDelta()))
    guard case .commit(_, let bundle) = request else { return }
    let verdict = model.commit(bundle, to: group.id, by: device)
    key = IdempotencyKey(key: random.bytes(8), digest: [1])
    check(request, device, verdict)
    if below(4) == 0 { try restart() }
    check(request, device, verdict)
    key = nil
  }

  /// Requests that one server carries out one by one, and the other in one transaction.
  func burst() {
    guard !groups.isEmpty else { return }
    var calls: [BackendCall] = []
    var verdicts: [ReferenceModel.Verdict] = []
    for _ in 0..<2 + below(6) {
      let (message, group, device) = outgoing()
      calls.append(BackendCall(.send(group, message), from: caller(device)))
      verdicts.append(model.send(message, to: group, by: device))
    }
    let now = memory.now
    let alone = calls.map { memory.backend.handle([$0], at: now)[0] }
    let together = sqlite.backend.handle(calls, at: now)
    #expect(alone == together, note)
    #expect(memory.events() == sqlite.events(), note)
    for (result, verdict) in zip(together, verdicts) {
      switch (result, verdict) {
      case (.failure(let failure), .refused(let code)): #expect(failure.code == code, note)
      case (.success(let response), .accepted(let expected)): #expect(response == expected, note)
      default: Issue.record("\(note): \(result) and not \(verdict)")
      }
    }
  }

  func send() {
    guard !groups.isEmpty else { return }
    let (message, group, device) = outgoing()
    check(.send(group, message), device, model.send(message, to: group, by: device))
  }

  func outgoing() -> (OutgoingMessage, GroupID, DeviceID) {
    let group = model.groups[pick(groups)]!
    let candidates = group.leaves.keys.sorted()
    let device = below(8) == 0 || candidates.isEmpty ? pick(devices) : pick(candidates)
    var message: OutgoingMessage
    if below(8) == 0, let known = model.receipts[device]?.last {
      message = known.message
    } else {
      let back = Epoch(below(6))
      let epoch = below(12) == 0 ? group.epoch + 1 : group.epoch - min(back, group.epoch)
      message = OutgoingMessage(
        epoch: epoch, id: ClientMessageID(at: memory.now.wall, using: &random),
        blob: below(8) == 0
          ? Wire.proposal(group.mlsID, epoch, [])
          : Wire.application(group.mlsID, epoch, random.bytes(8 + below(40))), wakes: below(3) > 0)
    }
    return (message, group.id, device)
  }

  func rows(_ device: DeviceID) -> [QueueRow] {
    var rows: [QueueRow] = []
    while true {
      let request = BackendRequest.fetchQueue(after: rows.last?.id ?? .start, limit: 17, connection: nil)
      guard case .success(.queue(let more, let hasMore)) = ask(request, caller(device)) else { return rows }
      rows += more
      if !hasMore { return rows }
    }
  }

  func acknowledge() {
    let device = pick(devices)
    let rows = rows(device)
    compare(rows, device)
    guard !rows.isEmpty else { return }
    if below(2) == 0 {
      let count = 1 + below(rows.count)
      check(
        .acknowledge(.upTo(rows[count - 1].id), connection: nil), device,
        model.acknowledge(count, of: device))
    } else {
      let places = Set((0..<3).map { _ in below(rows.count) })
      check(
        .acknowledge(.listed(places.map { rows[$0].id }), connection: nil), device,
        model.acknowledge(at: places, of: device))
    }
  }

  func compare(_ rows: [QueueRow], _ device: DeviceID) {
    let found = rows.map { row -> ReferenceModel.Row in
      switch row.content {
      case .message(let group, let log): .message(group, log.sequence, log.blob)
      case .welcome(let group, let blob): .welcome(group, blob)
      case .control(let control): .control(control)
      }
    }
    #expect(found == model.queues[device] ?? [], note)
  }

  func run() throws {
    step += 1
    let device = pick(devices)
    switch below(100) {
    case 0..<2:
      let user = caller(device).user
      if model.live(user).count < 3 { enrol(user) }
    case 2:
      let target = pick(devices.filter { caller($0).user == caller(device).user })
      if model.live(caller(device).user).count > 1 {
        check(.revokeDevice(target), device, model.revoke(target, by: device))
      }
    case 3: wait()
    case 4..<6: found(direct: below(2) == 0)
    case 6..<18: commit()
    case 18: rejoin()
    case 19: if below(2) == 0 { reset() } else { try repeated() }
    case 20..<53: send()
    case 53..<60: burst()
    case 60..<75: acknowledge()
    default:
      guard !groups.isEmpty else { return }
      let group = pick(groups)
      let known = model.groups[group]!
      switch below(8) {
      case 0:
        if below(3) == 0 { check(.leave(group), device, model.leave(group, by: device)) }
      case 1, 2:
        let target = (known.members.keys.sorted() + [caller(device).user]).first!
        let role = pick(ChatRole.allCases)
        check(
          .setRole(group, target, role), device, model.setRole(role, of: target, in: group, by: device))
      case 3, 4:
        let sequence = LogSequence(below(Int(known.head) + 3))
        check(.markRead(group, sequence), device, model.markRead(sequence, in: group, by: device))
      case 5, 6: check(.unread(group), device, model.unread(group, by: device))
      default: compare(group, device)
      }
    }
  }

  /// A group as its members see it.
  func compare(_ id: GroupID, _ device: DeviceID) {
    let group = model.groups[id]!
    if let refusal = model.refusal(device, id) { return check(.group(id), device, refusal) }
    guard case .success(.group(let view)) = ask(.group(id), caller(device)) else {
      Issue.record(note)
      return
    }
    #expect(view.summary.epoch == group.epoch && view.summary.headSequence == group.head, note)
    #expect(
      Dictionary(uniqueKeysWithValues: view.members.map { ($0.user, $0.role) })
        == group.members.mapValues(\.role), note)
    #expect(
      Dictionary(uniqueKeysWithValues: view.leaves.map { ($0.device, [$0.index, $0.isLive ? 1 : 0]) })
        == group.leaves.mapValues { [$0.index, $0.isLive ? 1 : 0] }, note)
    // One commit for each epoch, all of them kept.
    guard case .success(.commits(let commits)) = ask(.commits(id, from: 0, limit: 100), caller(device)) else {
      return
    }
    let own = group.members[caller(device).user]!.joined
    #expect(commits.map(\.blob) == group.commits.prefix(100).suffix(commits.count), note)
    #expect(commits.allSatisfy { $0.sequence >= own }, note)
  }

  /// A restart: what is durable is what was answered.
  func restart() throws {
    let now = sqlite.now
    let random = sqlite.random
    // The file is let go of before it is opened again.
    sqlite = try Rig(SQLiteBackendStore(path: ":memory:"))
    sqlite = try Rig(SQLiteBackendStore(path: path), seed: seed &+ UInt64(step), at: now)
    sqlite.random = random
    try memory.restart(seed: seed &+ UInt64(step))
  }
}

@Suite("Random requests against both stores and a model")
struct ModelTests {
  /// `PALBE_BACKEND_SEEDS=100-199` for more.
  private static let seeds: ClosedRange<UInt64> = {
    let ends = (ProcessInfo.processInfo.environment["PALBE_BACKEND_SEEDS"] ?? "")
      .split(separator: "-").compactMap { UInt64($0) }
    return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : 1...4
  }()

  @Test("4.1: answers, queues, logs and groups are what the model says", arguments: seeds)
  func histories(seed: UInt64) throws {
    let folder = try TemporaryFolder()
    let history = try History(seed: seed, path: folder.path("db"))
    for _ in 0..<6 { history.enrol(UserID(at: history.memory.now.wall, using: &history.random)) }
    for round in 0..<4 {
      for _ in 0..<300 { try history.run() }
      if round < 3 { try history.restart() }
    }
    for device in history.devices where !history.model.devices[device]!.isRevoked {
      history.compare(history.rows(device), device)
    }
    for group in history.groups {
      for device in history.devices { history.compare(group, device) }
    }
    // Rare things did happen.
    #expect(history.model.groups.count > 5 && history.model.receipts.values.joined().count > 100)
  }
}
