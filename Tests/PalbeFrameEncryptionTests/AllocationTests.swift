import CPalbeMallocCounter
import PalbeUnits
import Testing

@testable import PalbeFrameEncryption

@Suite("No allocation a frame")
struct AllocationTests {
  static let frames = 200

  /// Heap allocations while `body` runs.
  func allocations(_ body: () throws -> Void) rethrows -> UInt64 {
    let before = palbe_malloc_count()
    try body()
    return palbe_malloc_count() - before
  }

  @Test("The counter counts: an array is one allocation")
  func counter() {
    #expect(allocations { for _ in 0..<100 { _ = [UInt8](repeating: 1, count: 64) } } >= 100)
  }

  @Test("FrameSealer and FrameOpener, both suites", arguments: SFrameCipherSuite.allCases)
  func sealerAndOpener(_ suite: SFrameCipherSuite) throws {
    let base = [UInt8](repeating: 1, count: 32)
    var sealer = try FrameSealer(
      suite: suite, keyID: 1 << 60, baseKey: base.span, source: .camera, codec: .vp8)
    var opener = try FrameOpener(
      suite: suite, keyID: 1 << 60, baseKey: base.span, source: .camera, codec: .vp8)
    var buffer = [UInt8](repeating: 0, count: 17) + vp8(1_000) + [UInt8](repeating: 0, count: 16)
    var opened = 0
    var count: UInt64 = .max
    // The first round also makes what the runtime keeps of the types.
    for _ in 0..<2 {
      count = try allocations {
        for _ in 0..<Self.frames {
          buffer[17] = 0x31
          var span = buffer.mutableSpan
          let sealed = try sealer.seal(in: &span, frame: 17..<1_020)
          opened += try opener.open(in: &span, frame: sealed).count
        }
      }
    }
    #expect(count == 0)
    #expect(opened == 2 * 1_003 * Self.frames)
  }

  @Test("The ring, once a track's key is derived, in place and into another buffer")
  func ring() throws {
    let ada = try Peer("ada#phone", seed: 1)
    let bob = try Peer("bob#phone", seed: 2)
    for peer in [ada, bob] {
      try peer.install(callKey(1))
      try peer.install(callKey(2), .now)
    }
    let track = try ada.sender()
    let source = try bob.receiver("ada#phone")
    #expect(bob.open(source, try ada.seal(track, vp8())) == .opened(vp8()))
    let frame = vp8(1_000)
    var buffer = [UInt8](repeating: 0, count: 17) + frame + [UInt8](repeating: 0, count: 16)
    var opened = 0
    var copied = [UInt8](repeating: 0, count: 1_100)
    let count = try allocations {
      for _ in 0..<Self.frames {
        buffer[17] = 0x31
        var span = buffer.mutableSpan
        let sealed = try ada.ring.seal(track, in: &span, frame: 17..<1_020, at: start)
        if case .opened = bob.ring.open(source, in: &span, frame: sealed, at: start) { opened += 1 }
        copied.withUnsafeMutableBufferPointer { bytes in
          var output = OutputSpan(buffer: bytes, initializedCount: 0)
          do { try ada.ring.seal(track, frame.span, into: &output, at: start) } catch { opened -= 1_000 }
        }
      }
    }
    #expect(count == 0)
    #expect(opened == Self.frames)
    #expect(bob.ring.statistics.received.failed == 0)
  }

  @Test("A frame that is refused costs one at most: the test library boxes each error that is thrown")
  func refused() throws {
    let ada = try Peer("ada#phone", seed: 1)
    let bob = try Peer("bob#phone", seed: 2)
    for peer in [ada, bob] { try peer.install(callKey(1)) }
    let source = try bob.receiver("ada#phone")
    let sealed = try ada.seal(try ada.sender(), vp8())
    #expect(bob.open(source, sealed) == .opened(vp8()))
    var buffer = sealed
    var failed = 0
    let size = buffer.count
    let count = allocations {
      for _ in 0..<Self.frames {
        var span = buffer.mutableSpan
        if case .failed = bob.ring.open(source, in: &span, frame: 0..<size, at: start) { failed += 1 }
      }
    }
    #expect(failed == Self.frames)
    #expect(count <= UInt64(Self.frames) + 10)
  }
}
