import PalbeProtobuf
import PalbeUnits
import PalbeWire
import Testing

struct ProtobufJSONTests {
  static let golden = """
    {"text":"hé","bytes":"AP8=","flag":true,"signed":-1,"wide":"-9223372036854775808","small":4294967295,\
    "big":"18446744073709551615","real":0.5,"colour":"GREEN","maybe":0,"leaf":{},"leaves":[{"name":"a"},{}],\
    "names":["x",""],"colours":["GREEN",300],"attributes":{"a":"1","b":""},"handles":{"7":{"name":"seven"}},\
    "number":"0"}
    """

  @Test("ProtoJSON: every kind of field, and back")
  func everything() throws {
    #expect(Everything.full.json() == Self.golden)
    #expect(try Everything(json: Self.golden) == Everything.full)
    #expect(try Everything(json: Array(Self.golden.utf8)) == Everything.full)
  }

  @Test("ProtoJSON: zeros are absent, but for a case of a oneof and an optional; or all are there")
  func zeros() throws {
    #expect(Everything().json() == "{}")
    #expect(Everything.with { $0.choice = .leaf(Leaf()) }.json() == #"{"leafChoice":{}}"#)
    #expect(Everything.with { $0.real = -0.0 }.json() == #"{"real":-0.0}"#)
    #expect(
      Everything.with { $0.choice = .leaf(Leaf()) }.json(.twirp) == """
        {"text":"","bytes":"","flag":false,"signed":0,"wide":"0","small":0,"big":"0","real":0.0,\
        "colour":"NO_COLOUR","leaf":null,"leaves":[],"names":[],"colours":[],"attributes":{},"handles":{},\
        "leaf_choice":{"name":""}}
        """)
    let twirp = Everything.full.json(.twirp)
    #expect(try Everything(json: twirp) == Everything.full)
  }

  @Test("ProtoJSON: either spelling of a name is read; null is absent; what is unknown is skipped")
  func names() throws {
    let leaf = Everything.with { $0.choice = .leaf(.with { $0.name = "n" }) }
    #expect(try Everything(json: #"{"leafChoice":{"name":"n"}}"#) == leaf)
    #expect(try Everything(json: #"{"leaf_choice":{"name":"n"}}"#) == leaf)
    for json in [
      #"{"leafchoice":{"name":"n"}}"#, #"{"LeafChoice":{}}"#, #"{"leaf_Choice":{}}"#, #"{"leaf__choice":{}}"#,
      #"{"x":[{"leafChoice":{}},1e400,"\u0000"],"":null}"#, "{}",
      #"{"text":null,"leaf":null,"leaves":null,"attributes":null,"maybe":null,"number":null,"leafChoice":null}"#,
    ] {
      #expect(try Everything(json: json) == Everything(), "\(json)")
    }
  }

  @Test(
    "ProtoJSON: values are read in every form they may have",
    arguments: [
      (#"{"signed":"-1"}"#, .with { $0.signed = -1 }), (#"{"signed":-1.0}"#, .with { $0.signed = -1 }),
      (#"{"wide":-9007199254740993}"#, .with { $0.wide = -9_007_199_254_740_993 }),
      (#"{"big":"1e3"}"#, .with { $0.big = 1_000 }), (#"{"real":"0.25"}"#, .with { $0.real = 0.25 }),
      (#"{"real":"Infinity"}"#, .with { $0.real = .infinity }),
      (#"{"real":"-Infinity"}"#, .with { $0.real = -.infinity }), (#"{"real":1}"#, .with { $0.real = 1 }),
      (#"{"real":3.4028235e38}"#, .with { $0.real = .greatestFiniteMagnitude }),
      (#"{"colour":1}"#, .with { $0.colour = .green }),
      (#"{"colour":-5}"#, .with { $0.colour.rawValue = -5 }),
      (#"{"colour":"PINK"}"#, .with { _ in }),
      (#"{"colours":["PINK","GREEN"]}"#, .with { $0.colours = [.green] }),
      (#"{"bytes":"+/8="}"#, .with { $0.bytes = [0xfb, 0xff] }),
      (#"{"bytes":"-_8"}"#, .with { $0.bytes = [0xfb, 0xff] }),
      (#"{"t\u0065xt":"\u0061"}"#, .with { $0.text = "a" }),
      (#" { "maybe" : 0 } "#, .with { $0.maybe = 0 }),
    ] as [(String, Everything)])
  func forms(_ json: String, _ message: Everything) throws {
    #expect(try Everything(json: json) == message)
  }

  @Test(
    "ProtoJSON: what is not the message is refused",
    arguments: [
      "", "null", "[]", "\"\"", "1", "{}{}", #"{"text":1}"#, #"{"text":{}}"#, #"{"flag":"true"}"#,
      #"{"flag":1}"#,
      #"{"signed":2147483648}"#, #"{"signed":1.5}"#, #"{"signed":""}"#, #"{"signed":" 1"}"#,
      #"{"signed":"1 "}"#,
      #"{"signed":"1x"}"#, #"{"small":-1}"#, #"{"real":1e39}"#, #"{"real":"nan"}"#, #"{"real":"inf"}"#,
      #"{"real":"0x1p3"}"#, #"{"colour":1.5}"#, #"{"colour":2147483648}"#, #"{"bytes":"A"}"#,
      #"{"bytes":"+_=="}"#,
      #"{"leaf":[]}"#, #"{"leaf":"x"}"#, #"{"leaves":{}}"#, #"{"leaves":[null]}"#, #"{"names":["a",null]}"#,
      #"{"names":"a"}"#, #"{"attributes":[]}"#, #"{"attributes":{"a":null}}"#, #"{"handles":{"x":{}}}"#,
      #"{"handles":{"-1":{}}}"#, #"{"handles":{"+1":{}}}"#, #"{"handles":{"7":null}}"#,
    ])
  func refused(_ json: String) {
    #expect(throws: JSONError.self) { _ = try Everything(json: json) }
  }

  @Test(
    "ProtoJSON: no two members for one field, one oneof or one key",
    arguments: [
      #"{"text":"a","text":"a"}"#, #"{"leaf":{},"leaf":null}"#, #"{"leafChoice":{},"leaf_choice":{}}"#,
      #"{"number":1,"leafChoice":{}}"#, #"{"attributes":{"a":"1","a":"2"}}"#,
      #"{"handles":{"7":{},"07":{}}}"#,
      #"{"leaf":{"name":"a","name":"a"}}"#,
    ])
  func duplicates(_ json: String) {
    #expect {
      _ = try Everything(json: json)
    } throws: { error in
      if case .duplicate? = error as? JSONError { true } else { false }
    }
    // The same field in two messages is no duplicate.
    #expect(throws: Never.self) {
      _ = try Everything(json: #"{"leaf":{"name":"a"},"leaves":[{"name":"b"},{"name":"c"}]}"#)
    }
  }

  @Test("size, depth and the number of messages and map entries have limits")
  func limits() throws {
    var chain = Chain()
    for _ in 0..<31 { chain = .with { $0.next = [chain] } }
    #expect(try Chain(json: chain.json()) == chain)
    chain = .with { $0.next = [.with { $0.next = [chain] }] }
    #expect(throws: JSONError.tooDeep(limit: 64)) { _ = try Chain(json: chain.json()) }

    let many = #"{"leaves":["# + [String](repeating: "{}", count: 100).joined(separator: ",") + "]}"
    #expect(try Everything(json: many, limits: ProtobufLimits(messages: 101)).leaves.count == 100)
    #expect(throws: JSONError.tooMany(limit: 100)) {
      _ = try Everything(json: many, limits: ProtobufLimits(messages: 100))
    }
    let entries = #"{"attributes":{"a":"","b":"","c":""}}"#
    #expect(throws: JSONError.tooMany(limit: 3)) {
      _ = try Everything(json: entries, limits: ProtobufLimits(messages: 3))
    }
    #expect(throws: JSONError.tooLong(limit: 36)) {
      _ = try Everything(json: entries, limits: ProtobufLimits(text: 36))
    }
  }

  @Test("a message can be a part of a longer text, both ways")
  func nested() throws {
    var reader = try JSONReader(#"[{"text":"a"},{"text":"b"}]"#, limit: 100)
    var texts: [String] = []
    try reader.enterArray()
    while try reader.nextElement() { texts.append(try Everything(json: &reader).text) }
    try reader.finish()
    #expect(texts == ["a", "b"])
    var writer = JSONWriter()
    writer.beginArray()
    for text in texts { Everything.with { $0.text = text }.write(json: &writer) }
    writer.endArray()
    #expect(writer.text == #"[{"text":"a"},{"text":"b"}]"#)
  }

  @Test("every prefix of a text throws; mutations never trap and round-trip when they are a message")
  func garbage() {
    let text = Array(Self.golden.utf8)
    for length in 0..<text.count {
      #expect(throws: JSONError.self) { _ = try Everything(json: Array(text.prefix(length))) }
    }
    var random = RandomSource(seed: 5)
    for _ in 0..<5_000 {
      var mutated = text
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        mutated[Int.random(in: 0..<mutated.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      guard let message = try? Everything(json: mutated) else { continue }
      #expect((try? Everything(json: message.json()))?.serialized() == message.serialized())
    }
  }

  @Test("an enumeration's names")
  func enumeration() {
    #expect(Colour.green.name == "GREEN")
    #expect(Colour(rawValue: 300).name == nil)
    #expect(Colour(name: "GREEN") == .green)
    #expect(Colour(name: "green") == nil)
  }
}

struct ProtobufTimestampTests {
  @Test(
    "RFC 3339: a moment is a text, and back",
    arguments: [
      (0, 0, "1970-01-01T00:00:00Z"), (-1, 999_999_999, "1969-12-31T23:59:59.999999999Z"),
      (951_782_400, 500_000_000, "2000-02-29T00:00:00.500Z"),
      (1_767_323_045, 1_000, "2026-01-02T03:04:05.000001Z"),
      (4_107_542_399, 0, "2100-02-28T23:59:59Z"), (-62_135_596_800, 0, "0001-01-01T00:00:00Z"),
      (253_402_300_799, 1, "9999-12-31T23:59:59.000000001Z"), (-11_676_096_001, 0, "1599-12-31T23:59:59Z"),
    ] as [(Int64, Int32, String)])
  func text(_ seconds: Int64, _ nanos: Int32, _ text: String) throws {
    let moment = ProtobufTimestamp.with { ($0.seconds, $0.nanos) = (seconds, nanos) }
    #expect(moment.json() == "\"\(text)\"")
    #expect(try ProtobufTimestamp(json: "\"\(text)\"") == moment)
  }

  @Test("RFC 3339: offsets and fractions of any length")
  func otherForms() throws {
    let half = ProtobufTimestamp.with { ($0.seconds, $0.nanos) = (1_767_323_045, 500_000_000) }
    for text in [
      "2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.50000000Z", "2026-01-02T04:34:05.5+01:30",
      "2026-01-01T22:04:05.5-05:00",
    ] {
      #expect(try ProtobufTimestamp(json: "\"\(text)\"") == half)
    }
  }

  @Test(
    "RFC 3339: what is no moment is refused",
    arguments: [
      "", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-1-02T03:04:05Z",
      "2026-02-29T00:00:00Z",
      "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-02T24:00:00Z",
      "2026-01-02T03:60:05Z", "2026-01-02T03:04:60Z", "2026-01-02T03:04:05.Z",
      "2026-01-02T03:04:05.0123456789Z",
      "2026-01-02T03:04:05z", "2026-01-02T03:04:05Zx", "2026-01-02T03:04:05+1:00", "0000-01-01T00:00:00Z",
      "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "+026-01-02T03:04:05Z",
    ])
  func refused(_ text: String) {
    #expect(throws: JSONError.self) { _ = try ProtobufTimestamp(json: "\"\(text)\"") }
  }

  @Test("a moment that has no text is written as its members")
  func outOfRange() {
    #expect(ProtobufTimestamp.with { $0.seconds = .max }.json() == #"{"seconds":"9223372036854775807"}"#)
  }
}
