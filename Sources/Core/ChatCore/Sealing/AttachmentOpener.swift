import PalbeCrypto
import PalbeUnits
import PalbeWire

/// Opens one attachment in two passes over its ciphertext, which lies in a file by then: the first checks that it is the
/// one that the message names, the second opens it segment by segment, in the memory of one (2.10).
///
///     var opener = try AttachmentOpener(descriptor)
///     while let piece = read() { try opener.check(piece.span) }
///     try opener.finishCheck()                                      // throws: nothing was decrypted
///     rewind()
///     while let piece = read() {
///       var offset = 0
///       while offset < piece.count {
///         offset += try opener.feed(piece.span.extracting(offset...))
///         while let plain = try opener.take() { write(plain) }
///       }
///     }
///     try opener.finish()
///
/// After an error it is of no use. What was taken before it was part of the file; the file is whole after `finish`.
package struct AttachmentOpener: ~Copyable {
  /// How long what is.
  package let layout: AttachmentLayout
  private let blob: BlobID
  private let cipherHash: [UInt8]
  private var context: AEADContext
  private var hash = SHA256()
  /// Bytes that the pass has not seen yet.
  private var left: Int64
  private var isChecked = false
  private var prefix: [UInt8] = []
  private var index: UInt32 = 0
  /// The ciphertext of the segment at `index`, as far as it came.
  private var segment: [UInt8] = []

  /// Throws `size` where no file has the descriptor's sizes.
  package init(_ descriptor: AttachmentDescriptor) throws(AttachmentError) {
    guard let layout = AttachmentLayout(plainByteCount: descriptor.plainByteCount) else {
      throw .size(descriptor.plainByteCount)
    }
    guard layout.cipherByteCount == descriptor.cipherByteCount else {
      throw .size(descriptor.cipherByteCount)
    }
    context = try descriptor.key.context(.open)
    (self.layout, blob, cipherHash) = (layout, descriptor.blob, descriptor.cipherHash)
    left = layout.cipherByteCount
  }

  // MARK: The first pass

  /// Takes in bytes of the ciphertext. Throws `moreBytes`.
  package mutating func check(_ piece: Span<UInt8>) throws(AttachmentError) {
    guard piece.count <= left, !isChecked else { throw .moreBytes }
    left -= Int64(piece.count)
    hash.update(piece)
  }

  /// Ends the first pass. Throws `bytesMissing`, or `hash` for another ciphertext.
  package mutating func finishCheck() throws(AttachmentError) {
    guard left == 0 else { throw .bytesMissing(left) }
    guard ConstantTime.equal(hash.finalize().span, cipherHash.span) else { throw .hash }
    isChecked = true
    left = layout.cipherByteCount
  }

  // MARK: The second pass

  /// Takes in bytes of the ciphertext, as many as belong to the segment, and says how many those were. With 0 `take` has
  /// something. Throws `notChecked`, `moreBytes`.
  package mutating func feed(_ piece: Span<UInt8>) throws(AttachmentError) -> Int {
    guard isChecked else { throw .notChecked }
    guard piece.count <= left else { throw .moreBytes }
    var offset = 0
    while prefix.count < AttachmentLayout.prefixByteCount, offset < piece.count {
      prefix.append(piece[offset])
      offset += 1
    }
    if index < layout.segmentCount {
      let size = layout.byteCount(ofSegment: index) + AttachmentLayout.tagByteCount
      if segment.isEmpty { segment.reserveCapacity(size) }
      let count = min(piece.count - offset, size - segment.count)
      unsafe piece.extracting(offset..<offset + count).withUnsafeBufferPointer {
        unsafe segment.append(contentsOf: $0)
      }
      offset += count
    }
    left -= Int64(offset)
    return offset
  }

  /// The next bytes of the file; nil until a segment is whole, and where it holds only padding. Throws `segment`.
  package mutating func take() throws(AttachmentError) -> [UInt8]? {
    guard index < layout.segmentCount else { return nil }
    let size = layout.byteCount(ofSegment: index)
    guard segment.count == size + AttachmentLayout.tagByteCount else { return nil }
    var opened = segment
    segment = []
    let segments = AttachmentSegments(blob: blob, count: layout.segmentCount, prefix: prefix)
    let (nonce, authenticated) = (segments.nonce(index), segments.authenticated(index))
    var span = opened.mutableSpan
    do throws(CryptoError) {
      try context.open(in: &span, body: 0..<size, authenticating: authenticated.span, nonce: nonce.span)
    } catch { throw .segment(index) }
    let start = Int64(index) * Int64(AttachmentLayout.segmentByteCount)
    let plain = Int(max(0, min(Int64(size), layout.plainByteCount - start)))
    opened.removeLast(opened.count - plain)
    index += 1
    return plain > 0 ? opened : nil
  }

  /// Ends the second pass. Throws `bytesMissing`.
  package consuming func finish() throws(AttachmentError) {
    guard isChecked else { throw .notChecked }
    guard index == layout.segmentCount else { throw .bytesMissing(left) }
  }
}
