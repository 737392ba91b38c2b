extension Array where Element == UInt8 {
  /// A copy in one piece.
  init(copying span: Span<UInt8>) {
    self.init(capacity: span.count) { output in output.append(copying: span) }
  }
}

extension OutputSpan where Element == UInt8 {
  /// Appends `span` in one piece; the room was checked.
  @_lifetime(self: copy self)
  mutating func append(copying span: Span<UInt8>) {
    precondition(freeCapacity >= span.count)
    guard span.count > 0 else { return }
    unsafe withUnsafeMutableBufferPointer { buffer, count in
      unsafe span.withUnsafeBufferPointer { source in
        unsafe (buffer.baseAddress! + count).initialize(from: source.baseAddress!, count: source.count)
      }
      count += span.count
    }
  }

  @_lifetime(self: copy self)
  mutating func append(zeros count: Int) {
    for _ in 0..<count { append(0) }
  }
}

extension MutableSpan where Element == UInt8 {
  /// Puts `span` at `offset` in one piece; the room was checked.
  @_lifetime(self: copy self)
  mutating func copy(_ span: Span<UInt8>, at offset: Int) {
    precondition(offset >= 0 && count - offset >= span.count)
    guard span.count > 0 else { return }
    unsafe withUnsafeMutableBufferPointer { buffer in
      unsafe span.withUnsafeBufferPointer { source in
        unsafe (buffer.baseAddress! + offset).update(from: source.baseAddress!, count: source.count)
      }
    }
  }
}
