import CPalbeMallocCounter
import PalbeCongestion
import PalbeRTP
import PalbeUnits
import Testing

@Suite("No allocation a packet")
struct AllocationTests {
  /// Heap allocations of 200 runs of `body`, after 50 to warm up.
  func allocations(_ body: (Int) -> Void) -> UInt64 {
    for run in 0..<50 { body(run) }
    let before = palbe_malloc_count()
    for run in 50..<250 { body(run) }
    return palbe_malloc_count() - before
  }

  @Test("Numbering packets, reading reports, pacing and sharing")
  func everything() {
    var estimator = BandwidthEstimator()
    var pacer = Pacer(target: .megabitsPerSecond(1))
    var allocator = LayerAllocator()
    let start = Instant(nanoseconds: 1_000_000_000)
    var rates = LayerRates()
    for spatial in 0..<3 { rates[spatial, 0] = .kilobitsPerSecond(150 << (2 * spatial)) }
    for id in 0..<6 { allocator.update(LayerAllocator.Track(rates: rates), for: id, at: start) }
    estimator.setDesired(allocator.desired, at: start)
    // A report allocates its list when it is parsed; what is measured here is reading it.
    let reports = (0..<250).map { run in
      var report = TransportFeedback(
        sender: SSRC(1), media: SSRC(2), baseSequence: UInt16(run * 10), referenceTime: Int32(run),
        feedbackCount: 0)
      for packet in 0..<10 where packet != run % 11 {
        _ = report.append(UInt16(run * 10 + packet), ticks: Int32(packet * 20))
      }
      return report
    }
    let count = allocations { run in
      let now = start + .milliseconds(64 * run)
      for _ in 0..<10 {
        _ = pacer.decide(.video, byteCount: 1_200, since: now, queued: DataSize(bytes: 9_000), at: now)
        _ = estimator.packetSent(byteCount: 1_200, at: now)
        pacer.sent(.video, byteCount: 1_200, at: now)
      }
      let later = now + .milliseconds(60)
      estimator.receive(reports[run], at: later)
      estimator.handleTimeout(at: later)
      _ = estimator.probePadding(at: later)
      pacer.setTarget(estimator.estimate, at: later)
      pacer.setProbe(estimator.probe, at: later)
      allocator.update(LayerAllocator.Track(rates: rates, isSpeaking: run % 9 == 0), for: run % 6, at: later)
      allocator.allocate(estimator.estimate, at: later)
      while allocator.pollChange() != nil {}
    }
    #expect(count == 0)
  }
}
