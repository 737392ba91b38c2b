import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("Frames whose key comes late")
struct WaitingFrameTests {
  func pair(_ configuration: CallKeyRing.Configuration = .init()) throws -> (
    Peer, FrameSenderID, Peer, FrameReceiverID
  ) {
    let ada = try Peer("ada", seed: 1)
    let bob = try Peer("bob", seed: 2, configuration: configuration)
    try ada.install(callKey(1))
    return (ada, try ada.sender(), bob, try bob.receiver("ada"))
  }

  @Test("They are opened in order when the key arrives, with the caller's tag")
  func arrives() throws {
    let (ada, track, bob, source) = try pair()
    for index in 0..<10 {
      let frame = vp8(fill: UInt8(index))
      #expect(bob.open(source, try ada.seal(track, frame), tag: UInt64(index)) == .waiting)
    }
    #expect(bob.ring.statistics.waitingFrames == 10)
    #expect(bob.ring.nextDeadline == start + .milliseconds(500))
    let then = start + .milliseconds(499)
    try bob.install(callKey(1), at: then)
    let frames = bob.released(at: then)
    #expect(frames.map(\.tag) == Array(0..<10))
    #expect(frames.map(\.bytes) == (0..<10).map { vp8(fill: UInt8($0)) })
    #expect(frames.allSatisfy { $0.receiver == source && $0.arrival == start })
    #expect(bob.ring.statistics.waitingFrames == 0)
    #expect(bob.ring.statistics.received.failed == 0)
  }

  @Test("After 500 ms they are dropped and counted as of a wrong key")
  func timeout() throws {
    let (ada, track, bob, source) = try pair()
    #expect(bob.open(source, try ada.seal(track, vp8())) == .waiting)
    bob.ring.handleTimeout(at: start + .milliseconds(500))
    #expect(bob.ring.statistics.waitingFrames == 0)
    #expect(bob.counts("ada")?.wrongKey == 1)
    try bob.install(callKey(1), at: start + .milliseconds(500))
    #expect(bob.released(at: start + .milliseconds(500)).isEmpty)
    #expect(bob.ring.nextDeadline == nil)
  }

  @Test("64 of a sender wait, the newest; another sender's are not touched")
  func atMost64() throws {
    let (ada, track, bob, source) = try pair()
    let carol = try Peer("carol", seed: 3)
    try carol.install(callKey(1))
    #expect(
      bob.open(try bob.receiver("carol"), try carol.seal(try carol.sender(), vp8()), tag: 999) == .waiting)
    for index in 0..<100 {
      #expect(bob.open(source, try ada.seal(track, vp8()), tag: UInt64(index)) == .waiting)
    }
    try bob.install(callKey(1))
    let tags = bob.released(at: start).map(\.tag)
    #expect(tags.filter { $0 != 999 } == Array(36..<100))
    #expect(tags.contains(999))
    #expect(bob.counts("ada")?.failed == 36)
  }

  @Test("Their bytes are bounded too")
  func bytes() throws {
    var configuration = CallKeyRing.Configuration()
    configuration.waitingBytes = 10_000
    let (ada, track, bob, source) = try pair(configuration)
    for index in 0..<10 {
      #expect(bob.open(source, try ada.seal(track, vp8(3_000)), tag: UInt64(index)) == .waiting)
    }
    #expect(bob.open(source, try ada.seal(track, vp8(11_000))) == .waiting)
    #expect(bob.ring.statistics.waitingFrames == 0)
    try bob.install(callKey(1))
    #expect(bob.released(at: start).isEmpty)
  }

  @Test("A participant with a wrong key reads 0 frames, and is told so once; a right key heals it")
  func wrongKey() throws {
    let (ada, track, bob, source) = try pair()
    try bob.install(callKey(9))
    var now = start
    for _ in 0..<200 {
      now += .milliseconds(20)
      let result = bob.open(source, try ada.seal(track, vp8(), at: now), at: now)
      #expect(result == .waiting)
    }
    #expect(bob.released(at: now).isEmpty)
    #expect(bob.ring.statistics.received.opened == 0)
    #expect(bob.ring.statistics.received.wrongKey > 100)
    let unreadable = bob.events().filter {
      if case .unreadable("ada", _, .keyNeverCame) = $0 { true } else { false }
    }
    #expect(unreadable.count == 1)
    try bob.install(callKey(1), at: now)
    #expect(!bob.released(at: now).isEmpty)
    #expect(bob.events().contains(.readable(identity: "ada")))
  }

  @Test("Bytes that are no SFrame are refused and do not wait")
  func garbage() throws {
    let (_, _, bob, source) = try pair()
    try bob.install(callKey(1))
    #expect(bob.open(source, []) == .failed(.malformed))
    #expect(bob.open(source, [0x31]) == .failed(.malformed))
    #expect(bob.open(source, [UInt8](repeating: 0x88, count: 19)) == .failed(.malformed))
    #expect(bob.ring.statistics.received.failed == 3)
  }

  @Test("A removed sender's handle, a stranger's and a range outside the buffer are refused")
  func handles() throws {
    let (ada, track, bob, source) = try pair()
    ada.ring.removeSender(track)
    #expect(throws: SealError.unknownSender) { try ada.seal(track, vp8()) }
    let next = try ada.sender()
    #expect(throws: SealError.unknownSender) { try ada.seal(track, vp8()) }
    _ = try ada.seal(next, vp8())
    let stranger = FrameReceiverID(index: 5, generation: 1)
    #expect(bob.open(stranger, vp8()) == .failed(.unknownReceiver))
    var bytes = vp8()
    var span = bytes.mutableSpan
    let result = bob.ring.open(source, in: &span, frame: 0..<1_000, at: start)
    #expect(result == .failed(.malformed))
  }
}
