import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits

extension FuzzTarget {
  /// What a member sends to the delivery server: a byte that chooses the request, three that choose numbers, and the rest as
  /// the bytes that it carries. Whatever it is, an honest member's message is taken afterwards.
  static let backendRequest = FuzzTarget(
    name: "backend-request",
    run: { bytes in
      var world = BackendWorld.shared
      for part in bytes.split(separator: 0xff, omittingEmptySubsequences: false).prefix(8) {
        world.ask(Array(part.prefix(4)), Array(part.dropFirst(4)))
      }
      world.sendHonestly()
    })
}

/// A server with a group of two, of whom one follows no rule.
private struct BackendWorld {
  var backend: Backend<MemoryStore>
  let mallory: Caller
  let ben: Caller
  let group: GroupID
  let message: ClientMessageID
  var now: ServerTime

  /// The group's MLS id, which the corpus names.
  static let mlsID = MLSGroupID([UInt8](repeating: 7, count: 32))
  nonisolated(unsafe) static let shared: BackendWorld = {
    do { return try BackendWorld() } catch { fatalError("\(error)") }
  }()

  private init() throws {
    let rig = try Rig(MemoryStore())
    let (one, other) = (try rig.enrol(), try rig.enrol())
    var delta = MemberDelta()
    delta.addedUsers = [other.user]
    delta.addedLeaves = [NewLeaf(device: other.device!, index: 1)]
    let founding = GroupFounding(mlsID: Self.mlsID, kind: .group, commit: rig.bundle(Self.mlsID, 0, delta))
    guard case .founded(let founded) = try rig.ask(.createGroup(founding), one) else {
      fatalError("the group was not founded")
    }
    (mallory, ben, group, message) = (one, other, founded.id, rig.newMessageID())
    backend = rig.backend
    now = rig.now
  }

  mutating func ask(_ choice: [UInt8], _ bytes: [UInt8]) {
    func number(_ place: Int) -> UInt8 { place < choice.count ? choice[place] : 0 }
    let (small, other) = (number(1), number(2))
    var delta = MemberDelta()
    if number(3) & 1 != 0 { delta.addedLeaves.append(NewLeaf(device: mallory.device!, index: UInt32(other))) }
    if number(3) & 2 != 0 { delta.removedLeaves.append(mallory.device!) }
    if number(3) & 4 != 0 { delta.removedLeaves.append(ben.device!) }
    if number(3) & 8 != 0 { delta.addedUsers.append(ben.user) }
    if number(3) & 16 != 0 { delta.removedUsers.append(ben.user) }
    if number(3) & 32 != 0 { delta.addedLeaves.append(NewLeaf(device: ben.device!, index: UInt32(small))) }
    let half = bytes.count / 2
    let bundle = CommitBundle(
      epoch: Epoch(small), commit: Array(bytes[..<half]),
      welcome: number(3) & 64 != 0 ? Array(bytes[half...]) : nil, groupInfo: Array(bytes[half...]),
      delta: delta, proposalsUpTo: number(3) & 128 != 0 ? LogSequence(other) : nil)
    let mlsID = MLSGroupID(Array(bytes.prefix(32)))
    let connection = ConnectionID(UInt64(small & 3))
    let requests: [BackendRequest] = [
      .send(
        group,
        OutgoingMessage(
          epoch: Epoch(small), id: message, blob: bytes, wakes: other & 1 != 0, isEphemeral: other & 2 != 0)),
      .commit(group, bundle), .publishKeyPackages([bytes], lastResort: other & 1 != 0 ? bytes : nil),
      .reset(group, generation: Int64(other & 1), GroupFounding(mlsID: mlsID, kind: .group, commit: bundle)),
      .createGroup(GroupFounding(mlsID: mlsID, kind: .direct(ben.user), commit: bundle, groupInfo: bytes)),
      .markRead(group, Int64(bitPattern: UInt64(small) << 56 | UInt64(other))),
      .acknowledge(.listed([QueueID(Int64(small)), QueueID(.max), QueueID(.min)]), connection: nil),
      .fetchQueue(
        after: QueueID(Int64(Int8(bitPattern: small))), limit: Int(Int8(bitPattern: other)), connection: nil),
      .commits(group, from: Epoch(small) << 56, limit: Int(other)),
      .createBlob(group, byteCount: Int64(bitPattern: UInt64(small) << 56)),
      .subscribe(connection, .conversation(mlsID)), .subscribe(connection, .device(mallory.device!)),
      .setTyping(connection, group, true), .heartbeat(connection), .group(group), .unread(group),
      .setRole(group, ben.user, ChatRole(rawValue: small) ?? .owner),
    ]
    let request = requests[Int(number(0)) % requests.count]
    now.wall = now.wall + .milliseconds(Int(other))
    now.instant = now.instant + .milliseconds(Int(other) * 100)
    let key = small & 1 != 0 ? IdempotencyKey(key: [other], digest: [number(0)]) : nil
    _ = try? backend.handle(request, from: mallory, idempotencyKey: key, at: now)
    backend.handleTimeout(at: now)
    while backend.pollEvent() != nil {}
  }

  /// Nobody took ben out of the group, unless as its owner.
  mutating func sendHonestly() {
    guard case .group(let view)? = try? backend.handle(.group(group), from: ben, at: now),
      view.leaves.contains(where: { $0.device == ben.device && $0.isLive })
    else { return }
    let epoch = view.summary.epoch
    let blob = Wire.application(view.summary.mlsID, epoch, [1])
    let id = ClientMessageID(bytes: [UInt8](repeating: 9, count: 16))!
    let answer = try? backend.handle(
      .send(group, OutgoingMessage(epoch: epoch, id: id, blob: blob)), from: ben, at: now)
    demand(
      answer == .accepted(sequence: view.summary.headSequence + 1, epoch: epoch, isRepeated: false),
      "an honest member's message was refused")
  }
}
