import PalbeBackendCore
import PalbeBackendKit
import PalbeUnits

/// What the server must do, written from requirements 2 to 4 and not from its code: lists, and one function for each request
/// that says how it must be answered.
struct ReferenceModel {
  struct Device {
    let caller: Caller
    var isRevoked = false
  }
  struct Member {
    var role: ChatRole
    var joined: LogSequence
    var read: LogSequence
    var readCounted: Int64
  }
  struct Leaf: Equatable {
    var user: UserID
    var index: UInt32
    var since: Epoch
    var isLive = true
  }
  struct Group {
    var id: GroupID
    var mlsID: MLSGroupID
    var pair: Set<UserID>?
    var epoch: Epoch = 0
    var head: LogSequence = 0
    /// Whether each message from 1 on counts as unread.
    var counts: [Bool] = []
    var members: [UserID: Member] = [:]
    var former: Set<UserID> = []
    var leaves: [DeviceID: Leaf] = [:]
    var delivered: [DeviceID: LogSequence] = [:]
    /// The commits of this founding, by epoch.
    var commits: [[UInt8]] = []
    var generation: Int64 = 0
    /// Where the newest proposal of this epoch is.
    var proposal: LogSequence = 0

    func counted(_ upTo: LogSequence) -> Int64 { Int64(counts.prefix(Int(upTo)).filter { $0 }.count) }
  }
  enum Row: Equatable {
    case message(GroupID, LogSequence, [UInt8])
    case welcome(GroupID, [UInt8])
    case control(Control)
  }
  struct Receipt {
    let message: OutgoingMessage
    let group: GroupID
    let sequence: LogSequence
    let epoch: Epoch
  }

  var devices: [DeviceID: Device] = [:]
  var groups: [GroupID: Group] = [:]
  var queues: [DeviceID: [Row]] = [:]
  var receipts: [DeviceID: [Receipt]] = [:]

  /// How a request must be answered: the code of a failure, "ok", or what is known of the answer.
  enum Verdict: Equatable {
    case refused(String)
    case accepted(BackendResponse)
    case ok
  }

  // MARK: Who may

  func refusal(_ device: DeviceID, _ group: GroupID) -> Verdict? {
    guard let known = devices[device] else { return .refused("device_not_enrolled") }
    if known.isRevoked { return .refused("device_revoked") }
    guard let group = groups[group] else { return .refused("chat_not_found") }
    if group.members[known.caller.user] != nil { return nil }
    return .refused(group.former.contains(known.caller.user) ? "not_a_member" : "chat_not_found")
  }

  func user(_ device: DeviceID) -> UserID { devices[device]!.caller.user }
  func live(_ user: UserID) -> Set<DeviceID> {
    Set(devices.filter { $0.value.caller.user == user && !$0.value.isRevoked }.keys)
  }

  private mutating func deliver(_ row: Row, to group: Group, except sender: DeviceID?) {
    for (device, leaf) in group.leaves where leaf.isLive && device != sender {
      queues[device, default: []].append(row)
    }
  }

  // MARK: Devices

  mutating func enrolled(_ caller: Caller) {
    devices[caller.device!] = Device(caller: caller)
    tellDevices(caller.user)
  }

  private mutating func tellDevices(_ user: UserID) {
    var readers: Set<DeviceID> = []
    for group in groups.values where group.members[user] != nil {
      readers.formUnion(group.leaves.filter(\.value.isLive).keys)
    }
    for device in readers { queues[device, default: []].append(.control(.devicesChanged(user))) }
  }

  mutating func revoke(_ target: DeviceID, by device: DeviceID) -> Verdict {
    if devices[device]!.isRevoked { return .refused("device_revoked") }
    guard user(target) == user(device) else { return .refused("forbidden") }
    if devices[target]!.isRevoked { return .ok }
    devices[target]?.isRevoked = true
    queues[target] = nil
    for id in Array(groups.keys) { groups[id]?.leaves[target]?.isLive = false }
    tellDevices(user(target))
    return .ok
  }

  // MARK: Messages

