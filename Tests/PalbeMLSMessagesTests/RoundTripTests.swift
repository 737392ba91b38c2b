import Foundation
import PalbeMLSMessages
import PalbeTestKit
import PalbeWire
import Testing

@Suite("RFC 9420: wire structures")
struct RoundTripTests {
  @Test("RFC 9420 §6: every message comes back equal", arguments: Sample.messages.indices)
  func roundTrip(sample: Int) throws {
    let message = Sample.messages[sample]
    #expect(try MLSMessage(decoding: message.encoded()) == message)
  }

  @Test("e2ee 6.7: RFC 9420 §6: every truncation is refused", arguments: Sample.messages.indices)
  func truncation(sample: Int) {
    let bytes = Sample.messages[sample].encoded()
    for count in 0..<bytes.count {
      #expect(throws: WireError.self) { try MLSMessage(decoding: Array(bytes.prefix(count))) }
    }
  }

  @Test("e2ee 3.3: bytes after a message are refused", arguments: Sample.messages.indices)
  func trailing(sample: Int) {
    #expect(throws: WireError.trailing(count: 1)) {
      try MLSMessage(decoding: Sample.messages[sample].encoded() + [0])
    }
  }

  @Test("Any single changed byte decodes canonically or throws", arguments: Sample.messages.indices)
  func mutation(sample: Int) {
    let bytes = Sample.messages[sample].encoded()
    for index in bytes.indices {
      for flip: UInt8 in [1, 0x40, 0x80, 0xff] {
        var changed = bytes
        changed[index] ^= flip
        if let decoded = try? MLSMessage(decoding: changed) { #expect(decoded.encoded() == changed) }
      }
    }
  }

  @Test("RFC 9420 §2.1.2: a length in more bytes than needed is refused")
  func minimalLength() {
    for bytes: [UInt8] in [[0x40, 0x01], [0x40, 0x3f], [0x80, 0, 0x3f, 0xff], [0xc0], [0xff, 0, 0, 0]] {
      #expect(throws: WireError.self) {
        var reader = ByteReader(bytes.span)
        _ = try reader.vectorLength()
      }
    }
  }

  @Test("A claimed length far past the end throws at once")
  func hugeLength() {
    #expect(throws: WireError.truncated(needed: (1 << 30) - 1, have: 0)) {
      try RatchetTreeExtension(decoding: [0xbf, 0xff, 0xff, 0xff])
    }
  }

  @Test("RFC 9420 §13.5: GREASE values are recognised")
  func grease() {
    #expect(ExtensionType(rawValue: 0x0a0a).isGREASE)
    #expect(ExtensionType(rawValue: 0xeaea).isGREASE)
    #expect(!ExtensionType(rawValue: 0xfafa).isGREASE)
    #expect(!ExtensionType(rawValue: 0x0a1a).isGREASE)
    #expect(!ExtensionType.requiredCapabilities.isGREASE)
  }

  @Test("RFC 9420 §7.2: a leaf's signature covers group and position except in a key package")
  func leafTBS() {
    let first = Sample.leaf.toBeSigned(groupID: [1], leafIndex: LeafIndex(0))
    #expect(first == Sample.leaf.toBeSigned(groupID: [2], leafIndex: LeafIndex(1)))
    let second = Sample.pathLeaf.toBeSigned(groupID: [1], leafIndex: LeafIndex(0))
    #expect(second != Sample.pathLeaf.toBeSigned(groupID: [1], leafIndex: LeafIndex(1)))
    #expect(second != Sample.pathLeaf.toBeSigned(groupID: [2], leafIndex: LeafIndex(0)))
  }

  @Test("Golden: a key package and a public commit keep their bytes")
  func golden() throws {
    let produced = Sample.messages.map { Hex.encode($0.encoded()) }
    let path = "Tests/PalbeMLSMessagesTests/Golden/messages.hex"
    if ProcessInfo.processInfo.environment["PALBE_RECORD_GOLDEN"] != nil {
      let url = Vectors.projectRoot.appendingPathComponent(path)
      try Data((produced.joined(separator: "\n") + "\n").utf8).write(to: url)
    }
    let stored = String(decoding: try Vectors.golden(path), as: UTF8.self).split(separator: "\n").map(
      String.init)
    #expect(stored == produced)
  }
}
