import PalbeChatCore
import PalbeCrypto
import PalbeUnits
import PalbeWire
import Testing

@Suite("2.9j limits, held by both sides") struct LimitTests {
  /// What is refused; nil when it is taken, sent and received.
  func refusal(_ content: Content, fallback: String? = nil) throws -> ContentError? {
    var samples = Samples(seed: 1)
    let envelope = Envelope(
      id: samples.id(), sentAt: WallTime(microseconds: 0), content: content, fallback: fallback)
    do throws(ContentError) {
      let plaintext = try envelope.encoded()
      #expect(plaintext.count <= ContentLimits.plaintextByteCount)
      #expect(try Envelope.decoded(plaintext: plaintext.span) == envelope)
      return nil
    } catch { return error }
  }

  func limit(_ field: StaticField, _ limit: Int) -> ContentError { .limit(field: field, limit: limit) }

  @Test("2.9j a text has at most 64 KiB of UTF-8")
  func text() throws {
    var samples = Samples(seed: 1)
    for character in ["a", "😀"] {
      let size = character.utf8.count
      let longest = String(repeating: character, count: 65_536 / size)
      #expect(try refusal(.text(TextBody(longest))) == nil)
      #expect(try refusal(.text(TextBody(longest + "a"))) == limit("text", 65_536))
      #expect(try refusal(.edit(target: samples.id(), TextBody(longest))) == nil)
      #expect(try refusal(.edit(target: samples.id(), TextBody(longest + "a"))) == limit("text", 65_536))
    }
  }

  @Test("2.9j a text has at most 100 mentions, and everything at its limit still fits")
  func mentions() throws {
    var samples = Samples(seed: 1)
    let text = String(repeating: "a", count: 65_536)
    let mentions = (0..<101).map { Mention(start: 65_000 + $0, length: 1, user: samples.id()) }
    let reply = ReplyReference(
      parent: samples.id(),
      quote: ReplyQuote(
        sender: samples.id(), kind: String(repeating: "k", count: 32),
        text: String(repeating: "q", count: 512)))
    let fallback = String(repeating: "f", count: 1_024)
    let full = TextBody(text, mentions: Array(mentions.prefix(100)), reply: reply)
    #expect(try refusal(.text(full), fallback: fallback) == nil)
    #expect(try refusal(.text(TextBody(text, mentions: mentions))) == limit("mentions", 100))
    #expect(try refusal(.text(TextBody("a")), fallback: fallback + "f") == limit("fallback", 1_024))

    var descriptor = samples.descriptor()
    descriptor.thumbnail = [UInt8](repeating: 7, count: 32 << 10)
    descriptor.waveform = [UInt8](repeating: 7, count: 256)
    descriptor.filename = String(repeating: "n", count: 255)
    descriptor.mimeType = String(repeating: "m", count: 127)
    let body = AttachmentBody(descriptor, reply: reply, caption: text)
    #expect(try refusal(.attachment(body), fallback: fallback) == nil)
  }

  @Test("S0-60 a quote has at most 512 bytes")
  func quote() throws {
    var samples = Samples(seed: 1)
    func refused(_ kind: String, _ text: String?) throws -> ContentError? {
      let quote = ReplyQuote(sender: samples.id(), kind: kind, text: text)
      return try refusal(
        .text(TextBody("a", reply: ReplyReference(parent: samples.id(), quote: quote))))
    }
    #expect(try refused("text", String(repeating: "é", count: 257)) == limit("quote_text", 512))
    #expect(try refused(String(repeating: "k", count: 33), nil) == limit("quote_kind", 32))
    #expect(try refused("", nil) == .missing("quote_kind"))
  }

