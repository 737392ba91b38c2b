import PalbeCrypto
import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

/// The hazards of a call key that many share, each with the attack it stands for.
@Suite("Hazards H1 to H13")
struct HazardTests {
  let key = callKey(1)

  func pair(_ configuration: CallKeyRing.Configuration = .init()) throws -> (
    sender: Peer, track: FrameSenderID, receiver: Peer, source: FrameReceiverID
  ) {
    let ada = try Peer("ada#phone", seed: 11, configuration: configuration)
    let bob = try Peer("bob#phone", seed: 12, configuration: configuration)
    try ada.install(key)
    try bob.install(key)
    return (ada, try ada.sender(), bob, try bob.receiver("ada#phone"))
  }

  @Test("H1: two senders, one call key, frame 0: another keystream")
  func h01SendersShareNoKey() throws {
    // The same seed gives both the same context, so only the identity tells their keys apart.
    let ada = try Peer("ada", seed: 5)
    let bob = try Peer("bob", seed: 5)
    var sealed = [[UInt8]]()
    for peer in [ada, bob] {
      try peer.install(key)
      sealed.append(try peer.seal(try peer.sender(), vp8()))
    }
    let headers = try sealed.map { try header(of: $0) }
    #expect(headers[0] == headers[1])
    #expect(headers[0].counter == 0)
    let body = 3 + headers[0].byteCount
    let stream = zip(sealed[0][body...], sealed[1][body...]).map { $0 ^ $1 }
    #expect(stream.filter { $0 == 0 }.count < 10)
  }

  @Test("H2: the current key set again is a no-op: the counter goes on")
  func h02SameKeyAgain() throws {
    let (ada, track, bob, source) = try pair()
    let first = try header(of: ada.seal(track, vp8()))
    for sending in [SendSwitch.now, .whenConfirmed, .automatic] { try ada.install(key, sending) }
    let second = try header(of: ada.seal(track, vp8()))
    #expect(second.keyID == first.keyID)
    #expect(second.counter == first.counter + 1)
    #expect(ada.ring.statistics.keyEpochs == 1)
    let sealed = try ada.seal(track, vp8())
    try bob.install(key)
    #expect(bob.open(source, sealed) == .opened(vp8()))
    try bob.install(key)
    #expect(bob.open(source, sealed) == .failed(.replayed))
  }

  @Test("H3: a new engine with the same key and identity seals under another key id")
  func h03Restart() throws {
    let ledger = CallKeyLedger()
    var contexts = Set<UInt64>()
    // The seed repeats, as a broken random source would: the ledger still never gives a context twice.
    for _ in 0..<50 {
      let ada = try Peer("ada#phone", ledger: ledger, seed: 5)
      try ada.install(key)
      let sealed = try ada.seal(try ada.sender(), vp8())
      let header = try header(of: sealed)
      #expect(header.counter == 0)
      contexts.insert(CallKeyID(rawValue: header.keyID).context)
    }
    #expect(contexts.count == 50)
    #expect(contexts.allSatisfy { $0 < 1 << 40 })
  }

  @Test("H4: two devices of one user, and two tabs of one device, share no key")
  func h04Devices() throws {
    let phone = try Peer("ada#phone", seed: 5)
    let laptop = try Peer("ada#laptop", seed: 5)
    let tab = try Peer("ada#phone", seed: 6)
    let bob = try Peer("bob", seed: 7)
    for peer in [phone, laptop, tab, bob] { try peer.install(key) }
    let fromPhone = try phone.seal(try phone.sender(), vp8())
    let fromLaptop = try laptop.seal(try laptop.sender(), vp8())
    let fromTab = try tab.seal(try tab.sender(), vp8())
    // The same key id, so it is the device in the key that differs.
    #expect(try header(of: fromPhone) == header(of: fromLaptop))
    #expect(bob.open(try bob.receiver("ada#laptop"), fromPhone) == .failed(.notAuthentic))
    #expect(bob.open(try bob.receiver("ada#laptop"), fromLaptop) == .opened(vp8()))
    #expect(bob.open(try bob.receiver("ada#phone"), fromPhone) == .opened(vp8()))
    #expect(try context(of: fromPhone) != context(of: fromTab))
  }

