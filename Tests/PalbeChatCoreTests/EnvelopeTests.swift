import PalbeChatCore
import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeProtobuf
import PalbeUnits
import PalbeWire
import Testing

@Suite("A message's wire form") struct EnvelopeTests {
  @Test("S0-2 S0-141 every content comes back as it was sent", arguments: Samples.kinds)
  func roundTrip(kind: Int) throws {
    var samples = Samples(seed: UInt64(kind))
    for _ in 0..<60 {
      let envelope = samples.envelope(kind)
      let plaintext = try envelope.encoded()
      #expect(try Envelope.decoded(plaintext: plaintext.span) == envelope)
      let kept = try envelope.serialized()
      #expect(try Envelope(serialized: kept.span) == envelope)
    }
  }

  @Test("S0-2 every prefix of a message is refused or is a message; none traps", arguments: Samples.kinds)
  func truncation(kind: Int) throws {
    var samples = Samples(seed: 100 + UInt64(kind))
    let envelope = samples.envelope(kind)
    let whole = try envelope.serialized()
    for count in 0..<whole.count {
      var prefix = Array(whole[..<count])
      // Without its content, which comes last, it is none.
      if let shorter = try? Envelope(serialized: prefix.span) { #expect(shorter != envelope) }
      Padding.pad(&prefix)
      if let shorter = try? Envelope.decoded(plaintext: prefix.span) { #expect(shorter != envelope) }
    }
    let plaintext = try envelope.encoded()
    for count in 0...whole.count {
      if let shorter = try? Envelope.decoded(plaintext: plaintext.span.extracting(0..<count)) {
        #expect(shorter != envelope)
      }
    }
  }

  @Test("S0-2 changed bytes are refused, or are a message that can be sent again")
  func changes() throws {
    var samples = Samples(seed: 7)
    for kind in Samples.kinds {
      let whole = try samples.envelope(kind).serialized()
      for _ in 0..<400 {
        var changed = whole
        for _ in 0...samples.number(0...3) where !changed.isEmpty {
          changed[samples.number(0...changed.count - 1)] = UInt8(samples.number(0...255))
        }
        guard let envelope = try? Envelope(serialized: changed.span) else { continue }
        if case .unknown = envelope.content { continue }
        let again = try envelope.serialized()
        #expect(try Envelope(serialized: again.span) == envelope)
      }
    }
  }

  @Test("2.1 the plaintext is padded to one of few lengths")
  func padded() throws {
    for count in [0, 1, 200, 255, 256, 4_000, 60_000] {
      let plaintext = try Envelope.text(TextBody(String(repeating: "a", count: count))).encoded()
      #expect(plaintext.count.isMultiple(of: 256))
      #expect(plaintext.count == Int(Padding.paddedByteCount(for: Int64(plaintext.count), grain: 256)))
    }
  }

  @Test("2.1 texts of one padded length are one length to the server too")
  func lengths() throws {
    let lifetime = Lifetime(notBefore: 0, notAfter: 86_400)
    var random = RandomSource(seed: 1)
    let client = try MLSClient(credential: .basic(identity: [1]), using: &random)
    var group = try MLSGroup.create(groupID: [1], client: client, lifetime: lifetime, using: &random)
    func length(_ count: Int) throws -> Int {
      let plaintext = try Envelope.text(TextBody(String(repeating: "a", count: count))).encoded()
      return try group.encrypt(plaintext, using: &random).encoded().count
    }
    let (one, hundred, two, more) = (try length(1), try length(100), try length(200), try length(300))
    #expect(one == hundred && one == two && more == one + 256)
  }

  @Test("S0-141 another version is refused by its number, sent and received")
  func versions() throws {
    var envelope = Envelope.text(TextBody("a"))
    envelope.version = 2
    #expect(throws: ContentError.unsupportedVersion(2)) { try envelope.encoded() }
  }

  @Test("S3-8 what is not known is shown by its fallback and cannot be sent")
  func unknown() throws {
    var envelope = Envelope.text(TextBody("a"))
    envelope.content = .unknown(field: 40)
    #expect(throws: ContentError.invalid("content")) { try envelope.encoded() }
  }

  @Test("S0-82 the time of sending keeps its milliseconds and no more")
  func sentAt() throws {
    var envelope = Envelope.text(TextBody("a"))
    envelope.sentAt = WallTime(microseconds: 1_764_500_000_123_456)
    let plaintext = try envelope.encoded()
    let received = try Envelope.decoded(plaintext: plaintext.span)
    #expect(received.sentAt.microseconds == 1_764_500_000_123_000)
    for wrong in [.min, -1, (1 << 48) * 1_000, .max] as [Int64] {
      envelope.sentAt = WallTime(microseconds: wrong)
      #expect(throws: ContentError.invalid("sent_at_ms")) { try envelope.encoded() }
    }
  }

  @Test("S0-81 a message that disappears at once is not sent")
  func expiry() throws {
    var envelope = Envelope.text(TextBody("a"))
    envelope.expiry = Expiry(seconds: 0)
    #expect(throws: ContentError.invalid("expiry")) { try envelope.encoded() }
  }

  @Test("S0-44 a message that is printed does not show its key")
  func secretive() throws {
    var samples = Samples(seed: 3)
    let descriptor = samples.descriptor()
    let secret = Hex.encode([UInt8](descriptor.key.copy().span))
    var dumped = ""
    dump(descriptor, to: &dumped)
    for text in [dumped, "\(descriptor)", String(reflecting: descriptor)] {
      #expect(!text.contains(secret))
      #expect(!text.contains(Hex.decode(secret)!.prefix(8).map(String.init).joined(separator: ", ")))
    }
    #expect(Mirror(reflecting: descriptor.key).children.isEmpty)
  }
}
