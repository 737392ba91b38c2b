import PalbeChatCore
import PalbeUnits

/// What the server took, noted where requests come in: the truth that transcripts are compared with.
package struct Ledger {
  /// A message that has a place in a group's log.
  package struct Taken {
    let group: GroupID
    let seq: Int64
    let epoch: UInt64
    let id: ClientMessageID
    let sender: DeviceID
    let at: WallTime
    /// Devices that were in the group then and hold the keys of its epoch, the sender's aside.
    let readers: Set<DeviceID>
  }

  /// Something that a device means to say.
  struct Said {
    fileprivate(set) var envelope: Envelope
    let phone: Phone
    let chat: ChatID
    /// In the order in which things were said.
    let number: Int
    var isCancelled = false

    /// Has its place in the order when its bytes are up, and says only then where they are.
    var isFile: Bool { if case .attachment = envelope.content { true } else { false } }
  }

  private(set) var taken: [Taken] = []
  private(set) var said: [ClientMessageID: Said] = [:]
  /// What must not happen and did.
  private(set) var problems: [String] = []
  package private(set) var commits = 0
  /// Of each group the devices with a leaf that counts, and the epoch that each came in.
  private var leaves: [GroupID: [DeviceID: (user: UserID, epoch: UInt64)]] = [:]
  private var seqs: [ClientMessageID: [GroupID: Int64]] = [:]
  private var known: Set<[UInt8]> = []
  /// Who founded a group anew, and how many messages the server had taken by then: what was on its way there is not read.
  private(set) var resets: [DeviceID: [GroupID: Int]] = [:]

  /// How many messages the server took.
  package var messages: Int { taken.count }

  /// Notes what a device is about to say; the first time counts, but for where the bytes of a file are.
  mutating func says(_ envelope: Envelope, _ phone: Phone, _ chat: ChatID) {
    if said[envelope.id] == nil {
      said[envelope.id] = Said(envelope: envelope, phone: phone, chat: chat, number: said.count)
    } else if said[envelope.id]?.isFile == true {
      said[envelope.id]?.envelope = envelope
    }
  }

  mutating func cancels(_ id: ClientMessageID) { said[id]?.isCancelled = true }

  /// Notes a fault of the world's.
  mutating func complain(_ problem: String) { problems.append(problem) }

  mutating func revoked(_ device: DeviceID) { for group in leaves.keys { leaves[group]?[device] = nil } }

  /// Takes note of a request that the server carried out.
  mutating func note(
    _ request: ServerRequest, _ answer: ServerAnswer, from name: DeviceName, at now: WallTime,
    owner: (DeviceID) -> UserID?
  ) {
    switch (request, answer) {
    case (.send(let group, let message), .accepted(let seq, let epoch)):
      take(message, group, seq, epoch, name.device, now)
    case (.commit(let group, let commit), .committed):
      guard known.insert(commit.commit).inserted else { return }
      apply(commit, to: group, owner)
    case (.createGroup(let founding), .founded(let founded)),
      (.reset(_, _, let founding), .founded(let founded)):
      guard founded.groupID == founding.groupID, known.insert(founding.groupID).inserted else { return }
      leaves[founded.id] = [name.device: (name.user, 0)]
      if case .reset(let group, _, _) = request { resets[name.device, default: [:]][group] = taken.count }
      if let commit = founding.commit { apply(commit, to: founded.id, owner) }
    case (.leave(let group), .done):
      for (device, leaf) in leaves[group] ?? [:] where leaf.user == name.user { leaves[group]?[device] = nil }
    default: break
    }
  }

  private mutating func apply(_ commit: ServerCommit, to group: GroupID, _ owner: (DeviceID) -> UserID?) {
    commits += 1
    for device in commit.delta.removedLeaves { leaves[group]?[device] = nil }
    for leaf in commit.delta.addedLeaves {
      guard let user = owner(leaf.device) else { continue }
      leaves[group, default: [:]][leaf.device] = (user, commit.epoch + 1)
    }
  }

  private mutating func take(
    _ message: ServerMessage, _ group: GroupID, _ seq: Int64, _ epoch: UInt64, _ sender: DeviceID,
    _ now: WallTime
  ) {
    if let first = seqs[message.id]?[group] {
      if first != seq { problems.append("message \(first) was taken again as \(seq)") }
      return
    }
    seqs[message.id, default: [:]][group] = seq
    let readers = (leaves[group] ?? [:]).filter { $0.key != sender && $0.value.epoch <= epoch }
    taken.append(
      Taken(
        group: group, seq: seq, epoch: epoch, id: message.id, sender: sender, at: now,
        readers: Set(readers.keys)))
    if said[message.id] == nil { problems.append("message \(seq) of \(group) was said by nobody") }
  }

  /// The numbers that the server gave to messages, in the messages' order, by group.
  func seqs(of messages: [Said]) -> [(GroupID, [Int64])] {
    var result: [GroupID: [Int64]] = [:]
    for message in messages.sorted(by: { $0.number < $1.number }) {
      for (group, seq) in seqs[message.envelope.id] ?? [:] { result[group, default: []].append(seq) }
    }
    return result.sorted { $0.key < $1.key }
  }

  /// Whether the server has it.
  func isTaken(_ id: ClientMessageID) -> Bool { seqs[id] != nil }
}
