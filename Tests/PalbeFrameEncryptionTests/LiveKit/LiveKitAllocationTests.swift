import CPalbeMallocCounter
import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("LiveKit's frame format: no allocation a frame")
struct LiveKitAllocationTests {
  @Test(
    "Sealing and opening in place, each codec, once a key was used", arguments: LiveKitFrameCodec.allCases)
  func frames(_ codec: LiveKitFrameCodec) throws {
    let (ada, bob, track, source) = try livekitPair(codec)
    let frame = livekitFrames(codec, [UInt8](repeating: 0, count: 1_000))[0]
    let tail = LiveKitKeyRing.tailroom(forFrameOf: frame.count, codec: codec)
    var buffer = frame + [UInt8](repeating: 0, count: tail)
    #expect(bob.open(source, try ada.seal(track, frame, timestamp: 0)) == .opened(frame))
    var opened = 0
    let count = frame.count
    var (sealing, opening): (UInt64, UInt64) = (0, 0)
    for step in UInt32(1)...500 {
      for index in 0..<count { buffer[index] = frame[index] }
      var span = buffer.mutableSpan
      let before = palbe_malloc_count()
      let sealed = try ada.ring.seal(track, in: &span, frame: 0..<count, timestamp: step)
      let between = palbe_malloc_count()
      if case .opened = bob.ring.open(source, in: &span, frame: sealed, at: start) { opened += 1 }
      sealing += between - before
      opening += palbe_malloc_count() - between
    }
    #expect(sealing == 0)
    #expect(opening == 0)
    #expect(opened == 500)
  }

  @Test("A frame that does not open under any step of the window costs none either")
  func refused() throws {
    let (ada, bob, track, source) = try livekitPair(keys: ["secret", "other"])
    var sealed = try ada.seal(track, vp8(1_000))
    #expect(bob.open(source, sealed) == .failed(.notAuthentic))
    let size = sealed.count
    var failed = 0
    let before = palbe_malloc_count()
    for _ in 0..<100 {
      var span = sealed.mutableSpan
      if case .failed = bob.ring.open(source, in: &span, frame: 0..<size, at: start) { failed += 1 }
    }
    let count = palbe_malloc_count() - before
    #expect(failed == 100)
    // The cipher's own error is boxed by the test library's build: one for each of 17 keys at most.
    #expect(count <= 1_700 + 10)
  }
}
