import PalbeProtobuf
import PalbeUnits
import PalbeWire

extension TextWire {
  init(_ body: TextBody) throws(ContentError) {
    text = try StaticField("text").text(body.text, to: ContentLimits.textByteCount)
    mentions = try MentionWire.all(body)
    reply = try body.reply.map { reply throws(ContentError) in try ReplyWire(reply) }
  }

  func body() throws(ContentError) -> TextBody {
    TextBody(
      try StaticField("text").text(text, to: ContentLimits.textByteCount),
      mentions: try MentionWire.standing(mentions, in: text),
      reply: try reply.map { reply throws(ContentError) in try reply.value() })
  }
}

extension EditWire {
  init(_ target: MessageRef, _ body: TextBody) throws(ContentError) {
    self.target = target.bytes
    text = try StaticField("text").text(body.text, to: ContentLimits.textByteCount)
    mentions = try MentionWire.all(body)
  }

  func content() throws(ContentError) -> Content {
    .edit(
      target: try StaticField("target").id(target),
      TextBody(
        try StaticField("text").text(text, to: ContentLimits.textByteCount),
        mentions: try MentionWire.standing(mentions, in: text)))
  }
}

extension MentionWire {
  /// Those of a text that is sent: all of them stand, or it is refused.
  static func all(_ body: TextBody) throws(ContentError) -> [MentionWire] {
    try StaticField("mentions").limit(body.mentions.count, to: ContentLimits.mentionCount)
    let standing = TextRules.standing(body.mentions, in: body.text)
    if standing.count < body.mentions.count {
      // The first that is missing.
      throw .mention(index: standing.indices.first { standing[$0] != $0 } ?? standing.count)
    }
    return body.mentions.map { mention in
      .with {
        ($0.start, $0.length, $0.user) = (Int64(mention.start), Int64(mention.length), mention.user.bytes)
      }
    }
  }

  /// Those of a text that was received which can stand (S0-77).
  static func standing(_ mentions: [MentionWire], in text: String) throws(ContentError) -> [Mention] {
    try StaticField("mentions").limit(mentions.count, to: ContentLimits.mentionCount)
    let named = try mentions.map { mention throws(ContentError) in
      Mention(
        start: Int(mention.start), length: Int(mention.length), user: try StaticField("user").id(mention.user)
      )
    }
    return TextRules.standing(named, in: text).map { named[$0] }
  }
}

extension ReplyWire {
  init(_ reply: ReplyReference) throws(ContentError) {
    parent = reply.parent.bytes
    sender = reply.quote.sender.bytes
    kind = reply.quote.kind
    text = reply.quote.text
    _ = try value()
  }

  func value() throws(ContentError) -> ReplyReference {
    if kind.isEmpty { throw .missing("quote_kind") }
    return ReplyReference(
      parent: try StaticField("parent").id(parent),
      quote: ReplyQuote(
        sender: try StaticField("quote_sender").id(sender),
        kind: try StaticField("quote_kind").text(kind, to: ContentLimits.quoteKindByteCount),
        text: try StaticField("quote_text").text(text, to: ContentLimits.quoteByteCount)))
  }
}
