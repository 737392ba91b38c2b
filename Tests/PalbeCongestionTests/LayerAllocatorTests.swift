import PalbeCongestion
import PalbeUnits
import Testing

@Suite("Layer allocation")
struct LayerAllocatorTests {
  static let start = Instant(nanoseconds: 1_000_000_000)

  /// Three sizes without temporal layers, in kbit/s.
  static func rates(_ kilobits: [Int]) -> LayerRates {
    var rates = LayerRates()
    for (spatial, rate) in kilobits.enumerated() { rates[spatial, 0] = .kilobitsPerSecond(rate) }
    return rates
  }

  struct Case: Sendable, CustomTestStringConvertible {
    var name: String
    var budget: Int
    var tracks: [LayerAllocator.Track]
    /// The spatial layer of each track; nil: paused.
    var expected: [UInt8?]
    var testDescription: String { name }
  }

  static func track(
    _ kilobits: [Int] = [150, 500, 1_500], maximum: UInt8 = 2, priority: UInt32 = 0, speaking: Bool = false,
    canPause: Bool = true
  ) -> LayerAllocator.Track {
    LayerAllocator.Track(
      rates: rates(kilobits), maximum: VideoLayer(spatial: maximum, temporal: 3), priority: priority,
      isSpeaking: speaking, canPause: canPause)
  }

  static let cases = [
    Case(name: "one video, plenty", budget: 2_000, tracks: [track()], expected: [2]),
    Case(name: "one video, its middle layer", budget: 1_600, tracks: [track()], expected: [1]),
    Case(name: "one video, too little", budget: 160, tracks: [track()], expected: [nil]),
    Case(
      name: "one that may not pause", budget: 50, tracks: [track(canPause: false)], expected: [0]),
    Case(
      name: "no more than asked for", budget: 9_000, tracks: [track(maximum: 1), track(maximum: 0)],
      expected: [1, 0]),
    Case(
      name: "the speaker first, the rest its lowest", budget: 2_200,
      tracks: [track(), track(speaking: true), track()], expected: [0, 2, 0]),
    Case(
      name: "everyone's lowest before anyone's second", budget: 800,
      tracks: [track(), track(), track(), track()],
      expected: [0, 0, 0, 0]),
    Case(
      name: "what is left goes round step by step", budget: 1_600, tracks: [track(), track(), track()],
      expected: [1, 1, 0]),
    Case(
      name: "the last subscribed pauses", budget: 400, tracks: [track(), track(), track()],
      expected: [0, 0, nil]),
    Case(
      name: "the least important pauses, 0 is unset", budget: 400,
      tracks: [track(priority: 0), track(priority: 9), track(priority: 1)], expected: [nil, 0, 0]),
    Case(
      name: "nobody smaller takes the place of a paused one", budget: 400,
      tracks: [track([300]), track([200]), track([50])], expected: [0, nil, nil]),
    Case(
      name: "while one is paused nobody gets a second layer", budget: 1_000,
      tracks: [track([100, 300]), track([900])], expected: [0, nil]),
    Case(
      name: "only a larger size is sent than asked for", budget: 9_000,
      tracks: [track([0, 500, 1_500], maximum: 0)], expected: [1]),
    Case(name: "nothing is sent", budget: 9_000, tracks: [track([])], expected: [nil]),
    Case(name: "no budget", budget: 0, tracks: [track(), track()], expected: [nil, nil]),
  ]

  @Test("A table: budget and videos in, layers out", arguments: cases)
  func table(_ example: Case) {
    var allocator = LayerAllocator()
    for (id, track) in example.tracks.enumerated() { allocator.update(track, for: id, at: Self.start) }
    allocator.allocate(.kilobitsPerSecond(example.budget), at: Self.start)
    #expect(example.tracks.indices.map { allocator.layer(of: $0)?.spatial } == example.expected)
  }

