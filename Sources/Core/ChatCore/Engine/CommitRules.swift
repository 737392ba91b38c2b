import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// A group as far as the rules of roles look at it.
struct GroupSnapshot: Equatable {
  var epoch: UInt64
  var shape: GroupShape
  var devices: [LeafIndex: DeviceName]

  init(epoch: UInt64, shape: GroupShape, devices: [LeafIndex: DeviceName]) {
    (self.epoch, self.shape, self.devices) = (epoch, shape, devices)
  }

  /// Of a group as it stands; nil when it has no shape or a leaf names nobody.
  init?(_ group: borrowing MLSGroup) {
    guard let shape = GroupShape(group.context) else { return nil }
    epoch = group.epochNumber
    self.shape = shape
    devices = [:]
    for member in group.members {
      guard let name = DeviceName(credential: member.credential) else { return nil }
      devices[member.leaf] = name
    }
  }

  /// The users who have a device in the tree.
  var usersInTree: Set<UserID> { Set(devices.values.map(\.user)) }
  /// The devices of every user in the tree. Walks all leaves: whoever asks for several users takes it once.
  var devicesByUser: [UserID: Set<DeviceID>] {
    var result: [UserID: Set<DeviceID>] = [:]
    for name in devices.values { result[name.user, default: []].insert(name.device) }
    return result
  }
}

/// Whether a commit was its committer's to make, by the state before it (section 3 #9, S0-106).
///
/// The server checks what the committer declared; only members see what the commit does. Who breaks a rule here is not
/// followed, and the group falls apart visibly.
enum CommitRules {
  /// Why a commit is not followed.
  enum Violation: Error, Equatable {
    /// A direct chat stays one, and a group one.
    case kindChanged
    /// The members of a direct chat are the two of its beginning.
    case directMembersChanged
    /// A leaf of somebody who is no member, or a member who came without a leaf.
    case membersAndLeavesDiffer
    /// A user came in with a role, or with another's age.
    case arrivesWithRole
    case ageChanged
    case mayNotRemove
    case mayNotRemoveDevice
    case mayNotGiveRoles
    /// Who joins from outside must be of a member, and do nothing else.
    case externalCommit

    /// Whether it is none when the server says that somebody left, or that a device is gone.
    var restsOnHearsay: Bool {
      switch self {
      case .directMembersChanged, .mayNotRemove, .mayNotRemoveDevice: true
      default: false
      }
    }
  }

  /// What the server told before, without which a member may not clear up after others.
  struct Hearsay {
    /// Users who left.
    var departed: Set<UserID>
    /// Users whose devices changed.
    var changed: Set<UserID>
  }

  /// - Parameter committer: as the state before knew them; nil for one who joined from outside.
  static func check(
    _ before: GroupSnapshot, _ after: GroupSnapshot, committer: DeviceName?, hearsay: Hearsay
  ) throws(Violation) {
    guard before.shape.isDirect == after.shape.isDirect else { throw .kindChanged }
    let devices = after.devicesByUser
    guard devices.keys.allSatisfy({ after.shape.members[$0] != nil }) else { throw .membersAndLeavesDiffer }
    guard let committer else { return try checkExternal(before, after) }
    guard let role = before.shape.role(of: committer.user) else { throw .externalCommit }

    let oldDevices = before.devicesByUser
    let old = Set(before.shape.members.keys)
    let new = Set(after.shape.members.keys)
    if before.shape.isDirect, old != new,
      !old.subtracting(new).isSubset(of: hearsay.departed) || new.count > old.count
    {
      throw .directMembersChanged
    }
    for user in new.subtracting(old) {
      guard devices[user] != nil else { throw .membersAndLeavesDiffer }
      guard after.shape.members[user] == .init(role: .member, joinedEpoch: after.epoch) else {
        throw .arrivesWithRole
      }
    }
    var rest = before.shape
    for user in old.subtracting(new) {
      let other = before.shape.role(of: user) ?? .member
      guard hearsay.departed.contains(user) || GroupShape.mayRemove(role, other) else { throw .mayNotRemove }
      rest.members[user] = nil
    }
    for user in old.intersection(new) {
      guard let was = rest.members[user], let now = after.shape.members[user] else { continue }
      // Who left and comes again is as new.
      if hearsay.departed.contains(user), now == .init(role: .member, joinedEpoch: after.epoch) { continue }
      guard was.joinedEpoch == now.joinedEpoch else { throw .ageChanged }
      // Who inherited may be written down as what they are.
      if now.role != was.role, now.role != rest.role(of: user), role != .owner { throw .mayNotGiveRoles }
      let gone = (oldDevices[user] ?? []).subtracting(devices[user] ?? [])
      if !gone.isEmpty, user != committer.user, !hearsay.changed.contains(user),
        !GroupShape.mayRemove(role, before.shape.role(of: user) ?? .member)
      {
        throw .mayNotRemoveDevice
      }
    }
  }

  private static func checkExternal(_ before: GroupSnapshot, _ after: GroupSnapshot) throws(Violation) {
    guard before.shape == after.shape else { throw .externalCommit }
    let old = Set(before.devices.values)
    let new = Set(after.devices.values)
    guard old.subtracting(new).isEmpty, new.subtracting(old).count <= 1 else { throw .externalCommit }
  }
}
