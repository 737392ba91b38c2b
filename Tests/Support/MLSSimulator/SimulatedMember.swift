import PalbeMLS
import PalbeMLSMessages

/// Everything that was ever sent to the group; it has one number for all.
final class SentMessage {
  enum Kind: String {
    case application
    case proposal
    case commit
  }

  let number: Int
  let kind: Kind
  let message: MLSMessage
  let bytes: [UInt8]
  /// The sender's number.
  let sender: Int
  /// Which of the sender's memberships, for it may leave and come again.
  let life: Int
  let leaf: LeafIndex
  let epoch: UInt64
  /// Place in the sender's ratchet, for application messages.
  let generation: UInt32
  let data: [UInt8]
  /// What a commit does.
  let effect: CommitEffect?
  /// What a proposal to remove somebody asks for; empty for all else.
  let meaning: String

  init(
    number: Int, kind: Kind, message: MLSMessage, sender: Int, life: Int, leaf: LeafIndex, epoch: UInt64,
    generation: UInt32 = 0, data: [UInt8] = [], effect: CommitEffect? = nil,
    meaning: String = ""
  ) {
    self.meaning = meaning
    self.number = number
    self.kind = kind
    self.message = message
    bytes = message.encoded()
    self.sender = sender
    self.life = life
    self.leaf = leaf
    self.epoch = epoch
    self.generation = generation
    self.data = data
    self.effect = effect
  }
}

/// A message on its way to one member.
struct Delivery {
  let due: Int
  let number: Int
  /// Set for a copy that somebody changed.
  var tampered: [UInt8]?
}

/// A Welcome on its way.
struct Invitation {
  let due: Int
  let welcome: MLSMessage
  let ratchetTree: RatchetTreeExtension?
  let epoch: UInt64
}

/// A commit that its sender has not seen accepted or refused.
struct PendingCommit {
  let number: Int
  let welcome: MLSMessage?
  let ratchetTree: RatchetTreeExtension?
}

/// A client and, at times, its membership.
final class SimulatedMember {
  enum State: String {
    /// Never was in the group, or left it.
    case outside
    /// Added, and has not joined yet.
    case invited
    /// In the group as far as it knows.
    case inside
    /// Was told of its removal.
    case removed
    /// In the tree, with a state that leads nowhere: it must join again.
    case lost
  }

  let number: Int
  let client: MLSClient
  /// Seconds by which its clock is ahead.
  let clockSkew: UInt64
  var state = State.outside
  var membership: Membership?
  /// What it keeps over restarts.
  let disk: SimulatedDisk
  /// Counts its memberships.
  var life = 0
  var model: ReceiverModel
  var bundles: [KeyPackageBundle] = []
  var invitation: Invitation?
  var inbox: [Delivery] = []
  /// Messages of epochs that it has not reached.
  var waiting: [Int] = []
  var offlineUntil = 0
  var pending: PendingCommit?
  /// Proposals that the server has not got yet; they go before anything else of ours.
  var unsent: [Int] = []
  /// Proposals of this epoch that it holds.
  var proposals: Set<Int> = []
  /// Handshake messages that this membership processed.
  var processed: Set<Int> = []
  /// Own handshake messages of this epoch.
  var handshakes = 0
  /// Its next application message's place in this epoch's ratchet.
  var generation: UInt32 = 0
  /// Application messages that it read.
  var read: Set<Int> = []

  init(number: Int, client: MLSClient, clockSkew: UInt64) {
    disk = SimulatedDisk(seed: UInt64(number))
    self.number = number
    self.client = client
    self.clockSkew = clockSkew
    model = ReceiverModel(epoch: 0, configuration: client.configuration)
  }
}
