import PalbeUnits

/// One sealed stream of a sender that can be opened: it exists because a frame of it authenticated.
final class ReceiveContext {
  let keyID: UInt64
  let key: HeldKey
  var opener: FrameOpener
  /// When it closes, once superseded.
  var closesAt = Instant.distantFuture

  init(keyID: UInt64, key: HeldKey, opener: consuming FrameOpener) {
    self.keyID = keyID
    self.key = key
    self.opener = opener
  }
}

/// One source of one participant: its open contexts, oldest first, and those that stay refused while their key lives.
final class Receiver {
  let participant: Participant
  let source: FrameSource
  let codec: FrameCodec
  let generation: UInt32
  /// How many streams of this source the sender may have at once under one key: tracks times simulcast layers.
  var streams: Int
  private(set) var contexts = [ReceiveContext]()
  private var closed = [(key: UInt64, keyID: UInt64)]()

  init(participant: Participant, source: FrameSource, codec: FrameCodec, generation: UInt32, streams: Int) {
    self.participant = participant
    self.source = source
    self.codec = codec
    self.generation = generation
    self.streams = streams
    contexts.reserveCapacity(8)
  }

  func context(for keyID: UInt64) -> ReceiveContext? {
    var index = contexts.count - 1
    while index >= 0 {
      if contexts[index].keyID == keyID { return contexts[index] }
      index -= 1
    }
    return nil
  }

  func isClosed(_ keyID: UInt64) -> Bool { closed.contains { $0.keyID == keyID } }

  /// True when no further context may open under the key: too many were closed already.
  func isFull(for key: HeldKey) -> Bool {
    closed.count { $0.key == key.id } >= CallKeyRing.closedLimit
  }

  /// Adds a context whose first frame authenticated. Of its key the newest `streams` stay; older ones close at
  /// `closing`. When there are more than `limit` in all, the one that closes first closes now.
  func open(_ context: ReceiveContext, closing: Instant, limit: Int) {
    contexts.append(context)
    var newer = 0
    for other in contexts.reversed() where other.key === context.key {
      if newer >= streams { other.closesAt = min(other.closesAt, closing) }
      newer += 1
    }
    while contexts.count > limit {
      var first = 0
      for index in contexts.indices.dropLast()
      where min(contexts[index].closesAt, contexts[index].key.wipeAt)
        < min(contexts[first].closesAt, contexts[first].key.wipeAt)
      { first = index }
      close(at: first)
    }
  }

  private func close(at index: Int) {
    let context = contexts.remove(at: index)
    closed.append((context.key.id, context.keyID))
  }

  func closeContexts(at now: Instant) {
    var index = 0
    while index < contexts.count {
      if contexts[index].closesAt <= now { close(at: index) } else { index += 1 }
    }
  }

  func dropKey(_ id: UInt64) {
    contexts.removeAll { $0.key.id == id }
    closed.removeAll { $0.key == id }
  }

  /// Nothing that a replay could use is left.
  var isForgettable: Bool { contexts.isEmpty && closed.isEmpty }
}

/// A frame whose key has not come yet.
struct WaitingFrame {
  let receiver: FrameReceiverID
  let keyIdentifier: UInt32
  let tag: UInt64
  let arrival: Instant
  let bytes: [UInt8]
}

/// A participant that this side opens frames of.
final class Participant {
  let identity: ParticipantIdentity
  let isLocal: Bool
  var counts = FrameCounts()
  var isUnreadable = false
  var receivers = [(id: FrameReceiverID, receiver: Receiver)]()
  /// Gone from the call; kept until its contexts are gone, so that its frames cannot be played again.
  var hasLeft = false
  private(set) var waiting = [WaitingFrame]()
  private var waitingBytes = 0
  private var derivations: Int
  private var derivationsSince = Instant(nanoseconds: .min)

  init(identity: ParticipantIdentity, isLocal: Bool, derivations: Int) {
    self.identity = identity
    self.isLocal = isLocal
    self.derivations = derivations
  }

  func dropKey(_ id: UInt64) { for entry in receivers { entry.receiver.dropKey(id) } }

  // MARK: Made-up key ids

  /// True while fewer than `limit` derivations failed in the running second.
  func mayDerive(at now: Instant, limit: Int) -> Bool {
    if now - derivationsSince >= .seconds(1) {
      derivationsSince = now
      derivations = limit
    }
    return derivations > 0
  }

  func countFailedDerivation() { derivations -= 1 }

  // MARK: Waiting frames

  /// Keeps a frame; returns how many older ones it pushed out.
  func wait(_ frame: WaitingFrame, limit: Int, byteLimit: Int) -> Int {
    waiting.append(frame)
    waitingBytes += frame.bytes.count
    var pushed = 0
    while waiting.count - pushed > limit || (waitingBytes > byteLimit && waiting.count > pushed) {
      waitingBytes -= waiting[pushed].bytes.count
      pushed += 1
    }
    waiting.removeFirst(pushed)
    return pushed
  }

  /// Drops what arrived before `arrival`; returns how many.
  func dropWaiting(upTo arrival: Instant) -> Int {
    take { $0.arrival <= arrival }.count
  }

  /// Takes the frames that fit out of the queue, in order.
  func take(where fits: (WaitingFrame) -> Bool) -> [WaitingFrame] {
    let taken = waiting.filter(fits)
    guard !taken.isEmpty else { return [] }
    waiting.removeAll(where: fits)
    waitingBytes = waiting.reduce(0) { $0 + $1.bytes.count }
    return taken
  }

  func deadline(waitingTime: TimeDelta) -> Instant {
    var deadline = waiting.first.map { $0.arrival + waitingTime } ?? .distantFuture
    for entry in receivers {
      for context in entry.receiver.contexts { deadline = min(deadline, context.closesAt) }
    }
    return deadline
  }
}
