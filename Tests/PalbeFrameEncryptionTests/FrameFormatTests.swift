import PalbeCrypto
import PalbeWire
import Testing

@testable import PalbeFrameEncryption

@Suite("Sealed frames")
struct FrameFormatTests {
  static let base = [UInt8](repeating: 3, count: 32)

  func sealer(_ codec: FrameCodec, _ limits: SealLimits = .standard) throws -> FrameSealer {
    try FrameSealer(
      keyID: 0x0123_4567_89ab_cdef, baseKey: Self.base.span, source: .camera, codec: codec, limits: limits)
  }

  func opener(_ codec: FrameCodec, source: FrameSource = .camera) throws -> FrameOpener {
    try FrameOpener(keyID: 0x0123_4567_89ab_cdef, baseKey: Self.base.span, source: source, codec: codec)
  }

  func seal(_ sealer: inout FrameSealer, _ frame: [UInt8]) throws -> [UInt8] {
    try [UInt8](capacity: frame.count + FrameSealer.maximumOverhead) { output throws(SealError) in
      try sealer.seal(frame.span, into: &output)
    }
  }

  func open(_ opener: inout FrameOpener, _ frame: [UInt8]) throws(OpenFailure) -> [UInt8] {
    var bytes = frame
    var span = bytes.mutableSpan
    let range = try opener.open(in: &span, frame: 0..<frame.count)
    return Array(bytes[range])
  }

  @Test(
    "Frames of every length from 0 to 40 round-trip, shorter than their clear part too",
    arguments: FrameCodec.allCases)
  func lengths(_ codec: FrameCodec) throws {
    for first: UInt8 in [0x10, 0x31, 0x78, 0xff] {
      var sealer = try sealer(codec)
      var opener = try opener(codec)
      for count in 0...40 {
        let frame = (0..<count).map { $0 == 0 ? first : UInt8($0) }
        let sealed = try seal(&sealer, frame)
        let clear = min(count, count == 0 ? 0 : codec.clearByteCount(firstByte: first))
        #expect(Array(sealed.prefix(clear)) == Array(frame.prefix(clear)))
        let opened = try open(&opener, sealed)
        #expect(opened == frame)
      }
    }
  }

  @Test("RFC 6386 §9.1: 10 clear bytes on a VP8 key frame, 3 on another; Opus 1; data none")
  func clearBytes() {
    #expect(FrameCodec.vp8.clearByteCount(firstByte: 0x10) == 10)
    #expect(FrameCodec.vp8.clearByteCount(firstByte: 0x11) == 3)
    #expect(FrameCodec.opus.clearByteCount(firstByte: 0x78) == 1)
    #expect(FrameCodec.data.clearByteCount(firstByte: 0x78) == 0)
  }

  @Test("In place: the same bytes as into another buffer, side by side with untouched neighbours")
  func inPlace() throws {
    for frame in [vp8(key: true), vp8(), vp8(0), [0x31]] {
      var one = try sealer(.vp8)
      var two = try sealer(.vp8)
      let expected = try seal(&one, frame)
      var buffer = [UInt8](repeating: 0xee, count: 20) + frame + [UInt8](repeating: 0xee, count: 20)
      var span = buffer.mutableSpan
      let range = try two.seal(in: &span, frame: 20..<20 + frame.count)
      #expect(Array(buffer[range]) == expected)
      #expect(range.lowerBound >= 20 - FrameSealer.headroom && range.upperBound == 20 + frame.count + 16)
      #expect(buffer[..<range.lowerBound].allSatisfy { $0 == 0xee })
      #expect(buffer[range.upperBound...].allSatisfy { $0 == 0xee })

      var opener = try opener(.vp8)
      var again = buffer.mutableSpan
      let opened = try opener.open(in: &again, frame: range)
      #expect(Array(buffer[opened]) == frame)
    }
  }

  @Test("Without room nothing is sealed and no counter is used up")
  func noRoom() throws {
    var sealer = try sealer(.vp8)
    let frame = vp8()
    var buffer = [UInt8](repeating: 0, count: 16) + frame + [UInt8](repeating: 0, count: 16)
    var span = buffer.mutableSpan
    #expect(throws: SealError.noRoom(needed: 17, have: 16)) {
      try sealer.seal(in: &span, frame: 16..<16 + frame.count)
    }
    #expect(throws: SealError.noRoom(needed: 16, have: 15)) {
      try sealer.seal(in: &span, frame: 17..<17 + frame.count)
    }
    #expect(throws: SealError.self) {
      _ = try [UInt8](capacity: frame.count + 20) { output throws(SealError) in
        try sealer.seal(frame.span, into: &output)
      }
    }
    let next = sealer.nextCounter
    #expect(next == 0)
  }

  @Test("A flipped bit anywhere makes a frame that does not open, and moves nothing")
  func tampering() throws {
    var sealer = try sealer(.vp8)
    var opener = try opener(.vp8)
    let frame = vp8(key: true, 24)
    let sealed = try seal(&sealer, frame)
    for index in sealed.indices {
      for bit in 0..<8 {
        var changed = sealed
        changed[index] ^= 1 << UInt8(bit)
        #expect(throws: OpenFailure.self) { try open(&opener, changed) }
      }
    }
    let opened = try open(&opener, sealed)
    #expect(opened == frame)
  }

  @Test("No prefix of a frame opens, and none traps")
  func truncation() throws {
    for frame in [vp8(key: true, 24), vp8(24), []] {
      var sealer = try sealer(.vp8)
      var opener = try opener(.vp8)
      let sealed = try seal(&sealer, frame)
      for count in 0..<sealed.count {
        #expect(throws: OpenFailure.self) { try open(&opener, Array(sealed.prefix(count))) }
      }
    }
  }

  @Test("Metadata longer than the stack's room is authenticated all the same")
  func longMetadata() throws {
    var sealer = try SFrameSealer(suite: .aes128GCM, keyID: 9, baseKey: Self.base.span)
    var opener = try SFrameOpener(suite: .aes128GCM, keyID: 9, baseKey: Self.base.span)
    let metadata = [UInt8](repeating: 5, count: 500)
    let sealed = try [UInt8](capacity: 100) { output throws(SealError) in
      try sealer.seal([1, 2, 3].span, metadata: metadata.span, into: &output)
    }
    var bytes = sealed
    var span = bytes.mutableSpan
    #expect(throws: OpenFailure.notAuthentic) {
      try opener.open(in: &span, frame: 0..<sealed.count, metadata: metadata.span.extracting(first: 499))
    }
    bytes = sealed
    var again = bytes.mutableSpan
    let range = try opener.open(in: &again, frame: 0..<sealed.count, metadata: metadata.span)
    #expect(Array(bytes[range]) == [1, 2, 3])
  }
}
