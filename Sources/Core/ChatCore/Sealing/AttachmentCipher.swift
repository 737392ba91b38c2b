import PalbeUnits
import PalbeWire

/// Whole attachments in memory, for those that are small.
package enum AttachmentCipher {
  /// The ciphertext of a file, and what opens it.
  package static func seal(
    _ file: Span<UInt8>, blob: BlobID, using random: inout RandomSource
  ) throws(AttachmentError) -> (ciphertext: [UInt8], attachment: SealedAttachment) {
    var sealer = try AttachmentSealer(plainByteCount: Int64(file.count), blob: blob, using: &random)
    var ciphertext: [UInt8] = []
    ciphertext.reserveCapacity(Int(sealer.layout.cipherByteCount))
    var offset = 0
    while offset < file.count {
      offset += try sealer.feed(file.extracting(offset...))
      while let sealed = try sealer.take() { ciphertext.append(contentsOf: sealed) }
    }
    while let sealed = try sealer.take() { ciphertext.append(contentsOf: sealed) }
    return (ciphertext, try sealer.finish())
  }

  /// The file in a ciphertext. Nothing is decrypted before all of it was found to be what the descriptor names.
  package static func open(
    _ ciphertext: Span<UInt8>, _ descriptor: AttachmentDescriptor
  ) throws(AttachmentError) -> [UInt8] {
    var opener = try AttachmentOpener(descriptor)
    try opener.check(ciphertext)
    try opener.finishCheck()
    var file: [UInt8] = []
    file.reserveCapacity(Int(descriptor.plainByteCount))
    var offset = 0
    while offset < ciphertext.count {
      offset += try opener.feed(ciphertext.extracting(offset...))
      while let plain = try opener.take() { file.append(contentsOf: plain) }
    }
    try opener.finish()
    return file
  }
}
