import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("Switching call keys")
struct KeySwitchTests {
  func identifier(_ key: [UInt8]) throws -> UInt32 { try CallKey(key.span).keyIdentifier }

  @Test("S4-30: before the first key nothing is sealed; the first is sent under at once")
  func failsClosed() throws {
    for sending in [SendSwitch.automatic, .whenConfirmed, .now] {
      let ada = try Peer("ada")
      let track = try ada.sender()
      #expect(throws: SealError.noKey) { try ada.seal(track, vp8()) }
      #expect(ada.ring.statistics.withheldFrames == 1)
      try ada.install(callKey(1), sending)
      _ = try ada.seal(track, vp8())
      #expect(ada.events() == [.sendKeyChanged(keyIdentifier: try identifier(callKey(1)))])
    }
  }

  @Test("S4-30: an empty or wrong-length key throws and changes nothing", arguments: [0, 1, 16, 31, 33, 64])
  func wrongLength(_ count: Int) throws {
    let ada = try Peer("ada")
    let track = try ada.sender()
    #expect(throws: FrameKeyError.wrongLength(expected: 32, got: count)) {
      try ada.install([UInt8](repeating: 1, count: count))
    }
    #expect(throws: SealError.noKey) { try ada.seal(track, vp8()) }
  }

  @Test("Plain seam: a new key is readable at once and sent under after 2 s")
  func automaticAfterTwoSeconds() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    let track = try ada.sender()
    let source = try bob.receiver("ada")
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    try ada.install(callKey(2))
    #expect(ada.ring.sendKeyIdentifier == (try identifier(callKey(1))))
    #expect(ada.ring.nextDeadline == start + .seconds(2))
    #expect(bob.open(source, try ada.seal(track, vp8())) == .opened(vp8()))
    let almost = start + .milliseconds(1_999)
    _ = try ada.seal(track, vp8(), at: almost)
    #expect(ada.ring.sendKeyIdentifier == (try identifier(callKey(1))))
    let then = start + .seconds(2)
    let sealed = try ada.seal(track, vp8(), at: then)
    #expect(CallKeyID(rawValue: try header(of: sealed).keyID).keyIdentifier == (try identifier(callKey(2))))
    try bob.install(callKey(2), at: then)
    #expect(bob.open(source, sealed, at: then) == .opened(vp8()))
  }

  @Test("Plain seam: the first authentic frame under the new key switches, a forged one does not")
  func automaticOnFirstFrame() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    try ada.install(callKey(2), .now)
    try bob.install(callKey(2), .automatic)
    let source = try bob.receiver("ada")
    let sealed = try ada.seal(try ada.sender(), vp8())
    var forged = sealed
    forged[forged.count - 1] ^= 1
    #expect(bob.open(source, forged) == .failed(.notAuthentic))
    #expect(bob.ring.sendKeyIdentifier == (try identifier(callKey(1))))
    #expect(bob.open(source, sealed) == .opened(vp8()))
    #expect(bob.ring.sendKeyIdentifier == (try identifier(callKey(2))))
  }

  @Test("Refined seam: whenConfirmed waits for the confirmation, however many frames come, at the latest 2 s")
  func whenConfirmed() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    try ada.install(callKey(2), .now)
    try bob.install(callKey(2), .whenConfirmed)
    #expect(bob.open(try bob.receiver("ada"), try ada.seal(try ada.sender(), vp8())) == .opened(vp8()))
    #expect(bob.ring.sendKeyIdentifier == (try identifier(callKey(1))))
    bob.ring.confirmSendKey(at: start + .milliseconds(300))
    #expect(bob.ring.sendKeyIdentifier == (try identifier(callKey(2))))
    try bob.install(callKey(3), .whenConfirmed)
    bob.ring.handleTimeout(at: start + .seconds(2))
    #expect(bob.ring.sendKeyIdentifier == (try identifier(callKey(3))))
  }

  @Test("Refined seam: now switches at once, over a key that still waits")
  func now() throws {
    let ada = try Peer("ada")
    try ada.install(callKey(1))
    try ada.install(callKey(2), .whenConfirmed)
    try ada.install(callKey(3), .now)
    #expect(ada.ring.sendKeyIdentifier == (try identifier(callKey(3))))
    ada.ring.confirmSendKey(at: start)
    ada.ring.handleTimeout(at: start + .seconds(3))
    #expect(ada.ring.sendKeyIdentifier == (try identifier(callKey(3))))
  }

  @Test("A key every second: sending follows each after its own 2 s, and starves never")
  func rotationStorm() throws {
    let ada = try Peer("ada")
    let track = try ada.sender()
    for second in 0..<20 {
      let now = start + .seconds(second)
      try ada.install(callKey(UInt8(second + 1)), at: now)
      _ = try ada.seal(track, vp8(), at: now)
      let expected = callKey(UInt8(max(second - 2, 0) + 1))
      #expect(ada.ring.sendKeyIdentifier == (try identifier(expected)))
    }
  }

  @Test("Replaced keys stay readable for 10 s")
  func retention() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    let track = try ada.sender()
    let source = try bob.receiver("ada")
    try bob.install(callKey(2), .now)
    let almost = start + .milliseconds(9_999)
    #expect(bob.open(source, try ada.seal(track, vp8(), at: almost), at: almost) == .opened(vp8()))
    let then = start + .seconds(10)
    #expect(bob.open(source, try ada.seal(track, vp8(), at: then), at: then) == .failed(.retiredKey))
    #expect(bob.ring.nextDeadline == nil)
    #expect(throws: FrameKeyError.retiredKey) { try bob.install(callKey(1), at: then) }
  }

  @Test("At most 32 replaced keys stay readable")
  func atMost32() throws {
    let bob = try Peer("bob", seed: 2)
    let source = try bob.receiver("ada")
    var sealed = [[UInt8]]()
    for number in 1...40 {
      let ada = try Peer("ada", seed: UInt64(number))
      try ada.install(callKey(UInt8(number)))
      sealed.append(try ada.seal(try ada.sender(), vp8()))
      try bob.install(callKey(UInt8(number)))
    }
    #expect(bob.ring.state.keys.count == 33)
    for (index, frame) in sealed.enumerated() {
      #expect(bob.open(source, frame) == (index < 7 ? .failed(.retiredKey) : .opened(vp8())))
    }
    #expect(bob.ring.sendKeyIdentifier != nil)
  }

  @Test("A replaced key that comes back keeps its windows and seals under fresh contexts")
  func keyReturns() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    let track = try ada.sender()
    let source = try bob.receiver("ada")
    let first = try ada.seal(track, vp8())
    #expect(bob.open(source, first) == .opened(vp8()))
    for peer in [ada, bob] {
      try peer.install(callKey(2), .now)
      try peer.install(callKey(1), .now)
    }
    let second = try ada.seal(track, vp8())
    #expect(try header(of: second).keyID != header(of: first).keyID)
    #expect(bob.open(source, first) == .failed(.replayed))
    #expect(bob.open(source, second) == .opened(vp8()))
    #expect(ada.ring.statistics.keyEpochs == 2)
  }

  @Test("No frame is lost when keys change under two people who talk, with delivery up to 200 ms late")
  func rekeyWithoutLoss() throws {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2)
    let track = try ada.sender()
    let source = try bob.receiver("ada")
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    var opened = 0
    for frame in 0..<600 {
      let now = start + .milliseconds(frame * 20)
      // The commit reaches one of them up to 400 ms after the other.
      if frame % 100 == 50 { try ada.install(callKey(UInt8(2 + frame / 100)), .whenConfirmed, at: now) }
      if frame % 100 == 70 {
        try bob.install(callKey(UInt8(2 + frame / 100)), .whenConfirmed, at: now)
        for peer in [ada, bob] { peer.ring.confirmSendKey(at: now) }
      }
      let sealed = try ada.seal(track, vp8(), at: now)
      if bob.open(source, sealed, at: now + .milliseconds(frame * 37 % 200)) == .opened(vp8()) { opened += 1 }
    }
    #expect(opened == 600)
    #expect(bob.ring.statistics.keyEpochs == 7)
  }
}
