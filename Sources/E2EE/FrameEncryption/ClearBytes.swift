/// The clear bytes of a frame, at most 10, held in registers while header and ciphertext move around them.
struct ClearBytes: BitwiseCopyable {
  private let low: UInt64
  private let high: UInt16
  let count: Int

  /// Takes `count` bytes at `offset`; a frame ends in 16 bytes of tag or of room for it, so ten bytes can be read.
  @inline(__always)
  init(_ buffer: borrowing MutableSpan<UInt8>, at offset: Int, count: Int) {
    let bytes = unsafe buffer.bytes
    low = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
    high = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset + 8, as: UInt16.self)
    self.count = count
  }

  /// Writes all ten bytes at `offset`, of which `count` mean something.
  @inline(__always) @_lifetime(buffer: copy buffer)
  func storeWide(into buffer: inout MutableSpan<UInt8>, at offset: Int) {
    var bytes = unsafe buffer.mutableBytes
    bytes.storeBytes(of: low, toByteOffset: offset, as: UInt64.self)
    bytes.storeBytes(of: high, toByteOffset: offset + 8, as: UInt16.self)
  }

  /// Writes `count` bytes at `offset` and no more.
  @inline(__always) @_lifetime(buffer: copy buffer)
  func store(into buffer: inout MutableSpan<UInt8>, at offset: Int) {
    if count == FrameCodec.maximumClearByteCount { return storeWide(into: &buffer, at: offset) }
    var rest = UInt64(littleEndian: low)
    for index in 0..<min(count, 8) {
      buffer[offset + index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
    if count == 9 { buffer[offset + 8] = UInt8(truncatingIfNeeded: UInt16(littleEndian: high)) }
  }
}