  @Test("2.9j an emoji is one grapheme of at most 32 bytes")
  func emoji() throws {
    var samples = Samples(seed: 1)
    // Families, flags, keycaps, skin tones, a text's letter with its mark.
    for one in ["👍", "👍🏽", "❤️", "👩‍❤️‍💋‍👨", "👨‍👩‍👧‍👦", "🇨🇭", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "é", "e\u{301}"] {
      #expect(TextRules.isEmoji(one), "\(one)")
      #expect(try refusal(.reaction(target: samples.id(), emoji: one, isRemoved: false)) == nil)
    }
    for wrong in ["", " ", "\n", "\u{0}", "ab", "👍👍", "🇨🇭🇨🇭", "e" + String(repeating: "\u{301}", count: 16)] {
      #expect(!TextRules.isEmoji(wrong), "\(wrong)")
      let refused = try refusal(.reaction(target: samples.id(), emoji: wrong, isRemoved: true))
      #expect(refused == .invalid("emoji"))
    }
  }

  @Test("S0-56 an attachment's parts have limits, and its sizes belong together")
  func attachment() throws {
    var samples = Samples(seed: 5)
    func refused(_ change: (inout AttachmentDescriptor) -> Void) throws -> ContentError? {
      var descriptor = samples.descriptor()
      change(&descriptor)
      return try refusal(.attachment(AttachmentBody(descriptor)))
    }
    #expect(
      try refused { $0.thumbnail = [UInt8](repeating: 0, count: 32_769) } == limit("thumbnail", 32_768))
    #expect(try refused { $0.waveform = [UInt8](repeating: 0, count: 257) } == limit("waveform", 256))
    #expect(try refused { $0.filename = String(repeating: "n", count: 256) } == limit("filename", 255))
    #expect(try refused { $0.mimeType = String(repeating: "n", count: 128) } == limit("mime_type", 127))
    for name in ["a/b", "..", ".", "a\\b", "a\u{0}", "a\nb", "a\u{7f}"] {
      #expect(try refused { $0.filename = name } == .invalid("filename"))
    }
    #expect(try refused { $0.filename = "…ü.tar.gz" } == nil)
    #expect(try refused { $0.mimeType = "a\u{e9}" } == .invalid("mime_type"))
    #expect(try refused { $0.cipherHash = [] } == .invalid("cipher_sha256"))
    #expect(try refused { $0.cipherByteCount += 1 } == .invalid("cipher_bytes"))
    for count in [.min, -1, (1 << 40) + 1, .max] as [Int64] {
      #expect(try refused { $0.plainByteCount = count } == .invalid("plain_bytes"))
    }
    #expect(
      try refused { $0.key = AttachmentKey(SymmetricKey(copying: [1, 2, 3])) } == .invalid("key"))
  }

  @Test("S0-29 a group's name has at most 256 bytes")
  func names() throws {
    let longest = String(repeating: "n", count: 256)
    #expect(try refusal(.control(.renamed(longest))) == nil)
    #expect(try refusal(.control(.renamed(longest + "n"))) == limit("name", 256))
    #expect(try refusal(.control(.profile(GroupProfile(name: longest + "n")))) == limit("name", 256))
  }

  @Test("S3-9 a custom content has a type and at most 64 KiB")
  func custom() throws {
    let longest = [UInt8](repeating: 1, count: 65_536)
    #expect(try refusal(.custom(type: String(repeating: "t", count: 64), payload: longest)) == nil)
    #expect(try refusal(.custom(type: "t", payload: longest + [1])) == limit("payload", 65_536))
    #expect(try refusal(.custom(type: String(repeating: "t", count: 65), payload: [])) == limit("type", 64))
    #expect(try refusal(.custom(type: "", payload: [])) == .missing("type"))
  }

  @Test("2.9j more bytes than a message may have are refused unread")
  func whole() throws {
    let bytes = [UInt8](repeating: 0x80, count: ContentLimits.plaintextByteCount + 1)
    #expect(throws: limit("message", 131_072)) { try Envelope.decoded(plaintext: bytes.span) }
    #expect(throws: limit("message", 131_072)) { try Envelope(serialized: bytes.span) }
  }
}