  mutating func send(_ message: OutgoingMessage, to id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    if let first = receipts[device]?.first(where: { $0.message.id == message.id }) {
      guard first.group == id else { return .refused("invalid_request") }
      return .accepted(.accepted(sequence: first.sequence, epoch: first.epoch, isRepeated: true))
    }
    var group = groups[id]!
    guard let leaf = group.leaves[device], leaf.isLive else { return .refused("forbidden") }
    let isProposal = message.blob == Wire.proposal(group.mlsID, message.epoch, [])
    let oldest = max(leaf.since, isProposal ? group.epoch : group.epoch < 3 ? 0 : group.epoch - 3)
    guard oldest <= group.epoch, (oldest...group.epoch).contains(message.epoch) else {
      return .refused("stale_epoch")
    }
    group.head += 1
    group.counts.append(message.wakes && !isProposal)
    if isProposal { group.proposal = group.head }
    groups[id] = group
    receipts[device, default: []].append(
      Receipt(message: message, group: id, sequence: group.head, epoch: message.epoch))
    deliver(.message(id, group.head, message.blob), to: group, except: device)
    return .accepted(.accepted(sequence: group.head, epoch: message.epoch, isRepeated: false))
  }

  mutating func acknowledge(_ count: Int, of device: DeviceID) -> Verdict {
    if devices[device]!.isRevoked { return .refused("device_revoked") }
    for row in queues[device, default: []].prefix(count) { took(row, device) }
    queues[device]?.removeFirst(count)
    return .accepted(.acknowledged(count: count))
  }

  mutating func acknowledge(at places: Set<Int>, of device: DeviceID) -> Verdict {
    if devices[device]!.isRevoked { return .refused("device_revoked") }
    let rows = queues[device] ?? []
    for place in places { took(rows[place], device) }
    queues[device] = rows.enumerated().filter { !places.contains($0.offset) }.map(\.element)
    return .accepted(.acknowledged(count: places.count))
  }

  private mutating func took(_ row: Row, _ device: DeviceID) {
    if case .message(let group, let sequence, _) = row {
      let before = groups[group]?.delivered[device] ?? 0
      groups[group]?.delivered[device] = max(before, sequence)
    }
  }

  // MARK: Groups

  mutating func founded(
    _ id: GroupID, _ founding: GroupFounding, by device: DeviceID, pair: Set<UserID>?
  ) {
    var group = Group(id: id, mlsID: founding.mlsID, pair: pair)
    group.members[user(device)] = Member(role: .owner, joined: 0, read: 0, readCounted: 0)
    group.leaves[device] = Leaf(user: user(device), index: 0, since: 0)
    groups[id] = group
    if let commit = founding.commit { apply(commit, to: id, by: device) }
  }

