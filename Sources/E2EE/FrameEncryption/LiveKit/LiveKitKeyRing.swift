import PalbeCrypto
import PalbeUnits

/// The frame keys of one participant in LiveKit's format: seals its own frames and opens everybody's.
///
/// For calls with LiveKit's own clients (livekit-protocol.md §3). Between clients of ours `CallKeyRing` is the better one: here
/// everybody who holds a key can speak as everybody else who uses it, frames can be replayed, and how a key is shared is the
/// app's to solve.
///
///     var keys = LiveKitKeyRing(localIdentity: "ada", ledger: ledger, random: random)
///     try keys.setKey(LiveKitKey(passphrase.span), index: 0)
///     let camera = try keys.makeSender(codec: .vp8, ssrc: 0x1234)
///     let sealed = try keys.seal(camera, in: &buffer, frame: range, timestamp: timestamp)
///
/// A ring has slots for keys, and a frame names its slot. A slot's key is shared by all, or belongs to one participant, whose
/// own key comes first. Each participant stands on a step of its slot's chain:
///
///     set ──▶ step 0 ──(a frame opens under a later step of the window │ `ratchet`)──▶ step n; the steps before are refused
///
/// Owned by one thread; time comes in as an argument. Sealing and opening allocate nothing once a key has been used.
public struct LiveKitKeyRing: ~Copyable, Sendable {
  /// What participants agree on, and bounds. The defaults are those of LiveKit's native clients.
  public struct Configuration: Equatable, Sendable {
    /// Slots, 1 to 255.
    public var slots = 16
    /// Steps that are tried ahead for a frame that does not open, 0 to 255; 0 never ratchets on receiving.
    public var ratchetWindow = 16
    /// A participant's slot is given up after more failures in a row than this, until its key is set again; nil never.
    public var failureTolerance: Int?
    /// Frames in a row that make a participant unreadable.
    public var unreadableAfter = 25

    /// LiveKit's figures.
    public init() {}
  }

  /// Senders, receivers and participants of one ring at most.
  static let handleLimit = 4_096

  /// Who we are.
  public let localIdentity: String
  /// What was agreed on, within its bounds.
  public let configuration: Configuration
  /// Counts. `keyEpochs` counts keys set, `sendContexts` the sources that IVs were drawn for.
  public internal(set) var statistics = FrameStatistics()
  /// The slot that is sealed under; a slot without a key seals nothing.
  public var sendIndex = 0

  let ledger: CallKeyLedger
  var random: RandomSource
  var state: LiveKitRingState

  /// A ring without a key: it seals nothing.
  ///
  /// `ledger` is the process's: no source of IVs is used twice in it. `random` must be unpredictable outside tests.
  public init(
    localIdentity: String, ledger: CallKeyLedger, random: RandomSource,
    configuration: Configuration = Configuration()
  ) {
    var agreed = configuration
    agreed.slots = min(max(agreed.slots, 1), 255)
    agreed.ratchetWindow = min(max(agreed.ratchetWindow, 0), 255)
    agreed.failureTolerance = agreed.failureTolerance.map { max($0, 0) }
    self.localIdentity = localIdentity
    self.configuration = agreed
    self.ledger = ledger
    self.random = random
    state = LiveKitRingState(
      local: LiveKitParticipant(localIdentity, slots: agreed.slots), slots: agreed.slots)
  }

  /// Reports, oldest first.
  public mutating func pollEvent() -> CallKeyEvent? {
    state.events.isEmpty ? nil : state.events.removeFirst()
  }

  // MARK: Keys

  /// Puts a key into a slot: for everybody, or for one participant alone when `identity` names it (the local one's is sent under).
  ///
  /// Whatever was in the slot is replaced and its failures are forgotten. IVs go on where they were, so the same key again is
  /// safe. Throws `noSlot` and `tooMany`.
  public mutating func setKey(
    _ key: consuming LiveKitKey, index: Int, identity: String? = nil
  ) throws(FrameKeyError) {
    guard (0..<configuration.slots).contains(index) else {
      throw .noSlot(index: index, slots: configuration.slots)
    }
    if let identity {
      let participant = try participant(identity)
      participant.slots[index] = .init(own: LiveKitKeyChain(key))
    } else {
      state.shared[index] = LiveKitKeyChain(key)
    }
    statistics.keyEpochs += 1
  }

