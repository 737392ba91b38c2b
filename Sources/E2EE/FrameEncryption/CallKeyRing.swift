import PalbeCrypto
import PalbeUnits

/// How a new call key takes over for sending. It is readable at once in any case.
public enum SendSwitch: Sendable, Hashable {
  /// At once: somebody was removed, who holds the key before.
  case now
  /// When `confirmSendKey` is called, at the latest after 2 s: everybody shall have it first.
  case whenConfirmed
  /// The plain seam: on the first authentic frame seen under it, at the latest after 2 s.
  case automatic
}

/// A track and layer that this side seals; from `makeSender`.
public struct FrameSenderID: Hashable, Sendable {
  let index: Int
  let generation: UInt32
}

/// A participant's source that this side opens; from `makeReceiver`.
public struct FrameReceiverID: Hashable, Sendable {
  let index: Int
  let generation: UInt32
}

/// The frame keys of one participant in one call: seals its own frames and opens everybody's.
///
/// Owned by one thread; time comes in as an argument. Sealing and opening a frame allocate nothing once a track's key is
/// derived.
///
///     var keys = try CallKeyRing(room: "room-1", call: "call-1", localIdentity: "ada#phone", ledger: ledger, random: random)
///     let camera = try keys.makeSender(source: .camera, codec: .vp8)
///     try keys.install(callKey, sending: .automatic, at: now)
///     let sealed = try keys.seal(camera, in: &buffer, frame: range, at: now)
///
/// Keys, oldest first, and where each stands:
///
///     install ──▶ readable, not yet sent under ──(now │ confirmed │ seen │ 2 s)──▶ the key we send under
///        │                                                                             │
///        └── a newer key is installed ──▶ replaced: readable for 10 s, at most 32 ──▶ wiped, refused for good
///
/// Before the first key nothing is sealed; the first key is sent under at once, since there is no other.
public struct CallKeyRing: ~Copyable, Sendable {
  /// Times and bounds. The defaults are the design's.
  public struct Configuration: Sendable {
    /// When a new key is sent under at the latest.
    public var sendDelay = TimeDelta.seconds(2)
    /// How long a replaced key stays readable, and a superseded context open.
    public var retention = TimeDelta.seconds(10)
    /// How many replaced keys stay readable at most.
    public var replacedKeys = 32
    /// How long a frame waits for its key.
    public var waitingTime = TimeDelta.milliseconds(500)
    /// How many frames of one sender wait at most.
    public var waitingFrames = 64
    /// How many bytes of one sender wait at most.
    public var waitingBytes = 4 << 20
    /// Open contexts of one sender and source at most.
    public var contexts = 8
    /// Made-up key ids of one participant that are tried in a second.
    public var failedDerivations = 64
    /// Frames in a row that make a participant unreadable.
    public var unreadableAfter = 25
    /// What one derived key may seal.
    public var limits = SealLimits.standard

    /// The design's figures.
    public init() {}
  }

  /// Senders and receivers of one ring at most; contexts of one receiver and key refused at most.
  static let handleLimit = 4_096
  static let closedLimit = 256

  /// The room bound into every key: `video.room` of the own token.
  public let room: String
  /// The call's id.
  public let call: String
  /// Who we are.
  public let localIdentity: ParticipantIdentity
  /// Counts.
  public internal(set) var statistics = FrameStatistics()

  let configuration: Configuration
  let ledger: CallKeyLedger
  var random: RandomSource
  var state: RingState

  /// A ring without a key: it seals nothing.
  ///
  /// `call` tells one call from the next in the same room; the room again when the caller knows no id. `random` must be
  /// unpredictable outside tests. Throws `invalidName`.
  public init(
    room: String, call: String, localIdentity: String, ledger: CallKeyLedger, random: RandomSource,
    configuration: Configuration = Configuration()
  ) throws(FrameKeyError) {
    for name in [room, call] {
      let count = name.utf8.count
      guard count > 0, count <= Int(UInt16.max) else { throw .invalidName(byteCount: count) }
    }
    let identity = try ParticipantIdentity(localIdentity)
    self.room = room
    self.call = call
    self.localIdentity = identity
    self.ledger = ledger
    self.random = random
    self.configuration = configuration
    state = RingState()
  }

  /// The key that frames are sealed under, or nil before the first.
  public var sendKeyIdentifier: UInt32? { state.sendKey?.key.keyIdentifier }
  /// Call `handleTimeout` then; nil when nothing is due.
  public var nextDeadline: Instant? { state.deadline == .distantFuture ? nil : state.deadline }

  /// Reports, oldest first.
  public mutating func pollEvent() -> CallKeyEvent? {
    state.events.isEmpty ? nil : state.events.removeFirst()
  }

  /// The call is over for everyone: its room is refused from now on under the keys it had (hazard H13). A participant who
  /// only leaves does not call this, and may come back.
  public mutating func endCall() {
    ledger.end(identity: localIdentity.text, room: room, call: call)
  }
}

/// One call key that can still be read under.
///
/// Classes here give values that cannot be copied a place in an array. A ring makes them, never hands one out and cannot
/// be copied itself, so each belongs to one thread at a time.
final class HeldKey {
  let key: CallKey
  let tag: [UInt8]
  /// Stays the same for as long as the key is held; receive contexts name it.
  let id: UInt64
  /// Order of installation; a key that comes back gets a new one, and with it fresh send contexts.
  var serial: UInt64
  var sending: SendSwitch
  /// When it is sent under at the latest.
  var sendAt: Instant
  /// When it is wiped, once a newer key is there.
  var wipeAt = Instant.distantFuture

  init(key: consuming CallKey, tag: [UInt8], serial: UInt64, sending: SendSwitch, sendAt: Instant) {
    self.tag = tag
    self.key = key
    id = serial
    self.serial = serial
    self.sending = sending
    self.sendAt = sendAt
  }
}

/// A track's sealer under the key it last sealed with.
final class Sender {
  let source: FrameSource
  let codec: FrameCodec
  var generation: UInt32 = 0
  var keySerial: UInt64 = 0
  var sealer: FrameSealer?

  init(source: FrameSource, codec: FrameCodec) {
    self.source = source
    self.codec = codec
  }
}

/// What a ring owns. Apart so that the ring's own promise to the compiler is one line.
struct RingState: ~Copyable, @unchecked Sendable {
  /// Oldest first.
  var keys = [HeldKey]()
  var sendKey: HeldKey?
  var nextSerial: UInt64 = 1
  /// Tags and identifiers of the latest wiped keys.
  var retired = [(tag: [UInt8], identifier: UInt32)]()
  var senders = [Sender?]()
  var receivers = [Receiver?]()
  var participants = [String: Participant]()
  var generation: UInt32 = 0
  /// Contexts we sealed under in this call.
  var ownContexts = Set<UInt64>()
  var released = [WaitingFrame]()
  var releasedIndex = 0
  var events = [CallKeyEvent]()
  var deadline = Instant.distantFuture

  static let retiredLimit = 256
  static let eventLimit = 256

  mutating func report(_ event: CallKeyEvent) {
    if events.count < RingState.eventLimit { events.append(event) }
  }

  func key(named identifier: UInt32) -> HeldKey? {
    keys.last { $0.key.keyIdentifier == identifier }
  }

  mutating func retire(_ key: HeldKey) {
    if retired.count == RingState.retiredLimit { retired.removeFirst() }
    retired.append((key.tag, key.key.keyIdentifier))
    for participant in participants.values { participant.dropKey(key.id) }
  }
}
