import PalbeUnits
import PalbeWire
import Testing

struct JSONTests {
  /// Reads a text and writes it again without white space.
  static func again(_ text: String, limit: Int = 65_536, depth: Int = 8) throws(JSONError) -> String {
    var reader = try JSONReader(text, limit: limit, depth: depth)
    var writer = JSONWriter()
    try copy(&reader, &writer)
    try reader.finish()
    return writer.text
  }

  private static func copy(_ reader: inout JSONReader, _ writer: inout JSONWriter) throws(JSONError) {
    switch reader.kind() {
    case .object:
      try reader.enterObject()
      writer.beginObject()
      while let key = try reader.nextKey() {
        writer.key(key)
        try copy(&reader, &writer)
      }
      writer.endObject()
    case .array:
      try reader.enterArray()
      writer.beginArray()
      while try reader.nextElement() { try copy(&reader, &writer) }
      writer.endArray()
    case .string: writer.string(try reader.string())
    case .bool: writer.bool(try reader.bool())
    case .null:
      _ = try reader.isNull()
      writer.null()
    case .number, .invalid: writer.raw(String(decoding: try reader.number(), as: UTF8.self))
    }
  }

  @Test(
    "RFC 8259: what is read is written again",
    arguments: [
      ("{}", "{}"), (" [ ] ", "[]"), ("[[],{},[{}]]", "[[],{},[{}]]"), ("0", "0"), ("-0.50e+3", "-0.50e+3"),
      (
        "{ \"a\" : [ 1 , true , false , null ] , \"b\" : { \"c\" : \"\" } }",
        #"{"a":[1,true,false,null],"b":{"c":""}}"#
      ),
      (#""\"\\\/\b\f\n\r\t\u0041\u00e9\ud83c\udf88""#, "\"\\\"\\\\/\\b\\f\\n\\r\\tAé🎈\""),
      ("\"\\u0000\\u001f\u{7f}\u{2028}\"", "\"\\u0000\\u001f\u{7f}\u{2028}\""),
    ])
  func again(_ text: String, _ expected: String) throws {
    #expect(try Self.again(text) == expected)
    #expect(try Self.again(expected) == expected)
  }

  @Test(
    "RFC 8259: what is not JSON is refused, at its place",
    arguments: [
      ("", 0), ("  ", 2), ("{", 1), ("[", 1), ("[1", 2), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3), ("[1}", 2),
      ("{\"a\":1,}", 7), ("{\"a\"}", 4), ("{a:1}", 1), ("{} {}", 3), ("nul", 3), ("True", 0), ("01", 1),
      ("1.", 2), (".5", 0), ("+1", 0), ("1e", 2), ("--1", 1), ("\"", 1), ("\"\t\"", 1), ("\"\\x\"", 2),
      ("\"\\u12\"", 3), ("\"\\ud800\"", 3), ("\"\\udc00\"", 3), ("NaN", 0), ("'a'", 0), ("\u{feff}1", 0),
    ])
  func refused(_ text: String, _ at: Int) {
    #expect(throws: JSONError.unexpected(at: at)) { _ = try Self.again(text) }
  }

  @Test("a text that is not UTF-8 is refused")
  func notUTF8() throws {
    for bytes: [UInt8] in [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f]] {
      var reader = try JSONReader([0x22] + bytes + [0x22], limit: 100)
      #expect(throws: JSONError.unexpected(at: 1)) { _ = try reader.string() }
    }
  }

  @Test("size and depth have limits")
  func limits() throws {
    let deep = String(repeating: "[", count: 9) + String(repeating: "]", count: 9)
    #expect(throws: JSONError.tooDeep(limit: 8)) { _ = try Self.again(deep) }
    #expect(try Self.again(deep, depth: 9) == deep)
    #expect(try Self.again(deep, limit: 18, depth: 9) == deep)
    #expect(throws: JSONError.tooLong(limit: 17)) { _ = try Self.again(deep, limit: 17, depth: 9) }
    // Leaving a container makes room for the next one.
    #expect(try Self.again("[[],[],[]]", depth: 2) == "[[],[],[]]")
  }

  @Test(
    "whole numbers are read without rounding, however they are written",
    arguments: [
      ("9007199254740993", 9_007_199_254_740_993), ("-9223372036854775808", Int64.min),
      ("9223372036854775807", Int64.max), ("1e3", 1_000), ("1.50E+2", 150), ("-120e-1", -12), ("0.0", 0),
      ("-0", 0), ("0e999999999999", 0), ("100000000000000000000e-20", 1),
    ] as [(String, Int64)])
  func integers(_ text: String, _ expected: Int64) throws {
    var reader = try JSONReader(text, limit: 100)
    #expect(try reader.integer() == expected)
  }

  @Test(
    "numbers that are not whole or do not fit are refused",
    arguments: [
      "9223372036854775808", "-9223372036854775809", "1.5", "1e-1", "1e19", "1e999999999999999999999",
      "1e-99999",
      "0.1e0",
    ])
  func integersThatDoNotFit(_ text: String) throws {
    var reader = try JSONReader(" " + text, limit: 100)
    #expect(throws: JSONError.outOfRange(at: 1)) { _ = try reader.integer(Int64.self) }
  }

  @Test("a number for an unsigned or a short type")
  func types() throws {
    func read<Value: FixedWidthInteger>(_ text: String, _ type: Value.Type) throws(JSONError) -> Value {
      var reader = try JSONReader(text, limit: 100)
      return try reader.integer(type)
    }
    #expect(try read("18446744073709551615", UInt64.self) == .max)
    #expect(try read("-2147483648", Int32.self) == .min)
    #expect(throws: JSONError.outOfRange(at: 0)) { _ = try read("-1", UInt32.self) }
    #expect(throws: JSONError.outOfRange(at: 0)) { _ = try read("4294967296", UInt32.self) }
    #expect(throws: JSONError.outOfRange(at: 0)) { _ = try read("18446744073709551616", UInt64.self) }
  }

  @Test("every prefix throws, and 10,000 mutations never trap")
  func garbage() throws {
    let text = Array(#"{"a":[1.5e3,true,null,"é\n\u00e9\ud83c\udf88"],"b":{"c":{"d":[[],{}]}},"e":-0}"#.utf8)
    for length in 0..<text.count {
      #expect(throws: JSONError.self) {
        _ = try Self.again(String(decoding: text.prefix(length), as: UTF8.self))
      }
    }
    var random = RandomSource(seed: 8)
    for _ in 0..<10_000 {
      var mutated = text
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        mutated[Int.random(in: 0..<text.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      var reader = try JSONReader(mutated, limit: 1_000)
      do throws(JSONError) { try reader.skipValue() } catch {}
    }
  }
}
