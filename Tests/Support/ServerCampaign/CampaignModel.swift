import PalbeBackendCore
import PalbeUnits
import Synchronization

/// What clients were told, and whether it can all be true.
final class CampaignModel: Sendable {
  /// A group's log as its members were told of it.
  struct Group {
    /// What stands at a sequence: a hash of the blob.
    var log: [LogSequence: UInt64] = [:]
    /// Which sequence ended an epoch.
    var commits: [Epoch: LogSequence] = [:]
    /// What devices sent, which do not come to themselves.
    var senders: [LogSequence: DeviceID] = [:]
    /// When devices came and went.
    var joins: [DeviceID: [LogSequence]] = [:]
    var leaves: [DeviceID: [LogSequence]] = [:]
  }

  private struct State {
    var groups: [GroupID: Group] = [:]
    /// What came to a device, by group.
    var seen: [DeviceID: [GroupID: Set<LogSequence>]] = [:]
    var welcomes: [DeviceID: Set<Int64>] = [:]
    var complaints: [String] = []
    var acceptedCount = 0
    var commitCount = 0
    var staleCount = 0
  }

  private let state = Mutex(State())

  static func hash(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
  }

  func complain(_ text: String) {
    state.withLock { if $0.complaints.count < 50 { $0.complaints.append(text) } }
  }

  func founded(_ group: GroupID, by founder: DeviceID, with devices: [DeviceID]) {
    state.withLock { state in
      var new = Group()
      // The commit that added the others ended epoch 0.
      if !devices.isEmpty { new.commits[0] = 1 }
      new.senders[1] = founder
      new.joins[founder] = [0]
      for device in devices { new.joins[device, default: []].append(1) }
      state.groups[group] = new
    }
  }

  /// A message was accepted.
  func accepted(_ id: GroupID, _ sequence: LogSequence, _ blob: String, by device: DeviceID) {
    note(id, sequence, Self.hash(blob), "accepted from \(device)")
    state.withLock { state in
      state.acceptedCount += 1
      state.groups[id]?.senders[sequence] = device
    }
  }

  /// A commit was accepted: the only one of its epoch.
  func committed(
    _ id: GroupID, _ sequence: LogSequence, _ epoch: Epoch, _ blob: String, by device: DeviceID,
    adding: [DeviceID], removing: [DeviceID]
  ) {
    note(id, sequence, Self.hash(blob), "committed by \(device)")
    let other = state.withLock { state -> LogSequence? in
      state.commitCount += 1
      state.groups[id]?.senders[sequence] = device
      for device in adding { state.groups[id]?.joins[device, default: []].append(sequence) }
      for device in removing { state.groups[id]?.leaves[device, default: []].append(sequence) }
      let other = state.groups[id]?.commits[epoch]
      state.groups[id]?.commits[epoch] = sequence
      return other
    }
    if let other, other != sequence {
      complain("\(id): two commits of epoch \(epoch): \(other), \(sequence)")
    }
  }

  func stale() { state.withLock { $0.staleCount += 1 } }

  /// A row came to a device.
  func came(_ id: GroupID, _ sequence: LogSequence, _ blob: String, to device: DeviceID) {
    note(id, sequence, Self.hash(blob), "came to \(device)")
    state.withLock { _ = $0.seen[device, default: [:]][id, default: []].insert(sequence) }
  }

  func welcomed(_ device: DeviceID, _ row: Int64) {
    state.withLock { _ = $0.welcomes[device, default: []].insert(row) }
  }

  private func note(_ id: GroupID, _ sequence: LogSequence, _ hash: UInt64, _ how: String) {
    let known = state.withLock { state in
      let known = state.groups[id]?.log[sequence]
      state.groups[id]?.log[sequence] = hash
      return known
    }
    if let known, known != hash { complain("\(id): two messages at \(sequence), the second \(how)") }
  }

  // MARK: The end

  /// All rows were fetched. What is missing, or cannot be.
  func check(heads: [GroupID: LogSequence]) {
    let all = state.withLock { $0 }
    for (id, group) in all.groups {
      let head = heads[id] ?? 0
      // Nobody but the server knows the founding commit's bytes before somebody was told: it is at 1.
      let missing = (1...max(1, head)).filter { group.log[$0] == nil && $0 > 1 }
      if !missing.isEmpty { complain("\(id): nobody was told what is at \(missing.prefix(5)), head \(head)") }
      if let last = group.log.keys.max(), last > head {
        complain("\(id): \(last) was told, but the head is \(head)")
      }
      for (device, joins) in group.joins {
        let seen = all.seen[device]?[id] ?? []
        let leaves = (group.leaves[device] ?? []).sorted()
        for join in joins.sorted() {
          let end = leaves.first { $0 > join } ?? head
          guard join < end else { continue }
          let lost = (join + 1...end).filter { group.senders[$0] != device && !seen.contains($0) }
          if !lost.isEmpty {
            complain(
              "\(id): \(lost.count) of \(join + 1)...\(end) never came to \(device): \(lost.prefix(5))")
          }
        }
      }
    }
    var joined: [DeviceID: Int] = [:]
    for group in all.groups.values {
      for (device, joins) in group.joins { joined[device, default: 0] += joins.count { $0 > 0 } }
    }
    for (device, count) in joined where (all.welcomes[device]?.count ?? 0) < count {
      complain("\(device): \(all.welcomes[device]?.count ?? 0) welcomes of \(count)")
    }
  }

  var report: (complaints: [String], accepted: Int, commits: Int, stale: Int) {
    state.withLock { ($0.complaints, $0.acceptedCount, $0.commitCount, $0.staleCount) }
  }
}
