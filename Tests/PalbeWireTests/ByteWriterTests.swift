import PalbeWire
import Testing

struct ByteWriterTests {
  @Test("what is written is read back")
  func roundTrip() throws {
    var writer = ByteWriter()
    writer.uint8(1)
    writer.uint16(0x0203)
    writer.uint24(0x04_0506)
    writer.uint32(0x0708_090a)
    writer.uint64(0x0b0c_0d0e_0f10_1112)
    writer.uint(0x13_1415_1617, bytes: 5)
    writer.append([0x18, 0x19])
    writer.append(utf8: "\u{1a}")
    #expect(writer.bytes == (1...0x1a).map { UInt8($0) })
  }

  @Test("a caller's buffer is filled in the same order")
  func outputSpan() {
    let bytes = [UInt8](capacity: 11) { output in
      output.append(uint16: 0x0102)
      output.append(uint24: 0x03_0405)
      output.append(uint32: 0x0607_0809)
      output.append(contentsOf: [10, 11].span)
    }
    #expect(bytes == (1...11).map { UInt8($0) })
    let wide = [UInt8](capacity: 8) { $0.append(uint64: 0x0102_0304_0506_0708) }
    #expect(wide == (1...8).map { UInt8($0) })
  }

  @Test("fields are stored and loaded in place")
  func inPlace() {
    var bytes = [UInt8](repeating: 0xff, count: 8)
    var span = bytes.mutableSpan
    span.store(uint16: 0x0102, at: 1)
    span.store(uint32: 0x0304_0506, at: 3)
    #expect(bytes == [0xff, 1, 2, 3, 4, 5, 6, 0xff])
    #expect(bytes.span.uint16(at: 1) == 0x0102)
    #expect(bytes.span.uint32(at: 3) == 0x0304_0506)
  }

  @Test("field names compare by their text")
  func staticField() {
    let field: StaticField = "length"
    #expect(WireError.invalid(field: field, value: 3) == .invalid(field: "length", value: 3))
    #expect(field != "count")
    #expect(field.description == "length")
  }
}
