import PalbeProtobuf
import PalbeUnits
import PalbeWire

extension Envelope {
  /// The plaintext for MLS: the message and its padding. Throws what is wrong with it.
  package func encoded() throws(ContentError) -> [UInt8] {
    var bytes = try serialized()
    Padding.pad(&bytes)
    return bytes
  }

  /// The message without its padding, as a device keeps it.
  package func serialized() throws(ContentError) -> [UInt8] {
    let bytes = try EnvelopeWire(self).serialized()
    // One byte at least is padding.
    try StaticField("message").limit(bytes.count, to: ContentLimits.plaintextByteCount - 1)
    return bytes
  }

  /// The message in what MLS opened. Bytes of a peer: nothing is allocated beyond a small multiple of them, and nothing
  /// traps.
  package static func decoded(plaintext: Span<UInt8>) throws(ContentError) -> Envelope {
    try StaticField("message").limit(plaintext.count, to: ContentLimits.plaintextByteCount)
    guard let count = Padding.messageByteCount(in: plaintext) else { throw .padding }
    return try Envelope(serialized: plaintext.extracting(0..<count))
  }

  /// The message in the bytes that `serialized` gave.
  package init(serialized bytes: Span<UInt8>) throws(ContentError) {
    try StaticField("message").limit(bytes.count, to: ContentLimits.plaintextByteCount)
    let wire: EnvelopeWire
    do throws(ProtobufError) {
      wire = try EnvelopeWire(serialized: bytes, limits: ProtobufLimits(depth: 8, messages: 256))
    } catch { throw .malformed(error) }
    try self.init(wire)
  }
}

extension EnvelopeWire {
  /// The longest time that an id can tell: 48 bits of milliseconds.
  static let latestMs: Int64 = 1 << 48 - 1

  init(_ envelope: Envelope) throws(ContentError) {
    guard envelope.version == Envelope.currentVersion else { throw .unsupportedVersion(envelope.version) }
    version = envelope.version
    id = envelope.id.bytes
    guard (0...Self.latestMs).contains(envelope.sentAt.microseconds / 1_000),
      envelope.sentAt.microseconds >= 0
    else { throw .invalid("sent_at_ms") }
    sentAtMs = envelope.sentAt.microseconds / 1_000
    expiry = try envelope.expiry.map { expiry throws(ContentError) in try ExpiryWire(expiry) }
    fallback = try StaticField("fallback").text(envelope.fallback, to: ContentLimits.fallbackByteCount)
    switch envelope.content {
    case .text(let body): text = try TextWire(body)
    case .attachment(let body): attachment = try AttachmentWire(body)
    case .reaction(let target, let emoji, let isRemoved):
      guard TextRules.isEmoji(emoji) else { throw .invalid("emoji") }
      reaction = .with {
        ($0.target, $0.emoji, $0.isRemoved) = (target.bytes, emoji, isRemoved)
      }
    case .edit(let target, let body): edit = try EditWire(target, body)
    case .delete(let target): delete = .with { $0.target = target.bytes }
    case .control(let body): control = try ControlWire(body)
    case .receipt(let body):
      receipt = .with {
        ($0.kind, $0.upTo) = (UInt32(body.kind.rawValue), body.upTo.bytes)
      }
    case .custom(let type, let payload): custom = try CustomWire(type, payload)
    case .unknown: throw .invalid("content")
    }
  }

  /// The content, and nothing beside it.
  func content() throws(ContentError) -> Content {
    let newer = try unknownAlternatives(Self.contents, in: unknownFields)
    var found: [Content] = newer.map { .unknown(field: $0) }
    if let text { found.append(.text(try text.body())) }
    if let attachment { found.append(.attachment(try attachment.body())) }
    if let reaction {
      guard TextRules.isEmoji(reaction.emoji) else { throw .invalid("emoji") }
      found.append(
        .reaction(
          target: try StaticField("target").id(reaction.target), emoji: reaction.emoji,
          isRemoved: reaction.isRemoved))
    }
    if let edit { found.append(try edit.content()) }
    if let delete { found.append(.delete(target: try StaticField("target").id(delete.target))) }
    if let control { found.append(try control.body().map { .control($0) } ?? .unknown(field: 21)) }
    if let receipt { found.append(try receipt.body().map { .receipt($0) } ?? .unknown(field: 22)) }
    if let custom { found.append(try custom.content()) }
    guard let content = found.first else { throw .missing("content") }
    guard found.count == 1 else { throw .severalContents }
    return content
  }
}

extension Envelope {
  init(_ wire: EnvelopeWire) throws(ContentError) {
    guard wire.version == Self.currentVersion else { throw .unsupportedVersion(wire.version) }
    guard (0...EnvelopeWire.latestMs).contains(wire.sentAtMs) else { throw .invalid("sent_at_ms") }
    self.init(
      id: try StaticField("id").id(wire.id), sentAt: WallTime(microseconds: wire.sentAtMs * 1_000),
      content: try wire.content(),
      fallback: try StaticField("fallback").text(wire.fallback, to: ContentLimits.fallbackByteCount),
      expiry: try wire.expiry.map { expiry throws(ContentError) in try expiry.value() })
  }
}

extension ExpiryWire {
  init(_ expiry: Expiry) throws(ContentError) {
    guard expiry.seconds > 0 else { throw .invalid("expiry") }
    (seconds, start) = (expiry.seconds, UInt32(expiry.start.rawValue))
  }

  /// A start of a newer version becomes the earlier one of today, so that nothing stays longer than it was meant to.
  func value() throws(ContentError) -> Expiry {
    guard seconds > 0 else { throw .invalid("expiry") }
    return Expiry(seconds: seconds, start: UInt8(exactly: start).flatMap(ExpiryStart.init) ?? .send)
  }
}

extension ReceiptWire {
  /// Nil for a kind of a newer version.
  func body() throws(ContentError) -> ReceiptBody? {
    let upTo: MessageRef = try StaticField("up_to").id(upTo)
    return UInt8(exactly: kind).flatMap(ReceiptKind.init).map { ReceiptBody(kind: $0, upTo: upTo) }
  }
}

extension CustomWire {
  init(_ type: String, _ payload: [UInt8]) throws(ContentError) {
    (self.type, self.payload) = (type, payload)
    _ = try content()
  }

  func content() throws(ContentError) -> Content {
    if type.isEmpty { throw .missing("type") }
    try StaticField("type").limit(type.utf8.count, to: ContentLimits.customTypeByteCount)
    try StaticField("payload").limit(payload.count, to: ContentLimits.customPayloadByteCount)
    return .custom(type: type, payload: payload)
  }
}
