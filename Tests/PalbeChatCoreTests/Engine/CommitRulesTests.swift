import PalbeMLSMessages
import PalbeUnits
import Testing

@testable import PalbeChatCore

@Suite("Engine: who may commit what")
struct CommitRulesTests {
  private typealias Violation = CommitRules.Violation
  private let owner = UserID(bytes: Array(repeating: 1, count: 16))!
  private let admin = UserID(bytes: Array(repeating: 2, count: 16))!
  private let member = UserID(bytes: Array(repeating: 3, count: 16))!
  private let other = UserID(bytes: Array(repeating: 4, count: 16))!
  private let stranger = UserID(bytes: Array(repeating: 5, count: 16))!

  private func device(_ user: UserID, _ number: UInt8 = 1) -> DeviceName {
    DeviceName(user: user, device: DeviceID(bytes: Array(repeating: user.bytes[0] * 16 + number, count: 16))!)
  }

  private var before: GroupSnapshot {
    var shape = GroupShape(isDirect: false, founder: owner, others: [admin, member, other])
    shape.members[admin]?.role = .admin
    var devices: [LeafIndex: DeviceName] = [:]
    for (place, user) in [owner, admin, member, other].enumerated() {
      devices[LeafIndex(UInt32(place * 2))] = device(user)
      devices[LeafIndex(UInt32(place * 2 + 1))] = device(user, 2)
    }
    return GroupSnapshot(epoch: 4, shape: shape, devices: devices)
  }

  private func violation(
    by user: UserID?, departed: Set<UserID> = [], changed: Set<UserID> = [],
    _ change: (inout GroupSnapshot) -> Void
  ) -> Violation? {
    var after = before
    after.epoch += 1
    change(&after)
    do throws(Violation) {
      try CommitRules.check(
        before, after, committer: user.map { device($0) },
        hearsay: .init(departed: departed, changed: changed))
    } catch { return error }
    return nil
  }

  private func remove(_ user: UserID, _ group: inout GroupSnapshot) {
    group.shape.members[user] = nil
    group.devices = group.devices.filter { $0.value.user != user }
  }

  @Test("S0-103, section 3 #9: who removes whom is judged by the roles before the commit")
  func removing() {
    #expect(violation(by: owner) { remove(admin, &$0) } == nil)
    #expect(violation(by: admin) { remove(member, &$0) } == nil)
    #expect(violation(by: admin) { remove(owner, &$0) } == .mayNotRemove)
    #expect(violation(by: member) { remove(other, &$0) } == .mayNotRemove)
    // A role that the same commit gives does not count yet.
    #expect(
      violation(by: member) {
        $0.shape.members[member]?.role = .owner
        remove(owner, &$0)
      } == .mayNotRemove)
    // Who left is anybody's to remove.
    #expect(violation(by: member, departed: [owner]) { remove(owner, &$0) } == nil)
  }

  @Test("S0-106: roles are an owner's to give")
  func roles() {
    #expect(violation(by: owner) { $0.shape.members[member]?.role = .admin } == nil)
    #expect(violation(by: admin) { $0.shape.members[member]?.role = .admin } == .mayNotGiveRoles)
    #expect(violation(by: member) { $0.shape.members[member]?.role = .owner } == .mayNotGiveRoles)
    #expect(violation(by: owner) { $0.shape.members[member]?.joinedEpoch = 0 } == .ageChanged)
  }

  @Test("2.9e: who inherits may be written down as the owner by anybody, and nobody else")
  func inheritance() {
    #expect(
      violation(by: member, departed: [owner]) {
        remove(owner, &$0)
        $0.shape.members[admin]?.role = .owner
      } == nil)
    #expect(
      violation(by: member, departed: [owner]) {
        remove(owner, &$0)
        $0.shape.members[member]?.role = .owner
      } == .mayNotGiveRoles)
  }

  @Test("S0-104: who comes in comes as a member, with a leaf, and young")
  func adding() {
    func add(_ group: inout GroupSnapshot, _ role: ChatRole, _ epoch: UInt64) {
      group.shape.members[stranger] = .init(role: role, joinedEpoch: epoch)
      group.devices[LeafIndex(20)] = device(stranger)
    }
    #expect(violation(by: member) { add(&$0, .member, 5) } == nil)
    #expect(violation(by: owner) { add(&$0, .admin, 5) } == .arrivesWithRole)
    #expect(violation(by: owner) { add(&$0, .member, 1) } == .arrivesWithRole)
    #expect(violation(by: owner) { $0.devices[LeafIndex(20)] = device(stranger) } == .membersAndLeavesDiffer)
    #expect(
      violation(by: owner) { $0.shape.members[stranger] = .init(role: .member, joinedEpoch: 5) }
        == .membersAndLeavesDiffer)
  }

  @Test("2.9h: single devices go by role, by their own user, or once the server said that they changed")
  func devices() {
    let drop: (inout GroupSnapshot) -> Void = { $0.devices[LeafIndex(1)] = nil }
    #expect(violation(by: owner, drop) == nil)
    #expect(violation(by: member, drop) == .mayNotRemoveDevice)
    #expect(violation(by: member, changed: [owner], drop) == nil)
    #expect(violation(by: member) { $0.devices[LeafIndex(20)] = device(owner, 3) } == nil)
  }

  @Test("RFC 9420 §12.4.3.2: from outside a member's device comes in, and nothing else happens")
  func external() {
    #expect(violation(by: nil) { $0.devices[LeafIndex(20)] = device(owner, 3) } == nil)
    #expect(
      violation(by: nil) { $0.devices[LeafIndex(20)] = device(stranger) } == .membersAndLeavesDiffer)
    #expect(
      violation(by: nil) {
        $0.devices[LeafIndex(20)] = device(owner, 3)
        $0.devices[LeafIndex(2)] = nil
      } == .externalCommit)
    #expect(
      violation(by: nil) {
        $0.devices[LeafIndex(20)] = device(owner, 3)
        $0.shape.members[owner]?.role = .member
      } == .externalCommit)
  }
}
