import CPalbeZlib

/// Why compressed bytes were refused.
@_spi(Testing) public enum GunzipError: Error, Equatable {
  case malformed
  /// The decompressed size is above the cap.
  case tooLarge(limit: Int)
}

/// Decompresses a gzip member (RFC 1952) into at most `limit` bytes; bytes after the member are refused.
@_spi(Testing) public func gunzip(
  _ compressed: [UInt8], limit: Int
) throws(GunzipError) -> [UInt8] {
  var stream = z_stream()
  // 16 + MAX_WBITS: a gzip header and trailer, not zlib's.
  guard
    inflateInit2_(&stream, 16 + MAX_WBITS, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK
  else { throw .malformed }
  defer { inflateEnd(&stream) }
  var input = compressed
  var output = [UInt8]()
  var chunk = [UInt8](repeating: 0, count: 16_384)
  var failure: GunzipError?
  input.withUnsafeMutableBufferPointer { source in
    stream.next_in = source.baseAddress
    stream.avail_in = UInt32(source.count)
    while failure == nil {
      var status: CInt = Z_OK
      let produced = chunk.withUnsafeMutableBufferPointer { target -> Int in
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(target.count)
        status = inflate(&stream, Z_NO_FLUSH)
        return target.count - Int(stream.avail_out)
      }
      guard status == Z_OK || status == Z_STREAM_END else {
        failure = .malformed
        return
      }
      if output.count + produced > limit {
        failure = .tooLarge(limit: limit)
        return
      }
      output += chunk[..<produced]
      if status == Z_STREAM_END {
        if stream.avail_in != 0 { failure = .malformed }
        return
      }
      if produced == 0, stream.avail_in == 0 { failure = .malformed }
    }
  }
  if let failure { throw failure }
  return output
}
