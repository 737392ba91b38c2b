import PalbeWire
import Testing

struct ByteReaderTests {
  static let bytes: [UInt8] = (1...30).map { UInt8($0) }

  /// Reads 1 + 2 + 3 + 4 + 8 + 5 + 2 + 1 + 2 = 28 bytes in every way the reader has.
  static func readAll(_ reader: inout ByteReader) throws(WireError) -> [UInt64] {
    var values = [UInt64(try reader.uint8()), UInt64(try reader.uint16()), UInt64(try reader.uint24())]
    values += [UInt64(try reader.uint32()), try reader.uint64(), try reader.uint(bytes: 5)]
    let span = try reader.span(2)
    values += [UInt64(span[0]), UInt64(span[1])]
    values += try reader.array(1).map { UInt64($0) }
    var nested = try reader.reader(2)
    values.append(UInt64(try nested.uint16()))
    try nested.finish()
    return values
  }

  @Test("fields are read in network order")
  func fields() throws {
    var reader = ByteReader(Self.bytes.span)
    let values = try Self.readAll(&reader)
    #expect(
      values == [
        0x01, 0x0203, 0x040506, 0x0708_090a, 0x0b0c_0d0e_0f10_1112, 0x13_1415_1617, 0x18, 0x19, 0x1a, 0x1b1c,
      ])
    let (offset, remaining) = (reader.offset, reader.remaining)
    #expect(offset == 28)
    #expect(remaining == 2)
    #expect(throws: WireError.trailing(count: 2)) { try Self.finish(Self.bytes, after: 28) }
    try reader.skip(2)
    try reader.finish()
    let isAtEnd = reader.isAtEnd
    #expect(isAtEnd)
  }

  static func finish(_ bytes: [UInt8], after count: Int) throws(WireError) {
    var reader = ByteReader(bytes.span)
    try reader.skip(count)
    try reader.finish()
  }

  @Test("every prefix throws truncated with the numbers, and nothing is consumed by the failing read")
  func truncation() throws {
    for length in 0..<28 {
      let prefix = Array(Self.bytes.prefix(length))
      #expect(throws: WireError.self) {
        var reader = ByteReader(prefix.span)
        _ = try Self.readAll(&reader)
      }
    }
    let two: [UInt8] = [1, 2]
    var reader = ByteReader(two.span)
    do throws(WireError) {
      _ = try reader.uint32()
      Issue.record("read four bytes out of two")
    } catch {
      #expect(error == .truncated(needed: 4, have: 2))
    }
    let value = try reader.uint16()
    #expect(value == 0x0102)
  }

  @Test("a negative or huge length throws instead of trapping", arguments: [-1, Int.min, Int.max])
  func absurdLength(_ count: Int) {
    #expect(throws: WireError.truncated(needed: count, have: 30)) {
      var reader = ByteReader(Self.bytes.span)
      _ = try reader.array(count)
    }
    #expect(throws: WireError.truncated(needed: count, have: 29)) {
      var reader = ByteReader(Self.bytes.span)
      try reader.skip(1)
      try reader.skip(count)
    }
  }

  @Test("a nested reader cannot see past its part")
  func nested() throws {
    var reader = ByteReader(Self.bytes.span)
    var part = try reader.reader(3)
    let value = try part.uint24()
    #expect(value == 0x010203)
    do throws(WireError) {
      _ = try part.uint8()
      Issue.record("read past the part")
    } catch {
      #expect(error == .truncated(needed: 1, have: 0))
    }
    let next = try reader.uint8()
    #expect(next == 4)
  }
}
