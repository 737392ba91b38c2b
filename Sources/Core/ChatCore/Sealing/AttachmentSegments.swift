import PalbeCrypto
import PalbeUnits
import PalbeWire

/// What each segment of an attachment is sealed with: its nonce, and the data that ties it to its place.
struct AttachmentSegments: Sendable {
  let blob: BlobID
  let count: UInt32
  /// The first eight bytes of every nonce.
  let prefix: [UInt8]

  /// The prefix and the segment's index: no two segments share a nonce, and a key seals one attachment.
  func nonce(_ index: UInt32) -> [UInt8] {
    var writer = ByteWriter(capacity: 12)
    writer.append(prefix)
    writer.uint32(index)
    return writer.bytes
  }

  /// "pbatt1", the blob's id, the index, whether it is the last, how many there are: a segment that was moved, cut off
  /// or taken from another blob does not open (S0-46).
  func authenticated(_ index: UInt32) -> [UInt8] {
    var writer = ByteWriter(capacity: 31)
    writer.append(utf8: "pbatt1")
    writer.append(blob.bytes)
    writer.uint32(index)
    writer.uint8(index + 1 == count ? 1 : 0)
    writer.uint32(count)
    return writer.bytes
  }
}

extension AttachmentKey {
  /// The cipher under this key.
  func context(_ direction: AEADContext.Direction) throws(AttachmentError) -> AEADContext {
    let secret = copy()
    do throws(CryptoError) {
      return try AEADContext(.aes256GCM, key: secret.span, direction: direction)
    } catch { throw .crypto(error) }
  }
}
