import PalbeCrypto
import PalbeUnits
import PalbeWire

extension AttachmentWire {
  init(_ body: AttachmentBody) throws(ContentError) {
    let descriptor = body.descriptor
    (blob, key, cipherHash) = (
      descriptor.blob.bytes, AttachmentKeyField(descriptor.key), descriptor.cipherHash
    )
    (cipherByteCount, plainByteCount) = (descriptor.cipherByteCount, descriptor.plainByteCount)
    (kind, filename) = (UInt32(descriptor.kind.rawValue), descriptor.filename)
    (mimeType, thumbnail) = (descriptor.mimeType, descriptor.thumbnail)
    (waveform, durationMs) = (descriptor.waveform, descriptor.durationMs)
    (width, height) = (descriptor.width, descriptor.height)
    reply = try body.reply.map { reply throws(ContentError) in try ReplyWire(reply) }
    caption = body.caption
    _ = try self.body()
  }

  func body() throws(ContentError) -> AttachmentBody {
    if key == .absent { throw .missing("key") }
    guard key.key.key.byteCount == AttachmentKey.byteCount else { throw .invalid("key") }
    guard cipherHash.count == 32 else { throw .invalid("cipher_sha256") }
    guard let layout = AttachmentLayout(plainByteCount: plainByteCount) else { throw .invalid("plain_bytes") }
    guard layout.cipherByteCount == cipherByteCount else { throw .invalid("cipher_bytes") }
    guard TextRules.isFilename(filename) else { throw .invalid("filename") }
    guard mimeType.utf8.allSatisfy({ (0x20...0x7e).contains($0) }) else { throw .invalid("mime_type") }
    try StaticField("thumbnail").limit(thumbnail?.count ?? 0, to: ContentLimits.thumbnailByteCount)
    try StaticField("waveform").limit(waveform?.count ?? 0, to: ContentLimits.waveformCount)
    var descriptor = AttachmentDescriptor(
      blob: try StaticField("blob").id(blob), key: key.key, cipherHash: cipherHash,
      cipherByteCount: cipherByteCount, plainByteCount: plainByteCount,
      kind: UInt8(exactly: kind).flatMap(AttachmentKind.init) ?? .file,
      filename: try StaticField("filename").text(filename, to: ContentLimits.filenameByteCount),
      mimeType: try StaticField("mime_type").text(mimeType, to: ContentLimits.mimeTypeByteCount))
    (descriptor.thumbnail, descriptor.waveform) = (thumbnail, waveform)
    (descriptor.durationMs, descriptor.width, descriptor.height) = (durationMs, width, height)
    return AttachmentBody(
      descriptor, reply: try reply.map { reply throws(ContentError) in try reply.value() },
      caption: try StaticField("caption").text(caption, to: ContentLimits.textByteCount))
  }
}