  @Test("Temporal layers: all of the smallest size, the two highest of a larger one")
  func temporal() {
    var rates = LayerRates()
    for (temporal, rate) in [60, 100, 150].enumerated() { rates[0, temporal] = .kilobitsPerSecond(rate) }
    for (temporal, rate) in [200, 350, 500].enumerated() { rates[1, temporal] = .kilobitsPerSecond(rate) }
    let table: [(Int, VideoLayer?)] = [
      (60, nil), (70, VideoLayer(spatial: 0, temporal: 0)), (120, VideoLayer(spatial: 0, temporal: 1)),
      (250, VideoLayer(spatial: 0, temporal: 2)), (410, VideoLayer(spatial: 1, temporal: 1)),
      (600, VideoLayer(spatial: 1, temporal: 2)),
    ]
    for (budget, expected) in table {
      var allocator = LayerAllocator()
      allocator.update(LayerAllocator.Track(rates: rates), for: 3, at: Self.start)
      allocator.allocate(.kilobitsPerSecond(budget), at: Self.start)
      #expect(allocator.layer(of: 3) == expected, "\(budget) kbit/s")
    }
  }

  /// Layers of the tracks after each step of time with a budget.
  private func run(
    _ allocator: inout LayerAllocator, _ budget: Int, from start: TimeDelta, for span: TimeDelta
  ) {
    var elapsed = start
    while elapsed < start + span {
      allocator.allocate(.kilobitsPerSecond(budget), at: Self.start + elapsed)
      elapsed = elapsed + .milliseconds(100)
    }
  }

