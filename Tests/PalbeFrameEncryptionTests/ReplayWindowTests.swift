import Testing

@testable import PalbeFrameEncryption

@Suite("Replay window")
struct ReplayWindowTests {
  /// The window behind a reference: the macros copy what they look at.
  final class Window {
    private var window = ReplayWindow()
    func verdict(on counter: UInt64) -> ReplayWindow.Verdict { window.verdict(on: counter) }
    func mark(_ counter: UInt64) { window.mark(counter) }
  }

  @Test("H10: 4,096 counters back are told apart, the next one is too old")
  func width() {
    let window = Window()
    window.mark(10_000)
    #expect(window.verdict(on: 10_000) == .replayed)
    #expect(window.verdict(on: 10_000 - 4_095) == .fresh)
    #expect(window.verdict(on: 10_000 - 4_096) == .tooOld)
    window.mark(10_000 - 4_095)
    #expect(window.verdict(on: 10_000 - 4_095) == .replayed)
    #expect(window.verdict(on: 0) == .tooOld)
  }

  @Test("H10: counter 0, the highest counter and far leaps")
  func edges() {
    let window = Window()
    #expect(window.verdict(on: 0) == .fresh)
    window.mark(0)
    #expect(window.verdict(on: 0) == .replayed)
    #expect(window.verdict(on: 1) == .fresh)
    window.mark(.max)
    #expect(window.verdict(on: .max) == .replayed)
    #expect(window.verdict(on: .max - 4_095) == .fresh)
    #expect(window.verdict(on: 0) == .tooOld)
  }

  @Test("H10: against a set that forgets nothing, over 20,000 shuffled counters")
  func model() {
    let window = Window()
    var seen = Set<UInt64>()
    var highest: UInt64?
    var state: UInt64 = 42
    var base: UInt64 = 0
    for _ in 0..<20_000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      if state >> 33 & 1 == 0 { base += state >> 40 % 3 }
      if state >> 50 & 1_023 == 0 { base += 5_000 }
      let back = (state >> 20) % 6_000
      let counter = base >= back ? base - back : base
      let expected: ReplayWindow.Verdict =
        if let highest, counter <= highest, highest - counter >= 4_096 {
          .tooOld
        } else if seen.contains(counter) {
          .replayed
        } else {
          .fresh
        }
      #expect(window.verdict(on: counter) == expected)
      if expected == .fresh {
        window.mark(counter)
        seen.insert(counter)
        highest = max(highest ?? 0, counter)
      }
    }
  }
}
