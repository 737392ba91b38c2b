import PalbeCrypto
import PalbeUnits
import PalbeWire

/// Seals one file, piece by piece, in the memory of one segment.
///
///     var sealer = try AttachmentSealer(plainByteCount: size, blob: blob, using: &random)
///     while let piece = read() {
///       var offset = 0
///       while offset < piece.count {
///         offset += try sealer.feed(piece.span.extracting(offset...))
///         while let sealed = try sealer.take() { write(sealed) }
///       }
///     }
///     while let sealed = try sealer.take() { write(sealed) }      // the padding
///     let attachment = try sealer.finish()                        // key and hash, for the message
///
/// The key is made here and comes out at the end, and nothing takes a key in: it seals this file and no other (S0-44).
/// An upload that has to begin again sends the same ciphertext, or is sealed anew.
package struct AttachmentSealer: ~Copyable {
  /// How long what is.
  package let layout: AttachmentLayout
  private let segments: AttachmentSegments
  private let key: AttachmentKey
  private var context: AEADContext
  private var hash = SHA256()
  private var index: UInt32 = 0
  /// The plaintext of the segment at `index`, as far as it came.
  private var segment: [UInt8] = []
  private var plainLeft: Int64

  /// For a file of that many bytes, whose ciphertext will be `blob`. Throws `size`.
  package init(plainByteCount: Int64, blob: BlobID, using random: inout RandomSource) throws(AttachmentError)
  {
    guard let layout = AttachmentLayout(plainByteCount: plainByteCount) else { throw .size(plainByteCount) }
    let key = AttachmentKey(SymmetricKey(byteCount: AttachmentKey.byteCount, using: &random))
    context = try key.context(.seal)
    self.key = key
    segments = AttachmentSegments(
      blob: blob, count: layout.segmentCount, prefix: random.bytes(AttachmentLayout.prefixByteCount))
    self.layout = layout
    plainLeft = plainByteCount
  }

  /// Takes in bytes of the file, as many as fit into the segment, and says how many those were. With 0 `take` has
  /// something. Throws `moreBytes`.
  package mutating func feed(_ piece: Span<UInt8>) throws(AttachmentError) -> Int {
    guard piece.count <= plainLeft else { throw .moreBytes }
    guard index < layout.segmentCount else { return 0 }
    let size = layout.byteCount(ofSegment: index)
    if segment.isEmpty { segment.reserveCapacity(size + AttachmentLayout.tagByteCount) }
    let count = min(piece.count, size - segment.count)
    unsafe piece.extracting(0..<count).withUnsafeBufferPointer { unsafe segment.append(contentsOf: $0) }
    plainLeft -= Int64(count)
    return count
  }

  /// The next bytes of the ciphertext; nil until a segment is full, or the file has ended and all was taken.
  package mutating func take() throws(AttachmentError) -> [UInt8]? {
    guard index < layout.segmentCount else { return nil }
    let size = layout.byteCount(ofSegment: index)
    if plainLeft == 0 { segment.append(contentsOf: repeatElement(0, count: size - segment.count)) }
    guard segment.count == size else { return nil }

    var sealed = segment
    segment = []
    sealed.append(contentsOf: repeatElement(0, count: AttachmentLayout.tagByteCount))
    let (nonce, authenticated) = (segments.nonce(index), segments.authenticated(index))
    var span = sealed.mutableSpan
    do throws(CryptoError) {
      try context.seal(in: &span, body: 0..<size, authenticating: authenticated.span, nonce: nonce.span)
    } catch { throw .crypto(error) }
    if index == 0 { sealed.insert(contentsOf: segments.prefix, at: 0) }
    hash.update(sealed)
    index += 1
    return sealed
  }

  /// What opens the ciphertext. Throws `bytesMissing` when not all of it was taken.
  package consuming func finish() throws(AttachmentError) -> SealedAttachment {
    guard plainLeft == 0 else { throw .bytesMissing(plainLeft) }
    guard index == layout.segmentCount else {
      throw .bytesMissing(layout.paddedByteCount - Int64(index) * Int64(AttachmentLayout.segmentByteCount))
    }
    return SealedAttachment(blob: segments.blob, key: key, cipherHash: hash.finalize(), layout: layout)
  }
}

/// What came out of sealing a file, for the message that names it.
package struct SealedAttachment: Equatable, Sendable {
  /// The ciphertext's name at the server.
  package let blob: BlobID
  /// Its key.
  package let key: AttachmentKey
  /// Its SHA-256.
  package let cipherHash: [UInt8]
  /// How long it and the file are.
  package let layout: AttachmentLayout

  /// The descriptor, with what only the application knows.
  package func descriptor(
    kind: AttachmentKind, filename: String, mimeType: String
  ) -> AttachmentDescriptor {
    AttachmentDescriptor(
      blob: blob, key: key, cipherHash: cipherHash, cipherByteCount: layout.cipherByteCount,
      plainByteCount: layout.plainByteCount, kind: kind, filename: filename, mimeType: mimeType)
  }
}
