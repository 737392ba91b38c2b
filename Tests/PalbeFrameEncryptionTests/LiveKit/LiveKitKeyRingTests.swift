import PalbeCrypto
import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("LiveKit's frame format: the key ring")
struct LiveKitKeyRingTests {
  @Test("LiveKit protocol §4 (25): under another key nothing opens, and its sender is named")
  func wrongKey() throws {
    let (ada, bob, track, source) = try livekitPair(keys: ["secret", "other"])
    for step in UInt32(0)..<30 {
      #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: step)) == .failed(.notAuthentic))
    }
    let counts = try #require(bob.counts("ada"))
    #expect(counts.failed == 30 && counts.wrongKey == 30 && counts.failedInARow == 30 && counts.opened == 0)
    #expect(bob.events() == [.unreadable(identity: "ada", frames: 25, latest: .notAuthentic)])
    try bob.set("secret")
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 30)) == .opened(vp8()))
    #expect(bob.events() == [.readable(identity: "ada")])

    let silent = LiveKitPeer("eve")
    let none = try silent.sender()
    #expect(throws: SealError.noKey) { try silent.seal(none, vp8()) }
    #expect(throws: SealError.noKey) { try silent.seal(none, []) }
    #expect(silent.ring.statistics.withheldFrames == 2)
  }

  @Test("LiveKit protocol §4 (27): what keys and rings print, count and report of themselves holds no key")
  func printed() throws {
    let secret = "hunter2 secret"
    let (ada, bob, track, source) = try livekitPair(keys: [secret, "hunter2 other"])
    for step in UInt32(0)..<30 { _ = bob.open(source, try ada.seal(track, vp8(), timestamp: step)) }
    let key = try LiveKitKey(Array(secret.utf8).span, derivation: .hkdf)
    let frameKey = key.frameKey.span.withUnsafeBufferPointer { unsafe Array($0) }
    let shared = SharedLiveKitKey(key.copy())
    var text = ""
    dump(shared, to: &text)
    dump(ada, to: &text)
    dump(bob, to: &text)
    dump([ada.ring.statistics, bob.ring.statistics], to: &text)
    dump(bob.events(), to: &text)
    #expect(text.contains("ada") && frameKey.count == 16)
    let forms = [
      "hunter2", frameKey.prefix(4).map { String($0, radix: 16) }.joined(),
      frameKey.prefix(4).map(String.init).joined(separator: ", "), "\(frameKey)",
    ]
    for form in forms { #expect(!text.contains(form)) }
  }

  @Test(
    "livekit-protocol.md §3, key index: the frame's last byte; a slot without a key and one outside the ring fail"
  )
  func index() throws {
    let (ada, bob, track, source) = try livekitPair()
    try ada.set("three", index: 3)
    ada.ring.sendIndex = 3
    let sealed = try ada.seal(track, vp8())
    #expect(sealed.last == 3)
    #expect(bob.open(source, sealed) == .failed(.unknownKey))
    try bob.set("three", index: 3)
    #expect(bob.open(source, sealed) == .opened(vp8()))
    for index in [1, 15, 16, 255] {
      var other = try ada.seal(track, vp8(), timestamp: 4_000)
      other[other.count - 1] = UInt8(index)
      #expect(bob.open(source, other) == .failed(.unknownKey))
    }
    ada.ring.sendIndex = 16
    #expect(throws: SealError.noKey) { try ada.seal(track, vp8()) }
    #expect(throws: FrameKeyError.noSlot(index: 16, slots: 16)) { try ada.set("x", index: 16) }
    #expect(throws: FrameKeyError.noSlot(index: -1, slots: 16)) { try ada.set("x", index: -1) }
  }

  @Test("A ring of 255 slots has indices 0 to 254; more are cut to it, and none is fewer than one")
  func slots() throws {
    let (ada, bob, track, source) = try livekitPair { $0.slots = 1_000 }
    #expect(ada.ring.configuration.slots == 255)
    try ada.set("last", index: 254)
    try bob.set("last", index: 254)
    ada.ring.sendIndex = 254
    #expect(bob.open(source, try ada.seal(track, vp8())) == .opened(vp8()))
    #expect(throws: FrameKeyError.noSlot(index: 255, slots: 255)) { try ada.set("x", index: 255) }
    #expect(LiveKitPeer("eve") { $0.slots = 0 }.ring.configuration.slots == 1)
  }

  @Test(
    "livekit-protocol.md §3, ratchet: either side ratchets, the other follows, and the steps before are refused"
  )
  func ratchet() throws {
    let (ada, bob, track, source) = try livekitPair()
    let (back, backSource) = (try bob.sender(ssrc: 9), try ada.receiver("bob"))
    let old = try ada.seal(track, vp8(), timestamp: 1)
    for step in UInt32(2)..<6 {
      try ada.ring.ratchet(index: 0)
      #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: step)) == .opened(vp8()))
      #expect(bob.events() == [.ratcheted(identity: "ada", index: 0)])
      // What the other one sends does not depend on ours.
      #expect(ada.open(backSource, try bob.seal(back, vp8(), timestamp: step)) == .opened(vp8()))
    }
    #expect(bob.open(source, old) == .failed(.notAuthentic))
    try bob.ring.ratchet(index: 0)
    #expect(ada.open(backSource, try bob.seal(back, vp8(), timestamp: 9)) == .opened(vp8()))
    #expect(ada.events() == [.ratcheted(identity: "bob", index: 0)])
    #expect(throws: FrameKeyError.noSlot(index: 5, slots: 16)) { try ada.ring.ratchet(index: 5) }
  }

  @Test(
    "Ratchet window: as many steps ahead as it says, not one more; 0 follows nobody",
    arguments: [0, 1, 3, 16])
  func window(_ window: Int) throws {
    let (ada, bob, track, source) = try livekitPair { $0.ratchetWindow = window }
    for _ in 0..<window { try ada.ring.ratchet(index: 0) }
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 1)) == .opened(vp8()))
    for _ in 0...window { try ada.ring.ratchet(index: 0) }
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 2)) == .failed(.notAuthentic))
  }

  @Test("Garbage costs one PBKDF2 step a second and a window of them in all")
  func pace() throws {
    let derivation = LiveKitKeyDerivation(.pbkdf2(iterations: 3))
    let (ada, bob) = (LiveKitPeer("ada"), LiveKitPeer("bob", seed: 2) { $0.ratchetWindow = 3 })
    try ada.set("secret", derivation)
    try bob.set("secret", derivation)
    let (track, source) = (try ada.sender(), try bob.receiver("ada"))
    for _ in 0..<3 { try ada.ring.ratchet(index: 0) }
    let chain = try #require(bob.ring.state.shared[0])
    var opened: [Int] = []
    for step in 0..<40 {
      let sealed = try ada.seal(track, vp8(), timestamp: UInt32(step))
      if case .opened = bob.open(source, sealed, at: start + .milliseconds(100 * step)) {
        opened.append(step)
      }
      if step < 20 { #expect(chain.step(1 + step / 10) != nil && chain.step(2 + step / 10) == nil) }
    }
    #expect(opened == Array(20..<40))
    #expect(chain.step(4) == nil)
  }

  @Test("A key of all is followed for each participant; a key of its own comes first and belongs to it alone")
  func ownKeys() throws {
    let (ada, bob, track, source) = try livekitPair()
    let eve = LiveKitPeer("eve", seed: 3)
    try eve.set("secret")
    let (eveTrack, eveSource) = (try eve.sender(ssrc: 5), try bob.receiver("eve"))
    try ada.ring.ratchet(index: 0)
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 1)) == .opened(vp8()))
    #expect(bob.open(eveSource, try eve.seal(eveTrack, vp8(), timestamp: 1)) == .opened(vp8()))

    try bob.set("ada's own", identity: "ada")
    try ada.set("ada's own", identity: "ada")
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 2)) == .opened(vp8()))
    #expect(bob.open(eveSource, try eve.seal(eveTrack, vp8(), timestamp: 2)) == .opened(vp8()))
    // Eve under ada's key is not ada, nor eve.
    try eve.set("ada's own")
    #expect(bob.open(eveSource, try eve.seal(eveTrack, vp8(), timestamp: 3)) == .failed(.notAuthentic))
    try ada.ring.ratchet(index: 0)
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 4)) == .opened(vp8()))
    #expect(bob.ring.state.participants["ada"]!.slots[0].own!.start == 1, "the step before is wiped")
  }

  @Test(
    "livekit-protocol.md §3, failureTolerance: after more failures in a row than that the slot is given up until its key is set"
  )
  func tolerance() throws {
    let (ada, bob, track, source) = try livekitPair(keys: ["wrong", "secret"]) { $0.failureTolerance = 10 }
    for step in UInt32(0)..<11 {
      #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: step)) == .failed(.notAuthentic))
    }
    try ada.set("secret")
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 11)) == .failed(.givenUp))
    bob.ring.resetFailures(identity: "ada")
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 12)) == .opened(vp8()))
    // A success in between starts the count over, and a key that is set again does.
    try ada.set("wrong")
    for step in UInt32(20)..<31 { _ = bob.open(source, try ada.seal(track, vp8(), timestamp: step)) }
    try bob.set("secret")
    try ada.set("secret")
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 40)) == .opened(vp8()))
  }

  @Test("Our own frames sent back to us, as ours or as another's, do not open")
  func reflection() throws {
    let (ada, _, track, _) = try livekitPair()
    let (mine, bobs) = (try ada.receiver("ada"), try ada.receiver("bob"))
    #expect(ada.open(mine, try ada.seal(track, vp8(), timestamp: 1)) == .failed(.ownFrame))
    #expect(ada.open(bobs, try ada.seal(track, vp8(), timestamp: 2)) == .failed(.ownFrame))
    #expect(ada.counts("bob")?.replayed == 1)
  }

  @Test("A frame opens once: the latest 256 are remembered, and a forgery is not")
  func replay() throws {
    let (ada, bob, track, source) = try livekitPair()
    let first = try ada.seal(track, vp8(), timestamp: 0)
    var forged = first
    forged[10] ^= 1
    #expect(bob.open(source, forged) == .failed(.notAuthentic))
    #expect(bob.open(source, first) == .opened(vp8()))
    for step in UInt32(1)..<256 {
      #expect(bob.open(source, first) == .failed(.replayed))
      #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: step)) == .opened(vp8()))
    }
    #expect(bob.counts("ada")?.replayed == 255)
  }

  @Test("A participant that left is forgotten unless it has a key of its own; handles are bounded")
  func leaving() throws {
    let (ada, bob, track, source) = try livekitPair()
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 1)) == .opened(vp8()))
    bob.ring.participantLeft(identity: "ada")
    #expect(bob.counts("ada") == nil)
    #expect(bob.open(source, try ada.seal(track, vp8(), timestamp: 2)) == .failed(.unknownReceiver))
    let again = try bob.receiver("ada")
    #expect(bob.open(again, try ada.seal(track, vp8(), timestamp: 3)) == .opened(vp8()))
    try bob.set("own", identity: "ada")
    bob.ring.participantLeft(identity: "ada")
    try ada.set("own")
    #expect(bob.open(try bob.receiver("ada"), try ada.seal(track, vp8(), timestamp: 4)) == .opened(vp8()))
    #expect(throws: FrameKeyError.invalidName(byteCount: 0)) { try bob.receiver("") }
    #expect(throws: FrameKeyError.tooMany(limit: 4_096)) {
      for number in 0...4_096 { _ = try bob.receiver("p\(number)") }
    }
    #expect(throws: FrameKeyError.tooMany(limit: 4_096)) { for _ in 0...4_096 { _ = try ada.sender() } }
  }

  @Test(
    "Data packets: round trips, a wrong key, another IV, a replay, cut ones; a clock that stands or goes back repeats no IV"
  )
  func data() throws {
    let (ada, bob) = (LiveKitPeer("ada", seed: 1), LiveKitPeer("bob", seed: 2))
    try ada.set("secret")
    try bob.set("secret")
    var seen = Set<LiveKitIV>()
    func seal(_ payload: [UInt8], at milliseconds: UInt64) throws -> (sealed: [UInt8], iv: LiveKitIV) {
      var iv: LiveKitIV?
      let sealed = try [UInt8](capacity: payload.count + 16) { output throws(SealError) in
        iv = try ada.ring.sealData(payload.span, unixMilliseconds: milliseconds, into: &output).iv
      }
      return (sealed, iv!)
    }
    func open(_ sealed: [UInt8], _ iv: [UInt8], index: Int = 0, from identity: String = "ada") -> Opened {
      var bytes = sealed
      var span = bytes.mutableSpan
      switch bob.ring.openData(
        from: identity, in: &span, sealed: 0..<sealed.count, iv: iv.span, keyIndex: index, at: start)
      {
      case .opened(let range): return .opened(Array(bytes[range]))
      case .waiting: return .waiting
      case .failed(let failure): return .failed(failure)
      }
    }
    for (step, milliseconds) in [5_000, 5_000, 4_999, 0, 1 << 40, 1 << 31, 3 << 30].enumerated() {
      let payload = [UInt8](repeating: 1, count: step * 50)
      let (sealed, iv) = try seal(payload, at: UInt64(milliseconds))
      #expect(seen.insert(iv).inserted)
      for count in 0..<min(sealed.count, 20) {
        #expect(
          open(Array(sealed.prefix(count)), iv.bytes) == .failed(count < 16 ? .malformed : .notAuthentic))
      }
      #expect(open(sealed, Array(iv.bytes.dropLast())) == .failed(.malformed))
      #expect(open(sealed, iv.bytes, index: 1) == .failed(.unknownKey))
      #expect(open(sealed, iv.bytes, index: .max) == .failed(.unknownKey))
      #expect(open(sealed, iv.bytes, index: -1) == .failed(.unknownKey))
      #expect(open(sealed, iv.bytes.reversed()) == .failed(.notAuthentic))
      #expect(open(sealed, iv.bytes) == .opened(payload))
      #expect(open(sealed, iv.bytes) == .failed(.replayed))
      #expect(open(sealed, iv.bytes, from: "bob") == .failed(.ownFrame))
    }
    #expect(throws: SealError.noRoom(needed: 17, have: 16)) {
      _ = try [UInt8](capacity: 16) { output throws(SealError) in
        _ = try ada.ring.sealData([1].span, unixMilliseconds: 0, into: &output)
      }
    }
  }
}