  @Test("H5: every track and simulcast layer seals under a key of its own")
  func h05Tracks() throws {
    let ada = try Peer("ada")
    try ada.install(key)
    var keyIDs = Set<UInt64>()
    for _ in 0..<3 { keyIDs.insert(try header(of: ada.seal(try ada.sender(), vp8())).keyID) }
    let audio = try ada.seal(try ada.sender(.microphone, .opus), [0x78, 1, 2, 3])
    keyIDs.insert(try header(of: audio, clear: 1).keyID)
    #expect(keyIDs.count == 4)
    #expect(ada.ring.statistics.sendContexts == 4)
  }

  @Test(
    "H6: the same frame sealed twice has two counters; what is repaired is the sealed frame, and opens once")
  func h06SealedOnce() throws {
    let (ada, track, bob, source) = try pair()
    let first = try ada.seal(track, vp8())
    let second = try ada.seal(track, vp8())
    #expect(try header(of: first).counter == 0)
    #expect(try header(of: second).counter == 1)
    #expect(first != second)
    #expect(bob.open(source, first) == .opened(vp8()))
    #expect(bob.open(source, first) == .failed(.replayed))
  }

  @Test("H7: the counter moves before sealing and never back, whatever becomes of the frame")
  func h07CounterNeverGoesBack() throws {
    let (ada, track, _, _) = try pair()
    var last = try header(of: ada.seal(track, vp8())).counter
    for round in 0..<20 {
      // A frame that is dropped after sealing, and one that does not fit, in turns.
      if round % 2 == 0 {
        _ = try ada.seal(track, vp8(fill: UInt8(round)))
      } else {
        var small = [UInt8](repeating: 0, count: 40)
        var span = small.mutableSpan
        #expect(throws: SealError.self) {
          try ada.ring.seal(track, in: &span, frame: 17..<40, at: start)
        }
      }
      let next = try header(of: ada.seal(track, vp8())).counter
      #expect(next > last)
      last = next
    }
  }

  @Test("H8: the key is chosen by its name alone; of two keys of one name the newer has it")
  func h08KeyNames() throws {
    let older = hex("931ff3969054a672755d246b84526d81d8c4495d9a22658c557bc8d7667eebb7")
    let newer = hex("63f5a4a7b1944095e4eef1897fc0818b2ba277f40c419f2a75b5b1ffe4f704cc")
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    let track = try ada.sender()
    let source = try bob.receiver("ada")
    try ada.install(older)
    let before = try ada.seal(track, vp8())
    let late = try ada.seal(track, vp8())
    try bob.install(older)
    #expect(bob.open(source, before) == .opened(vp8()))
    try bob.install(newer, .now)
    try ada.install(newer, .now)
    let after = try ada.seal(track, vp8())
    #expect(try header(of: before).keyID & 0xff_ffff == header(of: after).keyID & 0xff_ffff)
    // One name, one key: the frame of the older is refused, not tried with both.
    #expect(bob.open(source, late) == .failed(.notAuthentic))
    #expect(bob.open(source, after) == .opened(vp8()))
  }

  @Test("H9: an old member after a removal: the new key is sent under at once, the old one closes after 10 s")
  func h09Removal() throws {
    let (ada, track, bob, source) = try pair()
    let removed = try Peer("eve", seed: 13)
    try removed.install(key)
    let heard = try removed.receiver("ada#phone")
    #expect(removed.open(heard, try ada.seal(track, vp8())) == .opened(vp8()))
    let eve = try bob.receiver("eve")
    let eveTrack = try removed.sender()

    try ada.install(callKey(2), .now)
    try bob.install(callKey(2), .now)
    let sealed = try ada.seal(track, vp8())
    #expect(removed.open(heard, sealed) == .waiting)
    #expect(bob.open(source, sealed) == .opened(vp8()))
    #expect(bob.open(eve, try removed.seal(eveTrack, vp8())) == .opened(vp8()))
    let later = start + .seconds(10)
    #expect(bob.open(eve, try removed.seal(eveTrack, vp8(), at: later), at: later) == .failed(.retiredKey))
  }

  @Test("H10: our own frames come back, swapped tracks, swapped sources and changed clear bytes do not open")
  func h10Reflection() throws {
    let (ada, track, bob, source) = try pair()
    let sealed = try ada.seal(track, vp8())
    // Reflection: under our own identity and under another's.
    #expect(ada.open(try ada.receiver("ada#phone"), sealed) == .failed(.ownFrame))
    #expect(ada.open(try ada.receiver("bob#phone"), sealed) == .failed(.ownFrame))
    // Two people's tracks swapped: the failure is counted to the name the SFU claimed.
    #expect(bob.open(try bob.receiver("carol"), sealed) == .failed(.notAuthentic))
    #expect(bob.counts("carol")?.wrongKey == 1)
    // A camera's frame as a screen's.
    #expect(bob.open(try bob.receiver("ada#phone", .screen), sealed) == .failed(.notAuthentic))
    // A clear byte changed: TOB-DISCE2EC-7.
    var changed = sealed
    changed[2] ^= 1
    #expect(bob.open(source, changed) == .failed(.notAuthentic))
    #expect(bob.open(source, sealed) == .opened(vp8()))
  }

  @Test("H10: a reflection by an engine of an earlier connection is refused by identity")
  func h10ReflectionAfterRejoin() throws {
    let ledger = CallKeyLedger()
    let before = try Peer("ada#phone", ledger: ledger, seed: 1)
    try before.install(key)
    let sealed = try before.seal(try before.sender(), vp8())
    let after = try Peer("ada#phone", ledger: ledger, seed: 2)
    try after.install(key)
    #expect(after.open(try after.receiver("ada#phone"), sealed) == .failed(.ownFrame))
  }

  @Test("H10: replay inside the window and behind it, and a forged frame with a reused KID, CTR and tag")
  func h10Replay() throws {
    let (ada, track, bob, source) = try pair()
    let frames = try (0..<4_200).map { try ada.seal(track, vp8(4, fill: UInt8(truncatingIfNeeded: $0))) }
    #expect(bob.open(source, frames[4_199]) == .opened(vp8(4, fill: UInt8(truncatingIfNeeded: 4_199))))
    #expect(bob.open(source, frames[4_199]) == .failed(.replayed))
    #expect(bob.open(source, frames[4_199 - 4_095]) == .opened(vp8(4, fill: UInt8(4_199 - 4_095))))
    #expect(bob.open(source, frames[4_199 - 4_096]) == .failed(.tooOld))
    var forged = frames[4_000]
    forged[forged.count - 18] ^= 1
    #expect(bob.open(source, forged) == .failed(.notAuthentic))
    #expect(bob.open(source, frames[4_000]) == .opened(vp8(4, fill: UInt8(truncatingIfNeeded: 4_000))))
    forged = frames[4_000]
    forged[forged.count - 18] ^= 1
    #expect(bob.open(source, forged) == .failed(.replayed))
  }

  @Test("H11: after so many frames or bytes a sealer stops, and the ring goes on under a new context")
  func h11Limits() throws {
    var configuration = CallKeyRing.Configuration()
    configuration.limits = SealLimits(frames: 5, bytes: 1_000)
    let (ada, track, bob, source) = try pair(configuration)
    var headers = [SFrameHeader]()
    for _ in 0..<12 {
      let sealed = try ada.seal(track, vp8(10))
      headers.append(try header(of: sealed))
      #expect(bob.open(source, sealed) == .opened(vp8(10)))
    }
    #expect(headers.map(\.counter) == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1])
    #expect(Set(headers.map(\.keyID)).count == 3)
    // 1,000 bytes: the second frame of 600 needs a new context.
    let other = try ada.sender()
    let first = try header(of: ada.seal(other, vp8(600)))
    let second = try header(of: ada.seal(other, vp8(600)))
    #expect(first.keyID != second.keyID)

    #expect(SealLimits.standard == SealLimits(frames: 1 << 32, bytes: 1 << 40))
    #expect(SealLimits(frames: .max, bytes: .max).frames == 1 << 32)
    var sealer = try FrameSealer(
      keyID: 1, baseKey: key.span, source: .data, codec: .data, limits: SealLimits(frames: 1, bytes: 100))
    var buffer = [UInt8](repeating: 0, count: 60)
    var span = buffer.mutableSpan
    _ = try sealer.seal(in: &span, frame: 20..<30)
    #expect(throws: SealError.exhausted) { try sealer.seal(in: &span, frame: 20..<30) }
  }

  @Test("H11: a counter above 2^32 is refused before it is tried")
  func h11CounterOnTheWire() throws {
    var opener = try FrameOpener(keyID: 300, baseKey: key.span, source: .data, codec: .data)
    var bytes = SFrameHeader(keyID: 300, counter: 1 << 32).encoded + [UInt8](repeating: 0, count: 30)
    let count = bytes.count
    var span = bytes.mutableSpan
    #expect(throws: OpenFailure.counterTooHigh) { try opener.open(in: &span, frame: 0..<count) }
  }

  /// A frame of the right key with a context that nobody has.
  func madeUp(_ context: UInt64, like sealed: [UInt8]) throws -> [UInt8] {
    let keyIdentifier = CallKeyID(rawValue: try header(of: sealed).keyID).keyIdentifier
    let head = SFrameHeader(
      keyID: CallKeyID(context: context, keyIdentifier: keyIdentifier).rawValue, counter: 0)
    return vp8(0) + head.encoded + [UInt8](repeating: 1, count: 40)
  }

  @Test("H12: of a flood of made-up key ids 64 a second are tried, none leaves a trace, live windows stay")
  func h12Flood() throws {
    let (ada, track, bob, source) = try pair()
    let first = try ada.seal(track, vp8())
    #expect(bob.open(source, first) == .opened(vp8()))
    var failures = [OpenFailure: Int]()
    for index in 0..<1_000 {
      if case .failed(let failure) = bob.open(source, try madeUp(UInt64(index + 1), like: first)) {
        failures[failure, default: 0] += 1
      }
    }
    #expect(failures == [.notAuthentic: 64, .derivationLimit: 936])
    #expect(bob.open(source, first) == .failed(.replayed))
    #expect(bob.open(source, try ada.seal(track, vp8())) == .opened(vp8()))
    // Another participant is not held up, and the next second brings new tries.
    let carol = try Peer("carol", seed: 30)
    try carol.install(key)
    #expect(bob.open(try bob.receiver("carol"), try carol.seal(try carol.sender(), vp8())) == .opened(vp8()))
    let fresh = try ada.seal(try ada.sender(), vp8())
    #expect(bob.open(source, fresh) == .failed(.derivationLimit))
    #expect(bob.open(source, fresh, at: start + .seconds(1)) == .opened(vp8()))
  }

  @Test("H12: a superseded context closes after 10 s, and its key id stays refused while the key lives")
  func h12Superseded() throws {
    let (ada, track, bob, source) = try pair()
    let old = try (0..<3).map { _ in try ada.seal(track, vp8()) }
    #expect(bob.open(source, old[0]) == .opened(vp8()))
    // The sender reconnects: a new context takes over.
    let next = try ada.sender()
    #expect(bob.open(source, try ada.seal(next, vp8())) == .opened(vp8()))
    let almost = start + .milliseconds(9_999)
    #expect(bob.open(source, old[1], at: almost) == .opened(vp8()))
    let after = start + .seconds(10)
    #expect(bob.open(source, old[2], at: after) == .failed(.closedContext))
    #expect(bob.open(source, old[0], at: after + .seconds(3_600)) == .failed(.closedContext))
    #expect(bob.open(source, try ada.seal(next, vp8(), at: after), at: after) == .opened(vp8()))
  }

  @Test("H12: as many streams as signaling names stay open side by side, however long one is silent")
  func h12Layers() throws {
    let (ada, _, bob, _) = try pair()
    let source = try bob.receiver("ada#phone", streams: 3)
    let layers = try (0..<3).map { _ in try ada.sender() }
    for layer in layers { #expect(bob.open(source, try ada.seal(layer, vp8())) == .opened(vp8())) }
    let later = start + .seconds(60)
    for layer in layers.reversed() {
      #expect(bob.open(source, try ada.seal(layer, vp8(), at: later), at: later) == .opened(vp8()))
    }
  }

  @Test("H12: at most 8 contexts of a sender and source; what is pushed out cannot be replayed")
  func h12AtMostEight() throws {
    let (ada, _, bob, source) = try pair()
    var sealed = [[UInt8]]()
    for _ in 0..<20 {
      let frame = try ada.seal(try ada.sender(), vp8())
      #expect(bob.open(source, frame) == .opened(vp8()))
      sealed.append(frame)
    }
    let open = bob.ring.receiver(source)?.contexts.count
    #expect(open == 8)
    for frame in sealed.prefix(12) { #expect(bob.open(source, frame) == .failed(.closedContext)) }
    for frame in sealed.suffix(8) { #expect(bob.open(source, frame) == .failed(.replayed)) }
  }

  @Test("H12: a participant who leaves and comes back cannot be replayed")
  func h12LeaveAndReturn() throws {
    let (ada, track, bob, source) = try pair()
    let sealed = try ada.seal(track, vp8())
    #expect(bob.open(source, sealed) == .opened(vp8()))
    bob.ring.participantLeft(identity: "ada#phone")
    let again = try bob.receiver("ada#phone")
    #expect(bob.open(again, sealed) == .failed(.replayed))
    #expect(bob.open(again, try ada.seal(track, vp8())) == .opened(vp8()))
    // Once its keys are gone, so is what was kept.
    bob.ring.participantLeft(identity: "ada#phone")
    try bob.install(callKey(2), .now)
    bob.ring.handleTimeout(at: start + .seconds(11))
    #expect(bob.counts("ada#phone") == nil)
    #expect(bob.open(again, sealed, at: start + .seconds(11)) == .failed(.unknownReceiver))
  }

  @Test("H13: another call's frames do not open: the room is in the key")
  func h13Rooms() throws {
    let ada = try Peer("ada", room: "room-1", seed: 5)
    let bob = try Peer("bob", room: "room-2", call: "call-2", seed: 6)
    try ada.install(key)
    try bob.install(key)
    #expect(
      bob.open(try bob.receiver("ada"), try ada.seal(try ada.sender(), vp8())) == .failed(.notAuthentic))
  }

  @Test(
    "H13: a room or call id already used under this key is refused, the same call's participant may come back"
  )
  func h13Reuse() throws {
    let ledger = CallKeyLedger()
    func join(_ room: String, _ call: String, _ key: [UInt8], as identity: String = "ada") throws -> Peer {
      let peer = try Peer(identity, room: room, call: call, ledger: ledger)
      try peer.install(key)
      return peer
    }
    let first = try join("room-1", "call-1", key)
    _ = try join("room-1", "call-1", key)
    #expect(throws: FrameKeyError.roomReused) { try join("room-1", "call-2", key) }
    #expect(throws: FrameKeyError.roomReused) { try join("room-2", "call-1", key) }
    _ = try join("room-2", "call-2", key)
    // Another epoch, another key: the room is free again. Two people of one process do not mind each other.
    _ = try join("room-1", "call-3", callKey(2))
    _ = try join("room-1", "call-9", key, as: "bob")
    first.ring.endCall()
    #expect(throws: FrameKeyError.roomReused) { try join("room-1", "call-1", key) }
  }
}