  mutating func reset(
    _ id: GroupID, generation: Int64, _ founding: GroupFounding, by device: DeviceID
  ) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    var group = groups[id]!
    let isDirect = group.pair != nil || group.isFormerPair
    guard isDirect || group.members[user(device)]!.role != .member else { return .refused("forbidden") }
    guard generation == group.generation else { return .refused("stale_epoch") }
    let added = Set(founding.commit?.delta.addedLeaves.map(\.device) ?? [])
    let all = group.members.keys.reduce(into: Set<DeviceID>()) { $0.formUnion(live($1)) }
    guard all.subtracting([device]).isSubset(of: added) else { return .refused("commit_incomplete") }
    deliver(.control(.groupReset(id, generation: generation + 1)), to: group, except: device)
    group.mlsID = founding.mlsID
    group.generation += 1
    group.epoch = 0
    group.proposal = 0
    group.commits = []
    group.leaves = [device: Leaf(user: user(device), index: 0, since: 0)]
    groups[id] = group
    if let commit = founding.commit { apply(commit, to: id, by: device) }
    return .ok
  }

  func open(pair: Set<UserID>) -> Group? { groups.values.first { $0.pair == pair } }

  mutating func commit(_ bundle: CommitBundle, to id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    let group = groups[id]!
    guard bundle.epoch == group.epoch else { return .refused("stale_epoch") }
    let delta = bundle.delta
    let own = user(device)
    guard bundle.proposalsUpTo ?? 0 <= group.head else { return .refused("invalid_request") }
    if delta.addedLeaves.map(\.device) == [device] {
      // From outside, in the place of its own leaf.
      let (head, epoch) = apply(bundle, to: id, by: device)
      return .accepted(.committed(sequence: head, epoch: epoch))
    }
    guard bundle.proposalsUpTo ?? 0 >= group.proposal else { return .refused("commit_incomplete") }
    guard group.leaves[device]?.isLive == true else { return .refused("forbidden") }
    let stale = group.leaves.filter { !$0.value.isLive }.keys
    guard stale.allSatisfy(delta.removedLeaves.contains) else { return .refused("commit_incomplete") }
    if group.pair != nil || group.isFormerPair, !(delta.addedUsers + delta.removedUsers).isEmpty {
      return .refused("chat_is_direct")
    }
    let role = group.members[own]!.role
    for target in delta.removedUsers {
      guard target != own, let member = group.members[target] else { return .refused("invalid_request") }
      guard role == .owner || (role == .admin && member.role == .member) else { return .refused("forbidden") }
    }
    for target in delta.addedUsers where group.members[target] != nil { return .refused("invalid_request") }
    for target in delta.addedUsers {
      let added = Set(delta.addedLeaves.map(\.device))
      guard live(target).isSubset(of: added) else { return .refused("commit_incomplete") }
    }
    let (head, epoch) = apply(bundle, to: id, by: device)
    return .accepted(.committed(sequence: head, epoch: epoch))
  }

  @discardableResult
  private mutating func apply(
    _ bundle: CommitBundle, to id: GroupID, by device: DeviceID
  ) -> (LogSequence, Epoch) {
    var group = groups[id]!
    group.head += 1
    group.counts.append(false)
    group.commits.append(bundle.commit)
    deliver(.message(id, group.head, bundle.commit), to: group, except: device)
    group.epoch += 1
    group.proposal = 0
    for gone in bundle.delta.removedLeaves { group.leaves[gone] = nil }
    for leaf in bundle.delta.addedLeaves {
      group.leaves[leaf.device] = Leaf(user: user(leaf.device), index: leaf.index, since: group.epoch)
    }
    for gone in bundle.delta.removedUsers {
      group.members[gone] = nil
      group.former.insert(gone)
    }
    for user in bundle.delta.addedUsers {
      group.former.remove(user)
      group.members[user] = Member(
        role: .member, joined: group.head, read: group.head, readCounted: group.counted(group.head))
    }
    groups[id] = group
    for leaf in bundle.delta.addedLeaves where leaf.device != device {
      queues[leaf.device, default: []].append(.welcome(id, bundle.welcome ?? []))
    }
    return (group.head, group.epoch)
  }

  mutating func setRole(_ role: ChatRole, of target: UserID, in id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    let group = groups[id]!
    if group.pair != nil || group.isFormerPair { return .refused("chat_is_direct") }
    guard group.members[user(device)]?.role == .owner else { return .refused("forbidden") }
    guard let member = group.members[target] else { return .refused("user_not_found") }
    if member.role == role { return .ok }
    if member.role == .owner, group.members.values.filter({ $0.role == .owner }).count == 1 {
      return .refused("forbidden")
    }
    give(role, target, id)
    return .ok
  }

  private mutating func give(_ role: ChatRole, _ target: UserID, _ id: GroupID) {
    groups[id]?.members[target]?.role = role
    deliver(.control(.roleChanged(id, target, role)), to: groups[id]!, except: nil)
  }

  mutating func leave(_ id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    let own = user(device)
    let role = groups[id]!.members[own]!.role
    groups[id]?.members[own] = nil
    groups[id]?.former.insert(own)
    deliver(.control(.memberLeft(id, own)), to: groups[id]!, except: nil)
    for (leaf, value) in groups[id]!.leaves where value.user == own {
      groups[id]?.leaves[leaf]?.isLive = false
    }
    if groups[id]?.pair != nil {
      groups[id]?.pair = nil
      groups[id]?.isFormerPair = true
    }
    let rest = groups[id]!.members
    if role == .owner, !rest.values.contains(where: { $0.role == .owner }) {
      let best = rest.values.map(\.role).max()
      let heirs = rest.filter { $0.value.role == best }
      let first = heirs.values.map(\.joined).min()
      if let heir = heirs.filter({ $0.value.joined == first }).keys.min() { give(.owner, heir, id) }
    }
    return .ok
  }

  // MARK: Reading

  mutating func markRead(_ sequence: LogSequence, in id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    let group = groups[id]!
    let reached = min(sequence, group.head)
    let own = user(device)
    if reached > group.members[own]!.read {
      groups[id]?.members[own]?.read = reached
      groups[id]?.members[own]?.readCounted = group.counted(reached)
    }
    return .ok
  }

  func unread(_ id: GroupID, by device: DeviceID) -> Verdict {
    if let refusal = refusal(device, id) { return refusal }
    let group = groups[id]!
    let member = group.members[user(device)]!
    let own = group.delivered.filter { user($0.key) == user(device) }.values.max() ?? 0
    return .accepted(
      .unread(
        UnreadView(
          groupMaxSequence: group.head, lastReadSequence: member.read, deliveredSequence: own,
          unreadCount: group.counted(group.head) - member.readCounted)))
  }
}

extension ReferenceModel.Group {
  /// A direct chat that one of the two left stays one.
  var isFormerPair: Bool {
    get { former.contains(Self.mark) }
    set { if newValue { former.insert(Self.mark) } }
  }
  /// Nobody's id.
  private static let mark = UserID(bytes: [UInt8](repeating: 0, count: 16))!
}
