import PalbeUnits
import Testing

@testable import PalbeCallCore

/// A sender of 20 ms packets over a path made of numbers, and a player that pulls every 20 ms.
struct AudioPath {
  var seed: UInt64
  var packets = 1_000
  var jitter = TimeDelta.zero
  var loss = 0.0
  var reordering = 0.0
  var duplication = 0.0
  var firstSequence: UInt64 = 1 << 16
  var minimum = TimeDelta.milliseconds(20)
  var maximum = TimeDelta.milliseconds(500)

  struct Result {
    var sent: [UInt64] = []
    var arrived: Set<UInt64> = []
    var played: [UInt64] = []
    /// From capture to play-out, on a path without delay.
    var delays: [TimeDelta] = []
    var recovered = 0
    var concealed = 0
    var concealedLate = 0
    var buffer: AudioJitterBuffer
    var largestCount = 0
  }

  func run() -> Result {
    var random = RandomSource(seed: seed)
    func chance(_ probability: Double) -> Bool { Double(random.next() >> 11) < probability * 0x1p53 }
    func part(of delta: TimeDelta) -> TimeDelta {
      delta > .zero ? TimeDelta(nanoseconds: Int64(random.next() % UInt64(delta.nanoseconds))) : .zero
    }
    var result = Result(
      buffer: AudioJitterBuffer(minimumDelay: minimum, maximumDelay: maximum))
    var arrivals: [(at: Instant, index: Int)] = []
    for index in 0..<packets {
      let sent = Instant.zero + .milliseconds(20) * index
      result.sent.append(firstSequence + UInt64(index))
      if chance(loss) { continue }
      var at = sent + part(of: jitter)
      if chance(reordering) { at += .milliseconds(35) }
      arrivals.append((at, index))
      if chance(duplication) { arrivals.append((at + part(of: .milliseconds(30)), index)) }
    }
    arrivals.sort { $0.at < $1.at }
    var next = 0
    let phase = TimeDelta.milliseconds(7)
    for pull in 0..<packets + 50 {
      let now = Instant.zero + .milliseconds(20) * pull + phase
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, index) = arrivals[next]
        let sequence = firstSequence + UInt64(index)
        result.arrived.insert(sequence)
        _ = result.buffer.insert(
          ExtendedSequenceNumber(sequence),
          timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: index * 960 - 5_000)),
          payload: Self.payload(sequence), at: at)
        next += 1
      }
      result.largestCount = max(result.largestCount, result.buffer.count)
      switch result.buffer.pull(at: now) {
      case .packet(let payload):
        let sequence = Self.sequence(payload)
        result.played.append(sequence)
        result.delays.append(now - (Instant.zero + .milliseconds(20) * Int(sequence - firstSequence)))
      case .forwardErrorCorrection: result.recovered += 1
      case .conceal:
        result.concealed += 1
        if pull > 300, pull < packets { result.concealedLate += 1 }
      case .idle: break
      }
    }
    return result
  }

  static func payload(_ sequence: UInt64) -> [UInt8] {
    [0x78] + (0..<8).map { UInt8(truncatingIfNeeded: sequence >> (8 * $0)) }
      + [UInt8](repeating: 1, count: 60)
  }

  static func sequence(_ payload: [UInt8]) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(payload[1 + $1]) << (8 * UInt64($1)) }
  }
}

@Suite struct AudioJitterBufferTests {
  @Test("On a perfect path every packet is played, 60 ms after it was made at most, and nothing is concealed")
  func perfectPath() {
    let result = AudioPath(seed: 1).run()
    #expect(result.played == result.sent)
    #expect(result.concealed == 5 && result.recovered == 0)  // the five after the last packet
    #expect(result.buffer.counts.concealed == 0)
    #expect(result.delays.allSatisfy { $0 <= .milliseconds(80) })
  }

