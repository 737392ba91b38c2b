import PalbeRTP
import PalbeUnits
import PalbeWire

/// Puts a track's audio packets in order and says every 20 ms what to play.
///
/// ## Overview
///
///     empty ──packet──▶ filling ──oldest packet is due──▶ playing ──nothing for 100 ms──▶ empty
///
/// ## Function
///
/// Playing, a pull takes the next packet in order. When that is missing and a later one is here, it was
/// lost: it is recovered from the later one's forward error correction or concealed, and play-out goes on
/// past it. When nothing is here, the pull is concealed and play-out waits, so the delay grows by 20 ms;
/// packets that then turn out lost are taken as played. While the delay is below what `AudioDelayTarget`
/// asks for, a missing packet is waited for as well. A delay far above the target for a second is brought
/// down by leaving out packets, quiet (small) ones first.
///
/// A pause of the sender (mute, DTX) shows in the timestamps, and what was concealed into it is no loss.
///
/// ## Bounds
///
/// At most 64 packets; a number more than 512 away starts the buffer again.
struct AudioJitterBuffer: Sendable {
  /// What became of a packet.
  enum Insertion: Hashable, Sendable {
    case stored, duplicate
    /// Its turn has passed.
    case late
    /// The stream jumped: the buffer begins again with this packet.
    case restarted
  }

  /// What was played, and how.
  struct Counts: Hashable, Sendable {
    var played: UInt64 = 0
    /// Pulls answered with concealment or error correction for a packet that was late or lost.
    var concealed: UInt64 = 0
    /// Packets that came after their turn.
    var late: UInt64 = 0
    /// Packets left out to bring the delay down.
    var discarded: UInt64 = 0
    /// Packets played out of order: must stay zero.
    var outOfOrder: UInt64 = 0
  }

  struct Entry: Sendable {
    var sequence: UInt64
    var timestamp: RTPTimestamp
    var payload: [UInt8]
  }

  enum Phase: Sendable { case empty, filling, playing }

  static let capacity = 64
  static let jump: UInt64 = 512
  static let ticksPerPull = 960
  static let pullTime = TimeDelta.milliseconds(20)
  /// Pulls in a row that are concealed while nothing is here.
  static let longestConcealment: UInt64 = 5
  /// Late packets in a row that mean a restarted stream.
  static let lateLimit = 25
  static let levelWindow = 50
  static let highLevel = TimeDelta.milliseconds(40)

  private(set) var counts = Counts()
  private(set) var phase = Phase.empty
  private(set) var delayTarget: AudioDelayTarget
  /// In ascending order.
  private var entries: [Entry] = []
  /// The packet whose turn it is; nil before the first one was played.
  private var next: UInt64?
  private var nextTimestamp = RTPTimestamp(0)
  private var lastPlayed: UInt64?
  /// Pulls since the buffer ran dry.
  private var unanswered: UInt64 = 0
  private var lateInARow = 0
  private var averageByteCount = 0
  /// The smallest delay above the target in this window, and how many pulls it has had.
  private var level: (least: TimeDelta, pulls: Int) = (TimeDelta(nanoseconds: .max), 0)
  private var surplus = 0
  private var pullsSinceDiscard = 0

  init(minimumDelay: TimeDelta, maximumDelay: TimeDelta, initialDelay: TimeDelta = .milliseconds(60)) {
    delayTarget = AudioDelayTarget(minimum: minimumDelay, maximum: maximumDelay, initial: initialDelay)
    entries.reserveCapacity(Self.capacity)
  }

  /// Packets that wait for their turn.
  var count: Int { entries.count }

  /// Takes up an opened packet.
  mutating func insert(
    _ sequence: ExtendedSequenceNumber, timestamp: RTPTimestamp, payload: [UInt8], at arrival: Instant
  ) -> Insertion {
    let number = sequence.rawValue
    if let next, number < next, next - number < Self.jump, lateInARow < Self.lateLimit {
      delayTarget.observe(timestamp, at: arrival)
      counts.late += 1
      lateInARow += 1
      return .late
    }
    var result = Insertion.stored
    if let anchor = next ?? entries.first?.sequence, isJump(number, from: anchor) {
      restart()
      result = .restarted
    }
    lateInARow = 0
    var position = entries.count
    while position > 0, entries[position - 1].sequence > number { position -= 1 }
    if position > 0, entries[position - 1].sequence == number { return .duplicate }
    if phase == .empty {
      // After a long stall the sender's clock may have stood still with it (mute).
      if next != nil, delayTarget.delay(of: timestamp, at: arrival) > .seconds(1) { delayTarget.forgetBase() }
      phase = .filling
    }
    delayTarget.observe(timestamp, at: arrival)
    entries.insert(Entry(sequence: number, timestamp: timestamp, payload: payload), at: position)
    if entries.count > Self.capacity { overflow() }
    return result
  }

