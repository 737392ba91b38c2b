import CPalbeZlib
import Testing

@_spi(Testing) @testable import PalbeSFUServer

/// gzip by zlib itself, so that the tests do not depend on our own decoder.
func gzip(_ bytes: [UInt8]) -> [UInt8] {
  var stream = z_stream()
  deflateInit2_(
    &stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
    CInt(MemoryLayout<z_stream>.size))
  defer { deflateEnd(&stream) }
  var input = bytes
  var output = [UInt8](repeating: 0, count: bytes.count + 1_024)
  return input.withUnsafeMutableBufferPointer { source in
    output.withUnsafeMutableBufferPointer { target in
      stream.next_in = source.baseAddress
      stream.avail_in = UInt32(source.count)
      stream.next_out = target.baseAddress
      stream.avail_out = UInt32(target.count)
      deflate(&stream, Z_FINISH)
      return Array(target[..<(target.count - Int(stream.avail_out))])
    }
  }
}

@Suite("join_request decompression")
struct GunzipTests {
  let text = [UInt8]((0..<5_000).map { UInt8(truncatingIfNeeded: $0 * $0) })

  @Test("RFC 1952: a member round-trips")
  func roundTrips() throws {
    #expect(try gunzip(gzip(text), limit: 1 << 20) == text)
    #expect(try gunzip(gzip([]), limit: 0) == [])
  }

  @Test("every prefix is malformed, and so are bytes after the member")
  func refusesPrefixes() {
    let whole = gzip(text)
    for count in 0..<whole.count {
      #expect(throws: GunzipError.malformed) { try gunzip(Array(whole[..<count]), limit: 1 << 20) }
    }
    #expect(throws: GunzipError.malformed) { try gunzip(whole + [0], limit: 1 << 20) }
  }

  @Test("a bomb stops at the cap")
  func stopsAtTheCap() throws {
    let bomb = gzip([UInt8](repeating: 0, count: 4 << 20))
    #expect(bomb.count < 8_192)
    #expect(throws: GunzipError.tooLarge(limit: 1 << 20)) { try gunzip(bomb, limit: 1 << 20) }
    #expect(throws: GunzipError.tooLarge(limit: 4_999)) { try gunzip(gzip(text), limit: 4_999) }
    #expect(try gunzip(gzip(text), limit: 5_000) == text)
  }
}
