import PalbeRTP
import PalbeWire
import Testing

struct VP9Tests {
  /// I, P, L, B, E; long picture id 0x1234; TID 2, U, SID 1, D; TL0PICIDX 0x56.
  static let full: [UInt8] = [0xec, 0x92, 0x34, 0x53, 0x56, 1, 2, 3]

  @Test("RFC 9628 §4.2: descriptor of the non-flexible mode")
  func parse() throws {
    let parsed = try VP9PayloadDescriptor.parse(Self.full.span)
    #expect(parsed.pictureID == 0x1234 && parsed.hasLongPictureID)
    #expect(parsed.temporalLayer == 2 && parsed.isSwitchingPoint && parsed.spatialLayer == 1)
    #expect(parsed.tl0PictureIndex == 0x56)
    #expect(parsed.startsFrame && parsed.endsFrame && parsed.isPredicted && !parsed.startsKeyFrame)
    let key = try VP9PayloadDescriptor.parse(([0xa8, 0x05, 0x00, 0x09, 1] as [UInt8]).span)
    #expect(key.startsKeyFrame && key.pictureID == 5 && key.tl0PictureIndex == 9)
    // The upper size of a key picture begins none.
    let upper = try VP9PayloadDescriptor.parse(([0xa8, 0x05, 0x03, 0x09, 1] as [UInt8]).span)
    #expect(!upper.startsKeyFrame)
  }

  @Test("RFC 9628 §4.2: a truncated descriptor is refused at every length")
  func truncated() {
    for count in 0..<5 {
      #expect(throws: WireError.self) { try VP9PayloadDescriptor.parse(Array(Self.full[..<count]).span) }
    }
  }

  @Test("Counters are rewritten where they lie, and nothing else changes")
  func rewritten() throws {
    for payload in [Self.full, [0xb8, 0x05, 0x00, 9, 9], [0x88, 0x05, 9, 9], [0x08, 9, 9, 9]] as [[UInt8]] {
      let before = try VP9PayloadDescriptor.parse(payload.span)
      var packet = [7, 7] + payload
      var span = packet.mutableSpan
      try before.rewrite(in: &span, at: 2, pictureID: 0x2aaa, tl0PictureIndex: 0x77)
      let after = try VP9PayloadDescriptor.parse(Array(packet[2...]).span)
      #expect(after.pictureID == before.pictureID.map { _ in before.hasLongPictureID ? 0x2aaa : 0x2a })
      #expect(after.tl0PictureIndex == before.tl0PictureIndex.map { _ in 0x77 })
      #expect(packet.suffix(2) == payload.suffix(2))
    }
  }

  @Test("RFC 6184, AV1: where a key frame begins, by headers alone")
  func keyFrames() {
    func isH264(_ bytes: [UInt8]) -> Bool { KeyFrameStart.isH264(bytes.span) }
    func isAV1(_ bytes: [UInt8]) -> Bool { KeyFrameStart.isAV1(bytes.span) }
    #expect(isH264([0x67, 1]))
    #expect(isH264([0x78, 0, 2, 0x67, 1, 0, 1, 0x68]))
    #expect(!isH264([0x78, 0, 2, 0x68, 1, 0]))
    #expect(!isH264([0x78, 0xff, 0xff, 0x68]))
    #expect(!isH264([0x7c, 0x85, 1]))
    #expect(!isH264([]))
    #expect(isAV1([0x18]) && !isAV1([0x10]) && !isAV1([]))
  }

  @Test("RFC 2198: the primary block lies behind the redundant ones; a length beyond the packet is refused")
  func redundancy() {
    func primary(_ bytes: [UInt8]) -> Int? { RedundantAudio.primaryOffset(in: bytes.span) }
    let payload: [UInt8] = [0xef, 0x0f, 0x00, 3, 111, 1, 2, 3, 10, 11]
    #expect(primary(payload) == 8)
    #expect(primary([111, 1, 2]) == 1)
    for count in 0..<8 { #expect(primary(Array(payload[..<count])) == nil) }
  }
}