  /// What to play for the next 20 ms.
  mutating func pull(at now: Instant) -> AudioPull {
    if phase == .filling { startIfDue(at: now) }
    guard phase == .playing, let next else {
      if self.next != nil { unanswered += 1 }
      return .idle
    }
    guard !entries.isEmpty else { return runDry() }
    if unanswered > 0 { settle() }
    watchLevel(next, at: now)
    shorten()
    guard let first = entries.first else { return runDry() }
    return first.sequence == self.next ? play() : bridge(to: first, at: now)
  }

  // MARK: Playing

  private mutating func play() -> AudioPull {
    let entry = entries.removeFirst()
    take(entry)
    counts.played += 1
    averageByteCount += (entry.payload.count - averageByteCount) / 8
    return .packet(entry.payload)
  }

  private mutating func take(_ entry: Entry) {
    if let lastPlayed, entry.sequence <= lastPlayed { counts.outOfOrder += 1 }
    lastPlayed = entry.sequence
    next = entry.sequence + 1
    nextTimestamp = entry.timestamp + (OpusPayload.samples(in: entry.payload.span) ?? Self.ticksPerPull)
  }

  /// The packet whose turn it is is missing, a later one is here.
  private mutating func bridge(to first: Entry, at now: Instant) -> AudioPull {
    counts.concealed += 1
    if delayTarget.delay(of: nextTimestamp, at: now) + Self.pullTime <= delayTarget.target { return .conceal }
    let passed = (next ?? first.sequence) + 1
    next = passed
    nextTimestamp = nextTimestamp + Self.ticksPerPull
    return passed == first.sequence ? .forwardErrorCorrection(first.payload) : .conceal
  }

  private mutating func runDry() -> AudioPull {
    unanswered += 1
    guard unanswered > Self.longestConcealment else { return .conceal }
    phase = .empty
    return .idle
  }

  // MARK: Beginning, and beginning again

  private mutating func startIfDue(at now: Instant) {
    guard let first = entries.first else { return }
    let isFull = entries.count > Self.capacity / 2
    guard isFull || delayTarget.delay(of: first.timestamp, at: now) >= delayTarget.target else { return }
    phase = .playing
    if next == nil {
      next = first.sequence
      nextTimestamp = first.timestamp
    }
  }

  /// Packets are here again: what was concealed meanwhile counts as a loss, unless the sender had paused.
  private mutating func settle() {
    guard let first = entries.first, let expected = next else { return }
    let gap = first.sequence - expected
    let ticks = first.timestamp.distance(from: nextTimestamp)
    let hasPaused = ticks > (Int(gap) + 1) * Self.ticksPerPull
    let skipped = hasPaused ? gap : min(gap, unanswered)
    if !hasPaused { counts.concealed += unanswered }
    unanswered = 0
    next = expected + skipped
    nextTimestamp =
      next == first.sequence ? first.timestamp : nextTimestamp + Int(skipped) * Self.ticksPerPull
  }

  private func isJump(_ number: UInt64, from anchor: UInt64) -> Bool {
    number > anchor ? number - anchor >= Self.jump : anchor - number >= Self.jump || number < (next ?? 0)
  }

  private mutating func restart() {
    entries.removeAll(keepingCapacity: true)
    next = nil
    lastPlayed = nil
    unanswered = 0
    surplus = 0
    phase = .empty
    delayTarget.forgetBase()
  }

  private mutating func overflow() {
    let entry = entries.removeFirst()
    take(entry)
    counts.discarded += 1
  }

  // MARK: Delay

  /// Once a second: by how many packets has the delay been too long all the time?
  private mutating func watchLevel(_ next: UInt64, at now: Instant) {
    let excess = delayTarget.delay(of: nextTimestamp, at: now) - delayTarget.target
    level = (min(level.least, excess), level.pulls + 1)
    guard level.pulls >= Self.levelWindow else { return }
    let packets = (level.least - Self.pullTime).nanoseconds / Self.pullTime.nanoseconds
    surplus = level.least >= Self.highLevel ? Int(min(max(packets, 0), Int64(Self.capacity))) : 0
    level = (TimeDelta(nanoseconds: .max), 0)
  }

  /// Leaves out one packet if there are too many: a lost one at no cost, else a quiet one, else any after a
  /// while.
  private mutating func shorten() {
    pullsSinceDiscard += 1
    guard surplus > 0, entries.count >= 2, let first = entries.first, let expected = next else { return }
    if first.sequence > expected {
      next = expected + 1
      nextTimestamp = nextTimestamp + Self.ticksPerPull
      surplus -= 1
      return
    }
    guard first.payload.count * 2 < averageByteCount || pullsSinceDiscard >= 10 else { return }
    pullsSinceDiscard = 0
    surplus -= 1
    counts.discarded += 1
    entries.removeFirst()
    take(first)
  }
}