  static let paths = [
    AudioPath(seed: 2, jitter: .milliseconds(10)), AudioPath(seed: 3, jitter: .milliseconds(50)),
    AudioPath(seed: 4, jitter: .milliseconds(150)), AudioPath(seed: 5, loss: 0.05),
    AudioPath(seed: 6, jitter: .milliseconds(30), loss: 0.02, reordering: 0.05, duplication: 0.05),
    AudioPath(seed: 7, jitter: .milliseconds(60), loss: 0.1, reordering: 0.1, duplication: 0.1),
    AudioPath(seed: 8, jitter: .milliseconds(400), loss: 0.2, reordering: 0.2, duplication: 0.2),
    AudioPath(seed: 9, jitter: .milliseconds(900), loss: 0.1),
    AudioPath(seed: 10, jitter: .milliseconds(20), loss: 0.01, firstSequence: (1 << 17) - 300),
  ]

  @Test(
    "Whatever the path: in order, each once, nothing made up, every packet accounted for", arguments: paths)
  func invariants(_ path: AudioPath) {
    let result = path.run()
    let note = Comment(rawValue: "seed \(path.seed)")
    #expect(zip(result.played, result.played.dropFirst()).allSatisfy { $0 < $1 }, note)
    #expect(Set(result.played).isSubset(of: result.arrived), note)
    #expect(result.buffer.counts.outOfOrder == 0, note)
    #expect(result.buffer.counts.played == UInt64(result.played.count), note)
    let accounted = result.played.count + Int(result.buffer.counts.late + result.buffer.counts.discarded)
    #expect(accounted >= result.arrived.count - result.buffer.count, note)
    #expect(result.largestCount <= AudioJitterBuffer.capacity, note)
  }

  @Test(
    "Jitter below what the buffer may wait for costs nothing once it is known", arguments: [30, 60, 120, 250])
  func knownJitter(milliseconds: Int) {
    for seed in UInt64(100)..<110 {
      let result = AudioPath(seed: seed, jitter: .milliseconds(milliseconds)).run()
      #expect(result.concealedLate <= 10, "seed \(seed): \(result.concealedLate)")
      #expect(result.played.count >= 900, "seed \(seed): \(result.played.count)")
      // A little more than the worst packet needs.
      let late = result.delays.suffix(200).max() ?? .zero
      #expect(late <= .milliseconds(milliseconds + 100), "seed \(seed): \(late.wholeMilliseconds) ms")
    }
  }

  @Test("A single loss is recovered from the next packet, two in a row are concealed and recovered")
  func lossDecisions() {
    var buffer = AudioJitterBuffer(minimumDelay: .milliseconds(20), maximumDelay: .milliseconds(500))
    var now = Instant.zero
    for number in [0, 1, 3, 4, 7, 8] as [UInt64] {
      _ = buffer.insert(
        ExtendedSequenceNumber(70_000 + number), timestamp: RTPTimestamp(UInt32(number) * 960),
        payload: AudioPath.payload(number), at: now + .milliseconds(20) * Int(number))
    }
    now += .milliseconds(200)
    var pulls: [String] = []
    for _ in 0..<9 {
      switch buffer.pull(at: now) {
      case .packet(let payload): pulls.append("\(AudioPath.sequence(payload))")
      case .forwardErrorCorrection(let payload): pulls.append("fec \(AudioPath.sequence(payload))")
      case .conceal: pulls.append("conceal")
      case .idle: pulls.append("idle")
      }
      now += .milliseconds(20)
    }
    #expect(pulls == ["0", "1", "fec 3", "3", "4", "conceal", "fec 7", "7", "8"])
    #expect(buffer.counts.concealed == 3)
  }

  @Test("A pause of the sender (mute) is no loss, and play-out begins again after it")
  func pause() {
    var buffer = AudioJitterBuffer(minimumDelay: .milliseconds(20), maximumDelay: .milliseconds(500))
    var played = 0
    var now = Instant.zero
    for tick in 0..<200 {
      // Packets 0…49, two seconds of nothing, then 50…
      let number = tick < 50 ? tick : tick - 100
      if tick < 50 || tick >= 150 {
        _ = buffer.insert(
          ExtendedSequenceNumber(UInt64(70_000 + number)), timestamp: RTPTimestamp(UInt32(tick) * 960),
          payload: AudioPath.payload(UInt64(number)), at: now)
      }
      if case .packet = buffer.pull(at: now) { played += 1 }
      now += .milliseconds(20)
    }
    #expect(played >= 95)
    #expect(buffer.counts.concealed == 0 && buffer.counts.late == 0 && buffer.counts.discarded == 0)
  }

