import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits
import Testing

@Suite("Groups: commits, members, roles")
struct GroupTests {
  private func rig() throws -> Rig<MemoryStore> { try Rig(MemoryStore()) }

  @Test("Section 3, 8: of two commits of one epoch one wins; the other is told the head")
  func compareAndSwap() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let first = try rig.bundle(group, by: anna)
    let second = try rig.bundle(group, by: ben)
    #expect(try rig.ask(.commit(group, first), anna) == .committed(sequence: 2, epoch: 2))
    #expect(rig.refusal(.commit(group, second), ben) == .staleEpoch(head: 2))
    guard case .commits(let rows) = try rig.ask(.commits(group, from: 1, limit: 10), ben) else {
      Issue.record("no commits")
      return
    }
    #expect(rows.map(\.epoch) == [1] && rows[0].blob == first.commit && rows[0].sender == anna.device)
  }

  @Test("Section 3, 1: a commit whose answer was lost is answered again under its key")
  func repeatedCommit() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let bundle = try rig.bundle(group, by: anna)
    let key = IdempotencyKey(key: [1, 2, 3], digest: [4])
    let first = try rig.ask(.commit(group, bundle), anna, key: key)
    #expect(try rig.ask(.commit(group, bundle), anna, key: key) == first)
    #expect(throws: BackendFailure.idempotencyMismatch) {
      try rig.ask(.commit(group, bundle), anna, key: IdempotencyKey(key: [1, 2, 3], digest: [5]))
    }
    // Another device's key of the same name is its own.
    #expect(throws: BackendFailure.staleEpoch(head: 2)) { try rig.ask(.commit(group, bundle), ben, key: key) }
    rig.advance(by: .seconds(2 * 86_400))
    #expect(throws: BackendFailure.staleEpoch(head: 2)) {
      try rig.ask(.commit(group, bundle), anna, key: key)
    }
    #expect(try rig.drain(ben).count == 2)
  }

  @Test("Section 3, 35: both peers begin a direct chat at once: one winner for both")
  func directConflict() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let mine = try rig.founding(by: anna, with: [ben.user], kind: .direct(ben.user))
    let theirs = try rig.founding(by: ben, with: [anna.user], kind: .direct(anna.user))
    guard case .founded(let winner) = try rig.ask(.createGroup(mine), anna),
      case .founded(let adopted) = try rig.ask(.createGroup(theirs), ben)
    else { throw Rig<MemoryStore>.Unexpected() }
    #expect(!winner.isExisting && adopted.isExisting)
    #expect(adopted.id == winner.id && adopted.mlsID == winner.mlsID && adopted.epoch == 1)
    // Members and roles of a direct chat stay.
    let carl = try rig.enrol()
    #expect(
      rig.refusal(.commit(winner.id, try rig.bundle(winner.id, by: anna, adding: [carl.user])), anna)
        == .chatIsDirect)
    #expect(
      rig.refusal(.commit(winner.id, try rig.bundle(winner.id, by: anna, removing: [ben.user])), anna)
        == .chatIsDirect)
    #expect(rig.refusal(.setRole(winner.id, ben.user, .admin), anna) == .chatIsDirect)
    // After one left, the pair can begin again.
    try rig.ask(.leave(winner.id), ben)
    #expect(try rig.found(by: ben, with: [anna.user], kind: .direct(anna.user)) != winner.id)
  }

  @Test("A chat with oneself has one member, all devices in it")
  func selfChat() throws {
    let rig = try rig()
    let phone = try rig.enrol()
    let tablet = try rig.enrol(phone.user)
    let group = try rig.found(by: phone, with: [], kind: .direct(phone.user))
    let view = try rig.view(group, tablet)
    #expect(view.members.map(\.user) == [phone.user])
    #expect(Set(view.leaves.map(\.device)) == Set([phone.device, tablet.device].compactMap { $0 }))
  }

  @Test("A repeated founding whose answer was lost finds its group; somebody else's MLS id is refused")
  func repeatedFounding() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let founding = try rig.founding(by: anna, with: [])
    guard case .founded(let first) = try rig.ask(.createGroup(founding), anna),
      case .founded(let again) = try rig.ask(.createGroup(founding), anna)
    else { throw Rig<MemoryStore>.Unexpected() }
    #expect(first.id == again.id && again.isExisting)
    #expect(rig.refusal(.createGroup(founding), ben) == .invalidRequest(.identifier))
  }

  @Test("S0-104: a user is added with all devices, or the commit is incomplete")
  func allDevices() throws {
    let rig = try rig()
    let anna = try rig.enrol()
    let phone = try rig.enrol()
    let tablet = try rig.enrol(phone.user)
    let group = try rig.found(by: anna)
    var bundle = try rig.bundle(group, by: anna, adding: [phone.user])
    #expect(
      Set(bundle.delta.addedLeaves.map(\.device)) == Set([phone.device, tablet.device].compactMap { $0 }))
    bundle.delta.addedLeaves.removeAll { $0.device == tablet.device }
    #expect(
      rig.refusal(.commit(group, bundle), anna)
        == .commitIncomplete(devices: [try #require(tablet.device)]))
    #expect(
      try rig.ask(.commit(group, try rig.bundle(group, by: anna, adding: [phone.user])), anna)
        == .committed(sequence: 1, epoch: 1))
    for device in [phone, tablet] {
      let rows = try rig.drain(device)
      #expect(rows.count == 1)
      guard case .welcome(group, _)? = rows.first?.content else {
        Issue.record("no welcome")
        continue
      }
    }
  }

  @Test("Section 3, 13: a user without a device or a usable key package is named, not skipped")
  func noKeyPackage() throws {
    let rig = try rig()
    let anna = try rig.enrol()
    let bare = try rig.enrol(packages: 0, lastResort: false)
    let nobody = rig.newUser()
    #expect(rig.refusal(.claimKeyPackages(of: nobody), anna) == .userNotFound)
    #expect(rig.refusal(.claimKeyPackages(of: bare.user), anna) == .noKeyPackage(bare.user))
    let group = try rig.found(by: anna)
    var bundle = try rig.bundle(group, by: anna)
    bundle.delta.addedUsers = [bare.user]
    #expect(rig.refusal(.commit(group, bundle), anna) == .noKeyPackage(bare.user))
    bundle.delta.addedUsers = [nobody]
    #expect(rig.refusal(.commit(group, bundle), anna) == .userNotFound)
  }

  @Test("Section 3, 9: what a declared change contradicts is refused")
  func contradictions() throws {
    let rig = try rig()
    let (anna, ben, carl) = (try rig.enrol(), try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let good = try rig.bundle(group, by: anna, adding: [carl.user])
    func refused(_ expected: BackendFailure, _ change: (inout CommitBundle) -> Void) {
      var bundle = good
      change(&bundle)
      #expect(rig.refusal(.commit(group, bundle), anna) == expected)
    }
    refused(.invalidRequest(.delta)) { $0.delta.addedLeaves[0].index = 0 }
    refused(.invalidRequest(.delta)) { $0.delta.addedLeaves.append($0.delta.addedLeaves[0]) }
    refused(.invalidRequest(.delta)) { $0.delta.addedUsers = [] }
    refused(.invalidRequest(.delta)) { $0.delta.addedUsers.append(ben.user) }
    refused(.invalidRequest(.delta)) { $0.delta.removedLeaves = [carl.device!] }
    refused(.invalidRequest(.delta)) { $0.delta.removedLeaves = [anna.device!] }
    refused(.invalidRequest(.delta)) { $0.delta.removedUsers = [anna.user] }
    refused(.invalidRequest(.delta)) { $0.delta.addedLeaves[0].device = ben.device! }
    refused(.commitIncomplete(devices: [ben.device!])) { $0.delta.removedUsers = [ben.user] }
    refused(.invalidRequest(.welcome)) { $0.welcome = nil }
    refused(.invalidRequest(.message)) { $0.welcome = $0.commit }
    refused(.invalidRequest(.message)) { $0.commit = $0.groupInfo }
    refused(.invalidRequest(.message)) { $0.groupInfo = [] }
    refused(.invalidRequest(.message)) { $0.groupInfo = Wire.groupInfo(rig.newMLSID(), 2) }
    refused(.staleEpoch(head: 1)) { $0.epoch = 2 }
    refused(.messageTooLarge(limit: 1 << 20)) { $0.ratchetTree = [UInt8](repeating: 0, count: (1 << 20) + 1) }
    #expect(try rig.ask(.commit(group, good), anna) == .committed(sequence: 2, epoch: 2))
  }

  @Test("Section 3, 2: a commit that has not seen the newest proposal is incomplete")
  func proposals() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    let id = try rig.view(group, anna).summary.mlsID
    let proposal = OutgoingMessage(epoch: 1, id: rig.newMessageID(), blob: Wire.proposal(id, 1, [1]))
    #expect(try rig.ask(.send(group, proposal), ben) == .accepted(sequence: 2, epoch: 1, isRepeated: false))
    var bundle = try rig.bundle(group, by: anna)
    #expect(bundle.proposalsUpTo == nil)
    #expect(rig.refusal(.commit(group, bundle), anna) == .commitIncomplete(devices: []))
    bundle.proposalsUpTo = 7
    #expect(rig.refusal(.commit(group, bundle), anna) == .invalidRequest(.range))
    bundle.proposalsUpTo = 1
    #expect(rig.refusal(.commit(group, bundle), anna) == .commitIncomplete(devices: []))
    bundle.proposalsUpTo = 2
    try rig.ask(.commit(group, bundle), anna)
    // Of an epoch that is over, a proposal is of no use.
    let late = OutgoingMessage(epoch: 1, id: rig.newMessageID(), blob: Wire.proposal(id, 1, [2]))
    #expect(rig.refusal(.send(group, late), ben) == .staleEpoch(head: 2))
  }

  @Test("S0-103, S0-106: who may remove whom, and give which role")
  func roles() throws {
    let rig = try rig()
    let people = try (0..<5).map { _ in try rig.enrol() }
    let (owner, admin, member) = (people[0], people[1], people[2])
    let group = try rig.found(by: owner, with: people[1...].map(\.user))
    #expect(rig.refusal(.setRole(group, member.user, .admin), admin) == .forbidden)
    try rig.ask(.setRole(group, admin.user, .admin), owner)
    try rig.ask(.setRole(group, people[3].user, .admin), owner)
    #expect(rig.refusal(.setRole(group, member.user, .admin), admin) == .forbidden)
    #expect(rig.refusal(.setRole(group, rig.newUser(), .admin), owner) == .userNotFound)
    #expect(rig.refusal(.setRole(group, owner.user, .member), owner) == .forbidden)
    func removal(_ who: Caller, by: Caller) throws -> BackendFailure? {
      rig.refusal(.commit(group, try rig.bundle(group, by: by, removing: [who.user])), by)
    }
    #expect(try removal(admin, by: member) == .forbidden)
    #expect(try removal(people[4], by: member) == .forbidden)
    #expect(try removal(people[3], by: admin) == .forbidden)
    #expect(try removal(owner, by: admin) == .forbidden)
    #expect(
      rig.refusal(
        .commit(group, try rig.bundle(group, by: member, removingDevices: [people[4].device!])), member)
        == .forbidden)
    #expect(try removal(people[4], by: admin) == nil)
    #expect(try removal(people[3], by: owner) == nil)
    #expect(rig.refusal(.group(group), people[4]) == .notAMember)
  }

  @Test("A removed user gets the commit that removes, and nothing after it")
  func removed() throws {
    let rig = try rig()
    let (anna, ben, carl) = (try rig.enrol(), try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user, carl.user])
    try rig.drain(ben)
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, removing: [ben.user])), anna)
    try rig.send(group, anna)
    let rows = try rig.drain(ben)
    #expect(rows.count == 1)
    guard case .message(group, let row)? = rows.first?.content else { throw Rig<MemoryStore>.Unexpected() }
    #expect(row.kind == .commit && row.sequence == 2)
    let message = OutgoingMessage(epoch: 1, id: rig.newMessageID(), blob: [])
    #expect(rig.refusal(.send(group, message), ben) == .notAMember)
    // Who comes again has a new beginning (2.9d).
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, adding: [ben.user])), anna)
    #expect(try rig.view(group, ben).members.first { $0.user == ben.user }?.joinedSequence == 4)
    #expect(rig.refusal(.send(group, try rig.message(group, ben, epoch: 2)), ben) == .staleEpoch(head: 3))
  }

  @Test(
    "2.9e: the last owner leaves: the oldest admin, else the oldest member follows; leaves go with the next commit"
  )
  func succession() throws {
    let rig = try rig()
    let (anna, ben, carl, dora) = (try rig.enrol(), try rig.enrol(), try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    for user in [carl.user, dora.user] {
      try rig.ask(.commit(group, try rig.bundle(group, by: anna, adding: [user])), anna)
    }
    try rig.ask(.setRole(group, dora.user, .admin), anna)
    try rig.drain(dora)
    try rig.ask(.leave(group), anna)
    #expect(
      try rig.drain(dora).map(\.content) == [
        .control(.memberLeft(group, anna.user)), .control(.roleChanged(group, dora.user, .owner)),
      ])
    #expect(rig.refusal(.leave(group), anna) == .notAMember)
    var bundle = try rig.bundle(group, by: ben)
    #expect(bundle.delta.removedLeaves == [anna.device!])
    bundle.delta.removedLeaves = []
    #expect(rig.refusal(.commit(group, bundle), ben) == .commitIncomplete(devices: [anna.device!]))
    try rig.ask(.commit(group, try rig.bundle(group, by: ben)), ben)
    #expect(try rig.view(group, ben).leaves.count == 3)
    try rig.ask(.leave(group), dora)
    #expect(try rig.view(group, ben).members.first { $0.user == ben.user }?.role == .owner)
    try rig.ask(.leave(group), ben)
    try rig.ask(.leave(group), carl)
    #expect(rig.refusal(.group(group), carl) == .notAMember)
  }

  @Test("Section 3, 11: a reset is epoch 0 of a new MLS group, with everybody's devices, at once")
  func reset() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.send(group, anna)
    try rig.drain(ben)
    func founding() throws -> GroupFounding {
      var founding = try rig.founding(by: anna, with: [ben.user])
      founding.commit?.delta.addedUsers = []
      return founding
    }
    let new = try founding()
    #expect(rig.refusal(.reset(group, generation: 0, new), ben) == .forbidden)
    #expect(rig.refusal(.reset(group, generation: 1, new), anna) == .staleEpoch(head: 1))
    #expect(
      rig.refusal(
        .reset(
          group, generation: 0,
          GroupFounding(
            mlsID: new.mlsID, kind: .group, commit: nil, groupInfo: Wire.groupInfo(new.mlsID, 0))), anna)
        == .commitIncomplete(devices: [ben.device!]))
    try rig.ask(.reset(group, generation: 0, new), anna)
    let view = try rig.view(group, ben)
    #expect(view.summary.mlsID == new.mlsID && view.summary.epoch == 1 && view.summary.generation == 1)
    #expect(view.summary.headSequence == 3 && view.members.count == 2)
    let rows = try rig.drain(ben)
    #expect(rows.count == 2 && rows.first?.content == .control(.groupReset(group, generation: 1)))
    // The same request again would found it a second time.
    #expect(rig.refusal(.reset(group, generation: 0, try founding()), anna) == .staleEpoch(head: 1))
    try rig.send(group, ben)
    #expect(try rig.view(group, anna).summary.headSequence == 4)
  }

  @Test("2.9h: a member's new device is known to all, and anybody adds it; one from outside adds itself")
  func newDevice() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let group = try rig.found(by: anna, with: [ben.user])
    try rig.drain(ben)
    let tablet = try rig.enrol(ben.user)
    #expect(try rig.drain(anna).last?.content == .control(.devicesChanged(ben.user)))
    #expect(try rig.view(group, anna).missingDevices == [tablet.device!])
    #expect(rig.refusal(.send(group, try rig.message(group, tablet)), tablet) == .forbidden)
    try rig.ask(.commit(group, try rig.bundle(group, by: anna, addingDevices: [tablet.device!])), anna)
    try rig.send(group, tablet)
    // It lost its state: its leaf makes way for one of its own making.
    var bundle = try rig.bundle(
      group, by: tablet, addingDevices: [tablet.device!], removingDevices: [tablet.device!])
    bundle.welcome = nil
    let epoch = bundle.epoch
    #expect(try rig.ask(.commit(group, bundle), tablet) == .committed(sequence: 4, epoch: epoch + 1))
    bundle = try rig.bundle(
      group, by: tablet, addingDevices: [tablet.device!], removingDevices: [tablet.device!, anna.device!])
    bundle.welcome = nil
    #expect(rig.refusal(.commit(group, bundle), tablet) == .invalidRequest(.delta))
  }

  @Test("A revoked device gets nothing more, and the next commit takes its leaf out")
  func revoked() throws {
    let rig = try rig()
    let (anna, ben) = (try rig.enrol(), try rig.enrol())
    let tablet = try rig.enrol(ben.user)
    let group = try rig.found(by: anna, with: [ben.user])
    #expect(rig.refusal(.revokeDevice(tablet.device!), anna) == .forbidden)
    try rig.ask(.revokeDevice(tablet.device!), ben)
    try rig.ask(.revokeDevice(tablet.device!), ben)
    #expect(rig.refusal(.devices, tablet) == .deviceRevoked)
    try rig.send(group, anna)
    let bundle = try rig.bundle(group, by: anna)
    #expect(bundle.delta.removedLeaves == [tablet.device!])
    try rig.ask(.commit(group, bundle), anna)
    #expect(try rig.view(group, anna).leaves.count == 2)
    #expect(try rig.drain(anna).last?.content == .control(.devicesChanged(ben.user)))
  }

  @Test("2.2: a group holds a thousand devices, here three")
  func full() throws {
    var limits = BackendLimits()
    limits.devicesPerGroup = 3
    let rig = try Rig(MemoryStore(), limits: limits)
    let people = try (0..<4).map { _ in try rig.enrol() }
    let group = try rig.found(by: people[0], with: [people[1].user, people[2].user])
    #expect(
      rig.refusal(.commit(group, try rig.bundle(group, by: people[0], adding: [people[3].user])), people[0])
        == .groupFull(limit: 3))
  }

  @Test("GET /groups pages by id")
  func paging() throws {
    var limits = BackendLimits()
    limits.pageCount = 2
    let rig = try Rig(MemoryStore(), limits: limits)
    let anna = try rig.enrol()
    let all = try (0..<5).map { _ in try rig.found(by: anna) }
    var found: [GroupID] = []
    while true {
      guard case .groups(let page, let hasMore) = try rig.ask(.groups(after: found.last, limit: 50), anna)
      else {
        break
      }
      found += page.map(\.id)
      if !hasMore { break }
    }
    #expect(found == all.sorted())
    #expect(rig.refusal(.groups(after: nil, limit: 0), anna) == .invalidRequest(.range))
  }
}
