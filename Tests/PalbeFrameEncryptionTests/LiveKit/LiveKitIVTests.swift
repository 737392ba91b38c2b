import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("LiveKit's frame format: IVs")
struct LiveKitIVTests {
  @Test("livekit-protocol.md §3: SSRC, RTP timestamp, timestamp minus the count modulo 65,535")
  func rule() {
    var ivs = LiveKitIVSequence(source: 0xa1b2_c3d4, firstCount: 65_533)
    #expect(ivs.next(timestamp: 10)?.bytes == hex("a1b2c3d40000000affff000d"))
    #expect(ivs.next(timestamp: 0xffff)?.bytes == hex("a1b2c3d40000ffff00000001"))
    #expect(ivs.next(timestamp: 0xffff)?.bytes == hex("a1b2c3d40000ffff0000ffff"))
    #expect(ivs.next(timestamp: 0x1_0000)?.bytes == hex("a1b2c3d4000100000000ffff"))
    #expect(LiveKitIV(hex("a1b2c3d4000100000000ffff").span)?.mark == 0xffff)
    #expect(LiveKitIV(hex("a1b2c3d4000100000000ff").span) == nil)
  }

  @Test("65,535 frames may have one timestamp, the next is refused until time goes on")
  func oneTimestamp() {
    var ivs = LiveKitIVSequence(source: 1, firstCount: 40_000)
    var seen = Set<LiveKitIV>()
    for _ in 0..<65_535 { seen.insert(ivs.next(timestamp: 5)!) }
    #expect(seen.count == 65_535)
    #expect(ivs.next(timestamp: 5) == nil)
    #expect(ivs.next(timestamp: 4) == nil)
    #expect(seen.insert(ivs.next(timestamp: 6)!).inserted)
    #expect(seen.insert(ivs.next(timestamp: 6)!).inserted)
  }

  @Test("Timestamps that come round to where they began are refused; their count is not used up")
  func wrap() {
    var ivs = LiveKitIVSequence(source: 1, firstCount: 0)
    #expect(ivs.next(timestamp: 100) != nil)
    for step in UInt32(1)...3 { #expect(ivs.next(timestamp: 100 &+ step << 30) != nil) }
    #expect(ivs.next(timestamp: 99) != nil)
    #expect(ivs.next(timestamp: 100) == nil)
    #expect(ivs.next(timestamp: 101) == nil)
    let last = ivs.next(timestamp: 99)
    #expect(last?.mark == UInt32(94))
  }

  @Test("No IV comes twice, whatever timestamps come: jumps, repeats, steps back, wraps", arguments: 0..<8)
  func random(_ seed: Int) {
    var random = RandomSource(seed: UInt64(seed))
    var ivs = LiveKitIVSequence(source: 7, firstCount: UInt32(truncatingIfNeeded: random.next()))
    var seen = Set<LiveKitIV>()
    var (timestamp, refused) = (UInt32(truncatingIfNeeded: random.next()), 0)
    for _ in 0..<300_000 {
      switch random.next() % 100_000 {
      case 0..<90_000: break
      case 90_000..<95_000: timestamp &+= UInt32(random.next() % 3)
      case 95_000..<99_995: timestamp &-= UInt32(random.next() % 3)
      default: timestamp &+= UInt32(truncatingIfNeeded: random.next() >> 34)
      }
      if let iv = ivs.next(timestamp: timestamp) {
        #expect(seen.insert(iv).inserted)
      } else {
        refused += 1
      }
    }
    #expect(seen.count + refused == 300_000 && seen.count > 60_000)
  }

  @Test("A ring takes another source when a track's IVs are used up: frames go on, and no IV comes twice")
  func newSource() throws {
    let (ada, bob, track, source) = try livekitPair(.audio)
    var sources = Set<[UInt8]>()
    for step in UInt32(0)..<10 {
      let sealed = try ada.seal(track, [0x78, 1], timestamp: step << 30)
      sources.insert(Array(sealed.suffix(14).prefix(4)))
      #expect(bob.open(source, sealed) == .opened([0x78, 1]))
    }
    #expect(sources.count == 3)
    #expect(ada.ring.statistics.sendContexts == 3)
  }

  @Test("An SSRC gives the IVs of one track in a process; whoever comes next gets a number of its own")
  func ledger() throws {
    let ledger = CallKeyLedger()
    var sources = Set<UInt32>()
    for seed in 1...20 {
      let peer = LiveKitPeer("ada", ledger: ledger, seed: UInt64(seed))
      try peer.set("secret")
      let iv = Array(try peer.seal(try peer.sender(ssrc: 0x77), vp8()).suffix(14).prefix(12))
      if let iv = LiveKitIV(iv.span) { sources.insert(iv.source) }
    }
    #expect(sources.count == 20 && sources.contains(0x77))
  }

  @Test("The same key again, a ratchet and another slot: IVs go on, none comes twice")
  func keyChanges() throws {
    let ada = LiveKitPeer("ada")
    try ada.set("secret")
    let track = try ada.sender()
    var seen = Set<[UInt8]>()
    for step in 0..<40 {
      if step % 4 == 1 { try ada.set("secret") }
      if step % 4 == 2 { try ada.ring.ratchet(index: 0) }
      if step % 4 == 3 { try ada.set("other") }
      #expect(seen.insert(Array(try ada.seal(track, vp8(), timestamp: 1).suffix(14).prefix(12))).inserted)
    }
  }
}
