import PalbeChatCore
import PalbeCrypto
import PalbeTestKit
import PalbeUnits
import PalbeWire
import Testing

@Suite("Messages' golden vectors") struct EnvelopeVectorTests {
  struct File: Decodable {
    struct Message: Decodable {
      let name, plaintext: String
      let canonical: Bool
      let fields: [String: String]
    }
    struct Refused: Decodable { let name, plaintext, error: String }
    let messages: [Message]
    let refused: [Refused]
  }

  static let file = try? Vectors.goldenJSON(
    "Tests/PalbeChatCoreTests/Vectors/envelopes.json", as: File.self)

  @Test("S0-141 S0-75 every message is read as a second implementation wrote it, and written so again")
  func messages() throws {
    let file = try #require(Self.file)
    #expect(file.messages.count == 32)
    for item in file.messages {
      let plaintext = try #require(Hex.decode(item.plaintext))
      let envelope = try Envelope.decoded(plaintext: plaintext.span)
      #expect(envelope.described == item.fields, "\(item.name)")
      if case .unknown = envelope.content { continue }
      #expect((try envelope.encoded() == plaintext) == item.canonical, "\(item.name)")
    }
  }

  @Test("S0-141 what is no message is refused for the reason that is its own")
  func refused() throws {
    let file = try #require(Self.file)
    #expect(file.refused.count == 32)
    for item in file.refused {
      let plaintext = try #require(Hex.decode(item.plaintext))
      do throws(ContentError) {
        _ = try Envelope.decoded(plaintext: plaintext.span)
        Issue.record("\(item.name) is taken")
      } catch { #expect(error.described == item.error, "\(item.name)") }
    }
  }
}

extension ContentError {
  fileprivate var described: String {
    switch self {
    case .malformed: "malformed"
    case .unsupportedVersion(let version): "version \(version)"
    case .padding: "padding"
    case .missing(let field): "missing \(field)"
    case .limit(let field, let limit): "limit \(field) \(limit)"
    case .invalid(let field): "invalid \(field)"
    case .severalContents: "several contents"
    case .mention(let index): "mention \(index)"
    }
  }
}

extension Envelope {
  /// Its fields as the vectors write them.
  fileprivate var described: [String: String] {
    var fields = content.described
    fields["version"] = "\(version)"
    fields["id"] = id.text
    fields["sent_at_ms"] = "\(sentAt.microseconds / 1_000)"
    fields["fallback"] = fallback
    fields["expiry"] = expiry?.described
    return fields
  }
}

extension Expiry {
  fileprivate var described: String { "\(seconds) \(start)" }
}

extension ProfileVersion {
  fileprivate var described: String { "\(epoch)/\(seq)" + (control.map { " \($0)" } ?? "") }
}

extension ReplyReference {
  fileprivate var described: [String: String] {
    ["reply": parent.text, "quote": "\(quote.sender) \(quote.kind)" + (quote.text.map { ": \($0)" } ?? "")]
  }
}

extension TextBody {
  fileprivate var described: [String: String] {
    var fields = ["text": text].merging(reply?.described ?? [:]) { $1 }
    if !mentions.isEmpty {
      fields["mentions"] = mentions.map { "\($0.start)+\($0.length) \($0.user)" }.joined(separator: ", ")
    }
    return fields
  }
}

extension AttachmentBody {
  fileprivate var described: [String: String] {
    var fields = [
      "blob": descriptor.blob.text, "key": Hex.encode([UInt8](descriptor.key.copy().span)),
      "cipher_sha256": Hex.encode(descriptor.cipherHash), "cipher_bytes": "\(descriptor.cipherByteCount)",
      "plain_bytes": "\(descriptor.plainByteCount)", "kind": "\(descriptor.kind)",
      "filename": descriptor.filename, "mime_type": descriptor.mimeType,
    ].merging(reply?.described ?? [:]) { $1 }
    fields["thumbnail"] = descriptor.thumbnail.map(Hex.encode)
    fields["waveform"] = descriptor.waveform.map(Hex.encode)
    fields["duration_ms"] = descriptor.durationMs.map { "\($0)" }
    fields["width"] = descriptor.width.map { "\($0)" }
    fields["height"] = descriptor.height.map { "\($0)" }
    fields["caption"] = caption
    return fields
  }
}

extension Content {
  fileprivate var described: [String: String] {
    switch self {
    case .text(let body): return ["content": "text"].merging(body.described) { $1 }
    case .attachment(let body): return ["content": "attachment"].merging(body.described) { $1 }
    case .reaction(let target, let emoji, let isRemoved):
      let fields = ["content": "reaction", "target": target.text, "emoji": emoji]
      return isRemoved ? fields.merging(["removed": "true"]) { $1 } : fields
    case .edit(let target, let body):
      return ["content": "edit", "target": target.text].merging(body.described) { $1 }
    case .delete(let target): return ["content": "delete", "target": target.text]
    case .control(let body): return ["content": "control"].merging(body.described) { $1 }
    case .receipt(let body):
      return ["content": "receipt", "receipt": "\(body.kind)", "target": body.upTo.text]
    case .custom(let type, let payload):
      return ["content": "custom", "type": type, "payload": Hex.encode(payload)]
    case .unknown(let field): return ["content": "unknown \(field)"]
    }
  }
}

extension ControlBody {
  fileprivate var described: [String: String] {
    switch self {
    case .renamed(let name): return ["control": "renamed", "name": name]
    case .timer(let expiry):
      return ["control": "timer"].merging(expiry.map { ["timer": $0.described] } ?? [:]) { $1 }
    case .timerAcknowledged(let control): return ["control": "timer_acknowledged", "target": control.text]
    case .leaving: return ["control": "leaving"]
    case .profile(let profile): return ["control": "profile"].merging(profile.described) { $1 }
    }
  }
}

extension GroupProfile {
  /// Its fields as the vectors write them.
  var described: [String: String] {
    var fields = ["name_version": nameVersion.described, "timer_version": timerVersion.described]
    fields["name"] = name
    fields["timer"] = timer?.described
    return fields
  }
}