  @Test("A sender whose clock stood still in its pause is played at once again")
  func frozenClock() {
    var buffer = AudioJitterBuffer(minimumDelay: .milliseconds(20), maximumDelay: .milliseconds(500))
    var now = Instant.zero
    var played = 0
    for tick in 0..<400 {
      if tick < 50 || tick >= 250 {
        let number = tick < 50 ? tick : tick - 200
        _ = buffer.insert(
          ExtendedSequenceNumber(UInt64(70_000 + number)), timestamp: RTPTimestamp(UInt32(number) * 960),
          payload: AudioPath.payload(UInt64(number)), at: now)
      }
      if case .packet = buffer.pull(at: now) { played += 1 }
      now += .milliseconds(20)
    }
    #expect(played >= 190)
    #expect(buffer.delayTarget.target <= .milliseconds(100))
  }

  @Test("After a stall the delay comes down again, and what that leaves out is counted")
  func stall() {
    var buffer = AudioJitterBuffer(minimumDelay: .milliseconds(20), maximumDelay: .milliseconds(500))
    var now = Instant.zero
    var delay = TimeDelta.zero
    for tick in 0..<1_500 {
      // Nothing arrives for 400 ms, then all of it.
      let arriving = (500..<520).contains(tick) ? 0..<0 : tick == 520 ? 500..<521 : tick..<tick + 1
      for number in arriving {
        _ = buffer.insert(
          ExtendedSequenceNumber(UInt64(70_000 + number)), timestamp: RTPTimestamp(UInt32(number) * 960),
          payload: AudioPath.payload(UInt64(number)), at: now)
      }
      if case .packet(let payload) = buffer.pull(at: now) {
        delay = now - (Instant.zero + .milliseconds(20) * Int(AudioPath.sequence(payload)))
      }
      now += .milliseconds(20)
    }
    #expect(buffer.counts.discarded > 0 && buffer.counts.discarded <= 25)
    #expect(delay <= .milliseconds(200), "\(delay.wholeMilliseconds) ms")
    #expect(buffer.counts.played + buffer.counts.discarded >= 1_485)
  }

  @Test("A stream that jumps starts again; a flood stays within the bounds")
  func jumps() {
    var buffer = AudioJitterBuffer(minimumDelay: .milliseconds(20), maximumDelay: .milliseconds(500))
    var random = RandomSource(seed: 77)
    var now = Instant.zero
    var last: UInt64?
    for _ in 0..<20_000 {
      let number = 1 << 20 | (random.next() & 0xffff)
      _ = buffer.insert(
        ExtendedSequenceNumber(number), timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: random.next())),
        payload: AudioPath.payload(number), at: now)
      now += .milliseconds(Int(random.next() % 30))
      if case .packet = buffer.pull(at: now) { last = number }
      #expect(buffer.count <= AudioJitterBuffer.capacity)
    }
    #expect(last != nil)
    #expect(buffer.counts.outOfOrder == 0)
  }

  @Test("The delay target stays within its bounds and follows the jitter both ways")
  func delayTarget() {
    var target = AudioDelayTarget(
      minimum: .milliseconds(20), maximum: .milliseconds(500), initial: .milliseconds(60))
    #expect(target.target == .milliseconds(60))
    var random = RandomSource(seed: 88)
    func feed(_ count: Int, from start: Int, jitter: Int) {
      for index in start..<start + count {
        let at = Instant.zero + .milliseconds(20) * index + .milliseconds(Int(random.next() % UInt64(jitter)))
        target.observe(RTPTimestamp(UInt32(index) * 960), at: at)
      }
    }
    feed(1_500, from: 0, jitter: 2)
    #expect(target.target <= .milliseconds(30))
    feed(1_000, from: 1_500, jitter: 200)
    #expect((TimeDelta.milliseconds(150)...TimeDelta.milliseconds(220)).contains(target.target))
    feed(1_000, from: 2_500, jitter: 3_000)
    #expect(target.target == .milliseconds(500))
    feed(4_000, from: 3_500, jitter: 2)
    #expect(target.target <= .milliseconds(40))
  }
}
