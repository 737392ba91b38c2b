import PalbeChatCore
import PalbeProtobuf
import PalbeUnits
import Testing

@Suite("Small messages that would unfold") struct BombTests {
  /// Version, id and time; the rest of a message comes behind.
  let head: [UInt8] = {
    var writer = ProtobufWriter()
    writer.tag(1, .varint)
    writer.varint(1)
    writer.tag(2, .lengthDelimited)
    writer.content([UInt8](repeating: 1, count: 16))
    return writer.bytes
  }()

  func field(_ number: UInt32, _ content: [UInt8]) -> [UInt8] {
    var writer = ProtobufWriter()
    writer.tag(number, .lengthDelimited)
    writer.content(content)
    return writer.bytes
  }

  func repeated(_ bytes: [UInt8], upTo count: Int = 120_000) -> [UInt8] {
    Array(repeatElement(bytes, count: count / bytes.count).joined())
  }

  func refusal(_ rest: [UInt8]) -> ContentError? {
    do throws(ContentError) {
      _ = try Envelope(serialized: (head + rest).span)
      return nil
    } catch { return error }
  }

  @Test("2.9j sixty thousand mentions of two bytes each are refused before they are there")
  func mentions() {
    #expect(refusal(field(16, repeated([0x12, 0]))) == .malformed(.tooManyMessages(limit: 256)))
  }

  @Test("2.9j a content that comes again and again is not merged for ever")
  func merges() {
    #expect(refusal(repeated(field(16, [0x0a, 1, 97]))) == .malformed(.tooManyMessages(limit: 256)))
  }

  @Test("2.9j contents of newer versions by the thousand are two, and one too many")
  func alternatives() {
    #expect(refusal(repeated(field(40, []) + field(41, []))) == .severalContents)
    #expect(refusal(field(21, repeated(field(9, []) + field(10, [])))) == .severalContents)
    // One that comes again is one content, as in protobuf.
    #expect(refusal(repeated(field(40, []))) == nil)
  }

  @Test("S0-141 fields that are not known cost their bytes and no more")
  func unknown() {
    #expect(refusal(repeated(field(1_000, [1, 2, 3])) + field(16, [])) == nil)
    #expect(refusal(field(16, repeated(field(99, [])))) == nil)
  }

  @Test("S0-141 a length beyond the end is refused whatever it claims")
  func lengths() {
    for claimed: UInt64 in [1, 1 << 20, 1 << 31, 1 << 62, .max] {
      var writer = ProtobufWriter()
      writer.tag(16, .lengthDelimited)
      writer.varint(claimed)
      guard case .malformed(.truncated) = refusal(writer.bytes) else {
        Issue.record("\(claimed) is taken")
        continue
      }
    }
  }
}