  /// Moves our own frames to the next step of the key in a slot; receivers follow within their windows. What we open does not
  /// change. Throws `noSlot` when there is no key, or 511 steps were taken from a shared one.
  public mutating func ratchet(index: Int) throws(FrameKeyError) {
    guard let chain = state.chain(of: state.local, index),
      chain.requireStep(state.local.slots[index].step + 1) != nil
    else { throw .noSlot(index: index, slots: configuration.slots) }
    state.local.advance(index, to: state.local.slots[index].step + 1)
  }

  /// Takes up a participant's slots again that were given up.
  public mutating func resetFailures(identity: String) {
    guard let participant = state.participants[identity] else { return }
    for index in participant.slots.indices { participant.slots[index].failures = 0 }
  }

  func participant(_ identity: String) throws(FrameKeyError) -> LiveKitParticipant {
    if identity == localIdentity { return state.local }
    if let known = state.participants[identity] { return known }
    guard state.participants.count < Self.handleLimit else { throw .tooMany(limit: Self.handleLimit) }
    guard !identity.isEmpty else { throw .invalidName(byteCount: 0) }
    return LiveKitParticipant(identity, slots: configuration.slots)
  }
}

/// A participant and where it stands in each slot.
final class LiveKitParticipant {
  struct Slot {
    /// A key of this participant alone.
    var own: LiveKitKeyChain?
    /// The chain that `step` counts in; another one begins anew.
    var chain: LiveKitKeyChain?
    var step = 0
    /// Frames under this slot in a row that did not open.
    var failures = 0

    init(own: LiveKitKeyChain? = nil) { self.own = own }
  }

  let identity: String
  var slots: [Slot]
  var counts = FrameCounts()
  var isUnreadable = false
  var receivers = [FrameReceiverID]()
  /// Of data packets; those of frames are kept by track.
  var seenData = RecentIVs()

  init(_ identity: String, slots: Int) {
    self.identity = identity
    self.slots = [Slot](repeating: Slot(), count: slots)
  }

  /// Moves on to a later step. The steps of a key of its own that lie behind are wiped.
  func advance(_ index: Int, to step: Int) {
    slots[index].step = step
    slots[index].own?.drop(before: step)
  }
}

/// One track of ours and its IVs.
final class LiveKitSender {
  let codec: LiveKitFrameCodec
  let generation: UInt32
  var ivs: LiveKitIVSequence

  init(codec: LiveKitFrameCodec, generation: UInt32, ivs: LiveKitIVSequence) {
    self.codec = codec
    self.generation = generation
    self.ivs = ivs
  }
}

/// The tracks of one codec of somebody else.
final class LiveKitReceiver {
  let participant: LiveKitParticipant
  let codec: LiveKitFrameCodec
  let generation: UInt32
  var seen = RecentIVs()

  init(participant: LiveKitParticipant, codec: LiveKitFrameCodec, generation: UInt32) {
    self.participant = participant
    self.codec = codec
    self.generation = generation
  }
}

/// What a ring owns. Apart so that the ring's own promise to the compiler is one line.
struct LiveKitRingState: ~Copyable, @unchecked Sendable {
  let local: LiveKitParticipant
  var shared: [LiveKitKeyChain?]
  var participants = [String: LiveKitParticipant]()
  var senders = [LiveKitSender?]()
  var receivers = [LiveKitReceiver?]()
  var generation: UInt32 = 0
  /// Sources that we draw IVs from, the latest of each track: what shows one of them is ours, sent back to us.
  var ownSources = [UInt32]()
  var dataIVs: LiveKitIVSequence?
  /// A frame's bytes while they are escaped, or while other steps of a chain are tried.
  var scratch = [UInt8]()
  var events = [CallKeyEvent]()

  static let eventLimit = 256
  static let ownSourceLimit = 256

  init(local: LiveKitParticipant, slots: Int) {
    self.local = local
    shared = [LiveKitKeyChain?](repeating: nil, count: slots)
  }

  mutating func report(_ event: CallKeyEvent) {
    if events.count < Self.eventLimit { events.append(event) }
  }

  /// The chain of a participant's slot, with `step` in it; nil without a key.
  func chain(of participant: LiveKitParticipant, _ index: Int) -> LiveKitKeyChain? {
    guard participant.slots.indices.contains(index) else { return nil }
    guard let chain = participant.slots[index].own ?? shared[index] else { return nil }
    if participant.slots[index].chain !== chain {
      participant.slots[index].chain = chain
      participant.slots[index].step = chain.start
      participant.slots[index].failures = 0
    }
    return chain
  }

  mutating func reserveScratch(_ byteCount: Int) {
    if scratch.count < byteCount { scratch = [UInt8](repeating: 0, count: byteCount + byteCount / 2) }
  }
}
