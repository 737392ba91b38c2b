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

  @Test(
    "RFC 9628 §4.2: sizes in the scalability structure, behind references too; which layers need a packet")
  func layers() throws {
    // I, L, B, V: a key picture of three sizes; the same behind two references in the flexible mode.
    let key: [UInt8] = [0xaa, 0x05, 0x00, 0x09, 0x40, 1]
    let flexible: [UInt8] = [0xfa, 0x05, 0x00, 0x03, 0x04, 0x20, 1]
    for (bytes, count) in [(key, 3), (flexible, 2)] {
      #expect(try VP9PayloadDescriptor.parse(bytes.span).sizeCount == count)
      for length in 0..<bytes.count - 1 {
        #expect(throws: WireError.self) { try VP9PayloadDescriptor.parse(Array(bytes[..<length]).span) }
      }
    }
    func needed(_ first: UInt8, _ layer: UInt8) throws -> UInt32 {
      try VP9PayloadDescriptor.parse(([first, layer, 0] as [UInt8]).span).needed.rawValue
    }
    #expect(try needed(0x28, 0x00) == 0xffff_ffff)
    #expect(try needed(0x69, 0x00) == 0x0000_000f)  // no larger size needs it
    #expect(try needed(0x29, 0x00) == 0xffff_ffff)  // but it begins a key picture
    #expect(try needed(0x68, 0x22) == 0xeeee_eee0)
    #expect(try needed(0x69, 0x44) == 0x0000_0c00)
    #expect(try needed(0x69, 0xee) == 0x8000_0000)
    let parsed = try VP9PayloadDescriptor.parse(([0x69, 0x52, 0] as [UInt8]).span)
    #expect(parsed.switching.rawValue == 0x0000_00c0)
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
