import PalbeMLS
import PalbeMLSMessages

/// What a receiver must make of a sender's messages in one epoch, written from the limits as they are promised and not
/// from the engine.
struct RatchetModel {
  private(set) var next: UInt32 = 0
  private var skipped: Set<UInt32> = []

  func predict(_ generation: UInt32, _ limits: RatchetLimits) -> Prediction {
    if generation < next { return skipped.contains(generation) ? .read : .used }
    return generation - next <= limits.maximumForwardDistance ? .read : .tooFarAhead
  }

  mutating func read(_ generation: UInt32, _ limits: RatchetLimits) {
    guard generation >= next else {
      skipped.remove(generation)
      return
    }
    for passed in next..<generation { skipped.insert(passed) }
    next = generation + 1
    while skipped.count > limits.maximumSkippedKeys, let oldest = skipped.min() { skipped.remove(oldest) }
  }
}

/// What must come of an application message.
enum Prediction: Hashable {
  case read
  case used
  case tooFarAhead
  case stale
  case future
  case own
}

/// One membership's view of epochs: what it can still read.
struct ReceiverModel {
  private(set) var epoch: UInt64
  private var past: [(epoch: UInt64, endedAt: UInt64)] = []
  private var ratchets: [UInt64: [LeafIndex: RatchetModel]] = [:]
  let configuration: MLSConfiguration

  init(epoch: UInt64, configuration: MLSConfiguration) {
    self.epoch = epoch
    self.configuration = configuration
  }

  mutating func enter(_ next: UInt64, at now: UInt64) {
    past.append((epoch, now))
    epoch = next
    drop(at: now)
  }

  private mutating func drop(at now: UInt64) {
    let seconds = configuration.pastEpochSeconds
    past.removeAll { now > $0.endedAt && now - $0.endedAt > seconds }
    while past.count > configuration.maximumPastEpochs { past.removeFirst() }
    let kept = Set(past.map(\.epoch) + [epoch])
    ratchets = ratchets.filter { kept.contains($0.key) }
  }

  mutating func predict(
    _ message: SentMessage, isOwn: Bool, at now: UInt64
  ) -> Prediction {
    drop(at: now)
    guard message.epoch <= epoch else { return .future }
    guard message.epoch == epoch || past.contains(where: { $0.epoch == message.epoch }) else { return .stale }
    if isOwn { return .own }
    let ratchet = ratchets[message.epoch]?[message.leaf] ?? RatchetModel()
    return ratchet.predict(message.generation, configuration.ratchetLimits)
  }

  mutating func read(_ message: SentMessage) {
    ratchets[message.epoch, default: [:]][message.leaf, default: RatchetModel()]
      .read(message.generation, configuration.ratchetLimits)
  }
}
