import PalbeMLSMessages

/// What a member knows of its group, as a value: what storage keeps and what a failed operation goes back to.
///
/// Copies share their memory until one of them changes. A field that is added here belongs into `Storage/` too; the
/// test "A reloaded group has every field" finds one that is missing there.
struct GroupState: Sendable {
  var epoch: EpochState
  var past: [PastEpoch] = []
  var proposals = ProposalQueue()
  var pending: PendingCommit?
  var status = Status.member
  var preSharedKeys: [[UInt8]: Secret] = [:]
  /// What was processed, and our own commits and proposals, so that what comes again is recognised.
  var seen = SeenMessages()
  var resumptionKeys: [(epoch: UInt64, key: Secret)] = []
  var keyPackageReference: [UInt8]?
  /// Resumption secrets of other groups, and of this one before it was left, which commits may name.
  var resumptionSecrets: [GroupEpoch: Secret] = [:]
  /// Who we are since a commit of ours or an Update replaced our signing key; nil: the client the group was made for.
  var newClient: MLSClient?

  enum Status: Sendable {
    case member
    case removed
    case reInitialised(ReInit)
  }

  struct PendingCommit: Sendable {
    let message: MLSMessage
    var staged: StagedEpoch
  }

  init(_ epoch: EpochState) { self.epoch = epoch }

  /// Says that storage has all of it.
  mutating func markStored() {
    epoch.keys.markStored()
    for place in past.indices { past[place].keys.markStored() }
    pending?.staged.epoch.keys.markStored()
  }
}

/// Names an epoch of a group.
struct GroupEpoch: Hashable, Comparable, Sendable {
  let groupID: [UInt8]
  let epoch: UInt64

  static func < (left: GroupEpoch, right: GroupEpoch) -> Bool {
    left.groupID == right.groupID
      ? left.epoch < right.epoch : left.groupID.lexicographicallyPrecedes(right.groupID)
  }
}

/// The state's parts under short names.
extension MLSGroup {
  typealias Status = GroupState.Status
  typealias PendingCommit = GroupState.PendingCommit

  var epoch: EpochState {
    _read { yield state.epoch }
    _modify { yield &state.epoch }
  }
  var past: [PastEpoch] {
    _read { yield state.past }
    _modify { yield &state.past }
  }
  var proposals: ProposalQueue {
    _read { yield state.proposals }
    _modify { yield &state.proposals }
  }
  var pending: PendingCommit? {
    _read { yield state.pending }
    _modify { yield &state.pending }
  }
  var status: Status {
    _read { yield state.status }
    _modify { yield &state.status }
  }
  var preSharedKeys: [[UInt8]: Secret] {
    _read { yield state.preSharedKeys }
    _modify { yield &state.preSharedKeys }
  }
  var resumptionKeys: [(epoch: UInt64, key: Secret)] {
    _read { yield state.resumptionKeys }
    _modify { yield &state.resumptionKeys }
  }
  /// The key package that this group was joined with, nil for its creator and after an external commit. Its private
  /// keys are used up, unless it is one of last resort.
  public internal(set) var keyPackageReference: [UInt8]? {
    _read { yield state.keyPackageReference }
    _modify { yield &state.keyPackageReference }
  }
}

/// Proposals that wait for a commit, in the order they came.
struct ProposalQueue: Sendable {
  struct Entry: Sendable {
    let reference: ProposalRef
    let sent: SentProposal
  }

  private(set) var all: [Entry] = []
  private var places: [ProposalRef: Int] = [:]
  /// Private keys of our own Updates, by public key.
  private(set) var updateKeys: [[UInt8]: Secret] = [:]
  /// Who we are once such an Update is committed, where it has another signing key; by the leaf's encryption key.
  private(set) var updateClients: [[UInt8]: MLSClient] = [:]

  subscript(_ reference: ProposalRef) -> SentProposal? { places[reference].map { all[$0].sent } }

  mutating func insert(
    _ sent: SentProposal, _ reference: ProposalRef, limit: Int
  ) throws(MLSError) {
    guard places[reference] == nil else { return }
    guard all.count < limit else { throw .proposals(.tooManyPending) }
    places[reference] = all.count
    all.append(Entry(reference: reference, sent: sent))
  }

  mutating func keep(_ key: Secret, _ client: MLSClient?, forUpdate publicKey: [UInt8]) {
    updateKeys[publicKey] = key
    updateClients[publicKey] = client
  }
}
