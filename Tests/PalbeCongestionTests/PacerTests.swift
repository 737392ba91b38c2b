import PalbeCongestion
import PalbeUnits
import Testing

@Suite("Pacer")
struct PacerTests {
  let start = Instant(nanoseconds: 5_000_000_000)

  /// Sends packets of 1,200 bytes that all came at `start`, and returns when each left.
  func drain(_ pacer: inout Pacer, _ count: Int) -> [Instant] {
    var now = start
    var left: [Instant] = []
    while left.count < count {
      let queued = DataSize(bytes: Int64(1_200 * (count - left.count)))
      switch pacer.decide(.video, byteCount: 1_200, since: start, queued: queued, at: now) {
      case .now:
        pacer.sent(.video, byteCount: 1_200, at: now)
        left.append(now)
      case .at(let time):
        #expect(time > now)
        now = time
      case .late: return left
      }
    }
    return left
  }

  @Test("Leaves at 2.5 times the target, after a burst of two packets")
  func rate() {
    var pacer = Pacer(target: .megabitsPerSecond(1))
    let left = drain(&pacer, 40)
    #expect(left.prefix(2).allSatisfy { $0 == start })
    let seconds = ((left.last ?? start) - start).inSeconds
    #expect(
      (0.14...0.155).contains(seconds), "40 packets at 2.5 Mbit/s take 154 ms less the burst: \(seconds)")
    #expect(zip(left, left.dropFirst()).allSatisfy { $0 <= $1 })
  }

  @Test("A queue too long for that rate leaves faster: nothing is older than the limit")
  func bounded() {
    var pacer = Pacer(target: .kilobitsPerSecond(100))
    let left = drain(&pacer, 100)
    #expect(left.count == 100)
    #expect((left.last ?? start) - start < .milliseconds(400))
  }

  @Test("Sound never waits; what waited too long is late; padding waits its turn")
  func kinds() {
    var pacer = Pacer(target: .kilobitsPerSecond(100))
    for _ in 0..<20 { pacer.sent(.video, byteCount: 1_200, at: start) }
    #expect(
      pacer.decide(.audio, byteCount: 100, since: start, queued: .zero, at: start) == .now)
    guard case .at(let time) = pacer.decide(.padding, byteCount: 200, since: start, queued: .zero, at: start)
    else {
      Issue.record("padding does not wait")
      return
    }
    #expect(time > start && pacer.room(at: start) == 0)
    #expect(
      pacer.decide(.video, byteCount: 1_200, since: start, queued: .zero, at: start + .seconds(2)) == .late)
  }

  @Test("A probe is sent at its own rate; time that goes backwards and absurd rates do no harm")
  func extremes() {
    var pacer = Pacer(target: DataRate(bitsPerSecond: .min))
    pacer.setTarget(DataRate(bitsPerSecond: .max), at: .distantFuture)
    pacer.sent(.video, byteCount: .max, at: Instant(nanoseconds: .min))
    pacer.setTarget(.kilobitsPerSecond(10), at: .zero)
    _ = pacer.decide(
      .video, byteCount: 1, since: .distantFuture, queued: DataSize(bytes: .max), at: .distantFuture)
    _ = pacer.decide(
      .video, byteCount: 1, since: Instant(nanoseconds: .min), queued: DataSize(bytes: .min),
      at: .distantFuture)
    _ = pacer.room(at: Instant(nanoseconds: .min))
    pacer.setProbe(nil, at: .distantFuture)
  }
}
