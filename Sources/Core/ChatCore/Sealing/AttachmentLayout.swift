/// How an attachment is cut: the file is padded, and every MiB of that is a segment with a tag of its own.
package struct AttachmentLayout: Hashable, Sendable {
  /// Bytes of a segment before it is sealed; the last may have fewer.
  package static let segmentByteCount = 1 << 20
  /// Bytes that sealing adds to a segment.
  package static let tagByteCount = 16
  /// Random bytes in front of the first segment, with which all nonces begin.
  package static let prefixByteCount = 8
  /// No file is longer: the format counts segments with 32 bits, and a server takes less anyway.
  package static let longestPlainByteCount: Int64 = 1 << 40

  /// Bytes of the file.
  package let plainByteCount: Int64
  /// Bytes of the file and its padding; one segment at least.
  package let paddedByteCount: Int64
  /// How many segments there are.
  package let segmentCount: UInt32
  /// Bytes of the ciphertext: what the server is told.
  package let cipherByteCount: Int64

  /// For a file of that many bytes; nil below zero and above `longestPlainByteCount`.
  package init?(plainByteCount: Int64) {
    guard (0...Self.longestPlainByteCount).contains(plainByteCount) else { return nil }
    self.plainByteCount = plainByteCount
    paddedByteCount = Padding.paddedByteCount(for: plainByteCount, grain: Padding.attachmentGrain)
    let segment = Int64(Self.segmentByteCount)
    let segments = (paddedByteCount + segment - 1) / segment
    segmentCount = UInt32(segments)
    cipherByteCount = Int64(Self.prefixByteCount) + paddedByteCount + segments * Int64(Self.tagByteCount)
  }

  /// Bytes of a segment before it is sealed.
  package func byteCount(ofSegment index: UInt32) -> Int {
    index + 1 < segmentCount
      ? Self.segmentByteCount : Int(paddedByteCount - Int64(index) * Int64(Self.segmentByteCount))
  }
}