  @Test("Down at once, up after a hold with a margin, no sooner than 10 s after the last change")
  func hysteresis() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 2_000, from: .zero, for: .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 2)
    allocator.allocate(.kilobitsPerSecond(1_400), at: Self.start + .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    // It would fit, but not with the margin.
    run(&allocator, 1_550, from: .milliseconds(30_100), for: .seconds(60))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    run(&allocator, 1_800, from: .seconds(91), for: .milliseconds(2_800))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    run(&allocator, 1_800, from: .seconds(95), for: .milliseconds(800))
    #expect(allocator.layer(of: 0)?.spatial == 2)
    // A dip just after is a failed try: now the pause counts.
    allocator.allocate(.kilobitsPerSecond(1_400), at: Self.start + .seconds(97))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    run(&allocator, 1_800, from: .seconds(97), for: .milliseconds(9_900))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    run(&allocator, 1_800, from: .milliseconds(106_900), for: .milliseconds(800))
    #expect(allocator.layer(of: 0)?.spatial == 2)
  }

  @Test("Each failed up-switch doubles the pause; a much better link ends it")
  func backoff() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 800, from: .zero, for: .seconds(30))
    var changes: [TimeDelta] = []
    var elapsed = TimeDelta.seconds(30)
    // The estimate allows the high layer until it is in use.
    while elapsed < .seconds(330) {
      let isHigh = allocator.layer(of: 0)?.spatial == 2
      allocator.allocate(.kilobitsPerSecond(isHigh ? 1_200 : 1_800), at: Self.start + elapsed)
      if !isHigh, allocator.layer(of: 0)?.spatial == 2 { changes.append(elapsed) }
      elapsed = elapsed + .milliseconds(100)
    }
    let pauses = zip(changes.dropFirst(), changes).map { $0 - $1 }
    #expect(pauses.count >= 4)
    for (pause, least) in zip(pauses, [10, 20, 40, 80, 80]) { #expect(pause >= .seconds(least), "\(pauses)") }
    run(&allocator, 1_200, from: .seconds(330), for: .seconds(20))
    run(&allocator, 2_900, from: .seconds(350), for: .seconds(10))
    #expect(allocator.layer(of: 0)?.spatial == 2)
  }

  @Test(
    "While the estimate climbs one step is awaited in place of two, but not for ever, and not by what is paused"
  )
  func climbing() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 300, from: .zero, for: .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 0)
    run(&allocator, 800, from: .seconds(30), for: .seconds(3))
    run(&allocator, 2_000, from: .seconds(33), for: .milliseconds(3_500))
    #expect(allocator.layer(of: 0)?.spatial == 0)
    run(&allocator, 2_000, from: .milliseconds(36_500), for: .seconds(1))
    #expect(allocator.layer(of: 0)?.spatial == 2)

    // It swings: every two seconds it allows all, and in between the middle layer.
    allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 300, from: .zero, for: .seconds(30))
    for second in 30..<40 {
      run(&allocator, second / 2 % 2 == 0 ? 2_000 : 800, from: .seconds(second), for: .seconds(1))
    }
    #expect(allocator.layer(of: 0)?.spatial == 1)

    allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 200, from: .zero, for: .seconds(5))
    run(&allocator, 100, from: .seconds(5), for: .seconds(25))
    #expect(allocator.layer(of: 0) == nil)
    run(&allocator, 200, from: .seconds(30), for: .seconds(3))
    run(&allocator, 400, from: .seconds(33), for: .milliseconds(1_500))
    #expect(allocator.layer(of: 0)?.spatial == 0)
  }

  @Test("An up-switch that lasted ten seconds has not failed: the pause stays as it is")
  func longTry() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 800, from: .zero, for: .seconds(30))
    var (ups, downs): ([TimeDelta], [TimeDelta]) = ([], [])
    var elapsed = TimeDelta.seconds(30)
    while elapsed < .seconds(150) {
      let isHigh = allocator.layer(of: 0)?.spatial == 2
      let isOver = isHigh && elapsed - (ups.last ?? elapsed) >= .milliseconds(10_400)
      allocator.allocate(.kilobitsPerSecond(isOver ? 1_200 : 1_800), at: Self.start + elapsed)
      let isHighNow = allocator.layer(of: 0)?.spatial == 2
      if isHighNow != isHigh { isHighNow ? ups.append(elapsed) : downs.append(elapsed) }
      elapsed = elapsed + .milliseconds(100)
    }
    let pauses = zip(downs, ups.dropFirst()).map { $1 - $0 }
    #expect(pauses.count >= 4 && pauses.allSatisfy { $0 < .seconds(11) }, "\(pauses)")
  }

  @Test("A new video makes room at once; the others' second layers give way")
  func newcomer() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(), for: 0, at: Self.start)
    run(&allocator, 600, from: .zero, for: .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 1)
    allocator.update(Self.track(), for: 1, at: Self.start + .seconds(30))
    allocator.allocate(.kilobitsPerSecond(600), at: Self.start + .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 0 && allocator.layer(of: 1)?.spatial == 0)
  }

  @Test(
    "The new speaker gets the high layer, the old one gives it up; a flood of speakers does not make it swing"
  )
  func speakers() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(speaking: true), for: 0, at: Self.start)
    allocator.update(Self.track(), for: 1, at: Self.start)
    run(&allocator, 2_000, from: .zero, for: .seconds(30))
    #expect(allocator.layer(of: 0)?.spatial == 2 && allocator.layer(of: 1)?.spatial == 0)
    allocator.update(Self.track(), for: 0, at: Self.start + .seconds(30))
    allocator.update(Self.track(speaking: true), for: 1, at: Self.start + .seconds(30))
    run(&allocator, 2_000, from: .seconds(30), for: .seconds(10))
    #expect(allocator.layer(of: 0)?.spatial == 0 && allocator.layer(of: 1)?.spatial == 2)
    var changes = 0
    var last = [allocator.layer(of: 0), allocator.layer(of: 1)]
    for second in 40..<100 {
      allocator.update(Self.track(speaking: second % 2 == 0), for: 0, at: Self.start + .seconds(second))
      allocator.update(Self.track(speaking: second % 2 == 1), for: 1, at: Self.start + .seconds(second))
      run(&allocator, 2_000, from: .seconds(second), for: .seconds(1))
      for id in 0...1 where allocator.layer(of: id) != last[id] {
        changes += 1
        last[id] = allocator.layer(of: id)
      }
    }
    #expect(changes <= 12)
  }

  @Test("A quality asked for is given without waiting; changes are told once")
  func settings() {
    var allocator = LayerAllocator()
    allocator.update(Self.track(maximum: 0), for: 4, at: Self.start)
    run(&allocator, 5_000, from: .zero, for: .seconds(30))
    #expect(
      allocator.pollChange() == LayerAllocator.Change(id: 4, layer: VideoLayer(spatial: 0, temporal: 0)))
    #expect(allocator.pollChange() == nil)
    allocator.update(Self.track(maximum: 2), for: 4, at: Self.start + .seconds(30))
    allocator.allocate(.kilobitsPerSecond(5_000), at: Self.start + .seconds(30))
    #expect(allocator.pollChange()?.layer?.spatial == 2)
    allocator.update(Self.track(maximum: 1), for: 4, at: Self.start + .seconds(31))
    allocator.allocate(.kilobitsPerSecond(5_000), at: Self.start + .seconds(31))
    #expect(allocator.pollChange()?.layer?.spatial == 1 && allocator.pollChange() == nil)
    allocator.allocate(.zero, at: Self.start + .seconds(32))
    #expect(allocator.pollChange() == LayerAllocator.Change(id: 4, layer: nil) && allocator.isPaused(4))
    allocator.remove(4)
    #expect(allocator.pollChange() == nil && allocator.allocated == .zero && allocator.desired == .zero)
  }

  @Test(
    "Random videos and estimates: the sum fits, a fresh choice grows with the estimate", arguments: 0..<40)
  func invariants(seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    var tracks: [LayerAllocator.Track] = []
    for _ in 0..<Int.random(in: 1...12, using: &random) {
      var rates = LayerRates()
      for spatial in 0..<Int.random(in: 1...3, using: &random) {
        for temporal in 0..<Int.random(in: 1...3, using: &random) {
          rates[spatial, temporal] = .kilobitsPerSecond(
            (80 << (2 * spatial)) * (temporal + 1) + Int.random(in: 0...60, using: &random))
        }
      }
      tracks.append(
        LayerAllocator.Track(
          rates: rates,
          maximum: VideoLayer(
            spatial: UInt8.random(in: 0...2, using: &random),
            temporal: UInt8.random(in: 0...3, using: &random)),
          priority: UInt32.random(in: 0...3, using: &random),
          isSpeaking: Int.random(in: 0...5, using: &random) == 0))
    }
    var last = 0
    var lastSending = 0
    for budget in stride(from: 0, through: 12_000, by: 50) {
      var fresh = LayerAllocator()
      for (id, track) in tracks.enumerated() { fresh.update(track, for: id, at: Self.start) }
      fresh.allocate(.kilobitsPerSecond(budget), at: Self.start)
      let sum = Int(fresh.allocated.bitsPerSecond)
      #expect(sum <= budget * 1_000, "seed \(seed), \(budget) kbit/s")
      let sending = tracks.indices.filter { fresh.layer(of: $0) != nil }.count
      #expect(sending >= lastSending, "seed \(seed): a larger estimate pauses a video")
      lastSending = sending
      last = max(last, sum)
    }
    #expect(last > 0)
    // A life of it: the sum always fits, and nothing goes up twice in 10 s.
    var allocator = LayerAllocator()
    for (id, track) in tracks.enumerated() { allocator.update(track, for: id, at: Self.start) }
    var budget = 3_000
    var wentUp = [Instant?](repeating: nil, count: tracks.count)
    var before = tracks.indices.map { allocator.layer(of: $0) }
    for step in 0..<3_000 {
      let now = Self.start + .milliseconds(100 * step)
      if step % 7 == 0 { budget = max(0, budget + Int.random(in: -400...420, using: &random)) }
      allocator.allocate(.kilobitsPerSecond(budget), at: now)
      #expect(allocator.allocated.bitsPerSecond <= Int64(budget) * 1_000, "seed \(seed), step \(step)")
      for id in tracks.indices {
        let layer = allocator.layer(of: id)
        if let layer, let old = before[id], old < layer {
          if let last = wentUp[id], step > 60 {
            #expect(now - last >= .seconds(10), "seed \(seed), step \(step)")
          }
          wentUp[id] = now
        }
        before[id] = layer
      }
    }
  }

  @Test("A steady estimate with noise: at most one change of a video in 10 s once settled", arguments: 0..<20)
  func stability(seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    let center = Int.random(in: 300...6_000, using: &random)
    var allocator = LayerAllocator()
    for id in 0..<4 { allocator.update(Self.track(speaking: id == seed % 4), for: id, at: Self.start) }
    var last = (0..<4).map { allocator.layer(of: $0) }
    var changes = [[Instant]](repeating: [], count: 4)
    for step in 0..<1_800 {
      let now = Self.start + .milliseconds(100 * step)
      // The saw of an estimator: down by a tenth, slowly up again.
      let saw = center * (900 + step % 60 * 3) / 1_000
      allocator.allocate(
        .kilobitsPerSecond(saw + Int.random(in: -center / 50...center / 50, using: &random)), at: now)
      for id in 0..<4 where allocator.layer(of: id) != last[id] {
        last[id] = allocator.layer(of: id)
        if step > 150 { changes[id].append(now) }
      }
    }
    for times in changes {
      for (one, next) in zip(times, times.dropFirst()) { #expect(next - one >= .seconds(10), "seed \(seed)") }
    }
  }
}
