import PalbeChatCore
import PalbeCrypto
import PalbeUnits

/// Messages made up from a seed.
struct Samples {
  var random: RandomSource

  init(seed: UInt64) { random = RandomSource(seed: seed) }

  mutating func id<Kind>() -> Identifier<Kind> {
    Identifier(at: WallTime(microseconds: 1_764_500_000_000_000), using: &random)
  }

  mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
  mutating func chance() -> Bool { number(0...1) == 1 }

  mutating func text(upTo limit: Int) -> String {
    let pieces = ["a", "é", "€", "😀", "e\u{301}", "👩‍👩‍👧", "🇨🇭", " ", "\n", "@ada", "\u{0}"]
    var text = ""
    for _ in 0..<number(0...limit) { text += pieces[number(0...pieces.count - 1)] }
    return text
  }

  mutating func expiry() -> Expiry {
    Expiry(seconds: UInt32(number(1...1_000_000)), start: chance() ? .send : .read)
  }

  mutating func reply() -> ReplyReference {
    ReplyReference(
      parent: id(),
      quote: ReplyQuote(
        sender: id(), kind: chance() ? "text" : "voice", text: chance() ? text(upTo: 20) : nil))
  }

  mutating func body() -> TextBody {
    let text = text(upTo: 60)
    var mentions: [Mention] = []
    var place = 0
    for scalar in text.unicodeScalars {
      let width = UTF16.width(scalar)
      if number(0...9) == 0, mentions.count < 100 {
        mentions.append(Mention(start: place, length: width, user: id()))
      }
      place += width
    }
    return TextBody(text, mentions: mentions, reply: chance() ? reply() : nil)
  }

  mutating func descriptor() -> AttachmentDescriptor {
    let count = Int64(number(0...30_000_000))
    var descriptor = AttachmentDescriptor(
      blob: id(), key: AttachmentKey(SymmetricKey(byteCount: 32, using: &random)),
      cipherHash: random.bytes(32),
      cipherByteCount: AttachmentLayout(plainByteCount: count)!.cipherByteCount, plainByteCount: count,
      kind: AttachmentKind.allCases[number(0...3)], filename: chance() ? "cat.jpg" : "",
      mimeType: "image/jpeg")
    if chance() { descriptor.thumbnail = random.bytes(number(0...200)) }
    if chance() { descriptor.waveform = random.bytes(number(0...256)) }
    if chance() { descriptor.durationMs = UInt32(number(0...100_000)) }
    if chance() { (descriptor.width, descriptor.height) = (640, 480) }
    return descriptor
  }

  mutating func version() -> ProfileVersion {
    chance() ? .initial : ProfileVersion(epoch: 3, seq: 7, control: chance() ? id() : nil)
  }

  mutating func profile() -> GroupProfile {
    GroupProfile(
      name: chance() ? text(upTo: 8) : nil, nameVersion: version(), timer: chance() ? expiry() : nil,
      timerVersion: version())
  }

  /// Of the kind with that number.
  mutating func content(_ kind: Int) -> Content {
    switch kind {
    case 0: return .text(body())
    case 1:
      return .attachment(
        AttachmentBody(
          descriptor(), reply: chance() ? reply() : nil, caption: chance() ? text(upTo: 10) : nil))
    case 2: return .reaction(target: id(), emoji: ["👍🏽", "❤️", "x", "🇨🇭"][number(0...3)], isRemoved: chance())
    case 3:
      var body = body()
      body.reply = nil
      return .edit(target: id(), body)
    case 4: return .delete(target: id())
    case 5: return .control(.renamed(text(upTo: 8)))
    case 6: return .control(.timer(chance() ? expiry() : nil))
    case 7: return .control(.timerAcknowledged(id()))
    case 8: return .control(.leaving)
    case 9: return .control(.profile(profile()))
    case 10: return .receipt(ReceiptBody(kind: chance() ? .delivered : .read, upTo: id()))
    default: return .custom(type: "shop.gift", payload: random.bytes(number(0...300)))
    }
  }
  static let kinds = 0...11

  mutating func envelope(_ kind: Int) -> Envelope {
    Envelope(
      id: id(), sentAt: WallTime(microseconds: Int64(number(0...1_800_000_000_000)) * 1_000),
      content: content(kind), fallback: chance() ? text(upTo: 10) : nil, expiry: chance() ? expiry() : nil)
  }
}

extension Envelope {
  /// A text, for what is not about the text.
  static func text(_ body: TextBody) -> Envelope {
    var samples = Samples(seed: 1)
    return Envelope(id: samples.id(), sentAt: WallTime(microseconds: 0), content: .text(body))
  }
}
