import PalbeProtobuf
import PalbeUnits
import PalbeWire
import Testing

struct Colour: ProtobufEnum {
  var rawValue: Int32
  static let green = Colour(rawValue: 1)
  static let names: KeyValuePairs<Self, String> = [.init(rawValue: 0): "NO_COLOUR", .green: "GREEN"]
}

struct Leaf: ProtobufMessage {
  var name = ""
  var unknownFields: [UInt8] = []
  init() {}
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "name", &name)
    try f.unknown(&unknownFields)
  }
}

/// Nests for ever, to reach the depth limit.
struct Chain: ProtobufMessage {
  var next: [Chain] = []
  init() {}
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) { try f.field(1, "next", &next) }
}

struct Everything: ProtobufMessage {
  enum Choice: Equatable, Sendable {
    case number(Int64)
    case leaf(Leaf)
    var number: Int64? { if case .number(let it) = self { it } else { nil } }
    var leaf: Leaf? { if case .leaf(let it) = self { it } else { nil } }
  }
  var text = ""
  var bytes: [UInt8] = []
  var flag = false
  var signed: Int32 = 0
  var wide: Int64 = 0
  var small: UInt32 = 0
  var big: UInt64 = 0
  var real: Float = 0
  var colour = Colour.absent
  var maybe: UInt32?
  var leaf: Leaf?
  var leaves: [Leaf] = []
  var names: [String] = []
  var colours: [Colour] = []
  var attributes: [String: String] = [:]
  var handles: [UInt32: Leaf] = [:]
  var choice: Choice?
  init() {}
  mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
    try f.field(1, "text", &text)
    try f.field(2, "bytes", &bytes)
    try f.field(3, "flag", &flag)
    try f.field(4, "signed", &signed)
    try f.field(5, "wide", &wide)
    try f.field(6, "small", &small)
    try f.field(7, "big", &big)
    try f.field(8, "real", &real)
    try f.field(9, "colour", &colour)
    try f.field(10, "maybe", &maybe)
    try f.field(11, "leaf", &leaf)
    try f.field(12, "leaves", &leaves)
    try f.field(13, "names", &names)
    try f.field(14, "colours", &colours)
    try f.field(15, "attributes", &attributes)
    try f.field(16, "handles", &handles)
    try f.oneof(17, "number", &choice, Choice.number) { $0?.number }
    try f.oneof(18, "leaf_choice", &choice, Choice.leaf) { $0?.leaf }
  }

  static let full = Everything.with {
    $0.text = "hé"
    $0.bytes = [0, 255]
    $0.flag = true
    $0.signed = -1
    $0.wide = .min
    $0.small = .max
    $0.big = .max
    $0.real = 0.5
    $0.colour = .green
    $0.maybe = 0
    $0.leaf = Leaf()
    $0.leaves = [.with { $0.name = "a" }, Leaf()]
    $0.names = ["x", ""]
    $0.colours = [.green, Colour(rawValue: 300)]
    $0.attributes = ["b": "", "a": "1"]
    $0.handles = [7: .with { $0.name = "seven" }]
    $0.choice = .number(0)
  }
}

struct ProtobufTests {
  /// The bytes were written by hand from the format's description.
  static let golden =
    "0a0368c3a9" + "120200ff" + "1801" + "20ffffffffffffffffff01" + "2880808080808080808001" + "30ffffffff0f"
    + "38ffffffffffffffffff01" + "450000003f" + "4801" + "5000" + "5a00" + "62030a0161" + "6200" + "6a0178"
    + "6a00"
    + "720301ac02" + "7a060a0161120131" + "7a050a01621200" + "82010b0807" + "12070a05736576656e" + "880100"

  @Test("protobuf.dev Encoding: every kind of field, byte for byte, and back")
  func everything() throws {
    #expect(Hex.encode(Everything.full.serialized()) == Self.golden)
    #expect(try Everything(serialized: Everything.full.serialized()) == Everything.full)
  }

  @Test("zero values are absent (proto3), a case of a oneof and an optional are not")
  func absence() throws {
    #expect(Everything().serialized() == [])
    #expect(Everything.with { $0.choice = .leaf(Leaf()) }.serialized() == [0x92, 0x01, 0x00])
    #expect(Everything.with { $0.maybe = 0 }.serialized() == [0x50, 0x00])
  }

  @Test("every prefix decodes or throws, and never traps")
  func truncation() {
    let bytes = Everything.full.serialized()
    var failed = 0
    for length in 0..<bytes.count {
      do throws(ProtobufError) { _ = try Everything(serialized: Array(bytes.prefix(length))) } catch {
        failed += 1
      }
    }
    #expect(failed > bytes.count / 2)
  }

  @Test("repeated numbers are read packed and one by one")
  func packed() throws {
    let packed = try Everything(serialized: [0x72, 0x02, 0x01, 0x02])
    let loose = try Everything(serialized: [0x70, 0x01, 0x70, 0x02])
    #expect(packed == loose)
    #expect(packed.colours.map(\.rawValue) == [1, 2])
  }

  @Test("the last scalar wins; a message that occurs twice is merged")
  func repeatedSingular() throws {
    let bytes: [UInt8] = [0x0a, 1, 0x61, 0x0a, 1, 0x62, 0x5a, 3, 0x0a, 1, 0x63, 0x5a, 0]
    let message = try Everything(serialized: bytes)
    #expect(message.text == "b")
    #expect(message.leaf?.name == "c")
  }

  @Test("unknown fields are skipped, or kept in order where the message keeps them")
  func unknown() throws {
    let unknown: [UInt8] =
      [0x98, 0x06, 0x96, 0x01] + [0x9a, 0x06, 0x01, 0xff] + [0x9d, 0x06, 1, 2, 3, 4]
      + [0x99, 0x06, 1, 2, 3, 4, 5, 6, 7, 8]
    #expect(try Everything(serialized: [0x18, 1] + unknown) == .with { $0.flag = true })
    let leaf = try Leaf(serialized: unknown + [0x0a, 1, 0x61])
    #expect(leaf.name == "a")
    #expect(leaf.serialized() == [0x0a, 1, 0x61] + unknown)
  }

  @Test(
    "malformed bytes are typed errors",
    arguments: [
      ("0a", ProtobufError.truncated(needed: 1, have: 0)), ("0a05aa", .truncated(needed: 5, have: 1)),
      ("0affffffffffffffffff01", .truncated(needed: .max, have: 0)), ("00", .fieldNumber),
      ("8080808010", .fieldNumber),
      ("20ffffffffffffffffff02", .varintTooLong), ("20ffffffffffffffffffff01", .varintTooLong),
      ("0a01ff", .invalidUTF8(field: 1)),
      ("0b", .wireType(field: 1, got: 3)), ("0c", .wireType(field: 1, got: 4)),
      ("0e", .wireType(field: 1, got: 6)),
      ("0f", .wireType(field: 1, got: 7)), ("0801", .wireType(field: 1, got: 0)),
      ("1a00", .wireType(field: 3, got: 2)),
      ("450000", .truncated(needed: 4, have: 2)), ("7201ff", .truncated(needed: 1, have: 0)),
      ("75010000ff", .wireType(field: 14, got: 5)),
    ])
  func malformed(_ hex: String, _ error: ProtobufError) throws {
    let bytes = try #require(Hex.decode(hex))
    #expect(throws: error) { _ = try Everything(serialized: bytes) }
  }

  @Test("nesting and the number of nested messages are limited")
  func limits() throws {
    var chain = Chain()
    for _ in 0..<32 { chain = .with { $0.next = [chain] } }
    #expect(try Chain(serialized: chain.serialized()) == chain)
    chain = .with { $0.next = [chain] }
    #expect(throws: ProtobufError.tooDeep(limit: 32)) { _ = try Chain(serialized: chain.serialized()) }

    let many = [[UInt8]](repeating: [0x62, 0], count: 100).flatMap { $0 }
    #expect(try Everything(serialized: many, limits: ProtobufLimits(messages: 100)).leaves.count == 100)
    #expect(throws: ProtobufError.tooManyMessages(limit: 99)) {
      _ = try Everything(serialized: many, limits: ProtobufLimits(messages: 99))
    }
  }

  @Test("a long nested message gets its length in front")
  func longNested() throws {
    let message = Everything.with { $0.leaf = .with { $0.name = String(repeating: "n", count: 20_000) } }
    #expect(try Everything(serialized: message.serialized()) == message)
    #expect(message.serialized().count == 20_000 + 1 + 3 + 1 + 3)
  }

  @Test("10,000 mutations of a message never trap")
  func mutations() {
    var random = RandomSource(seed: 2)
    let bytes = Everything.full.serialized()
    for _ in 0..<10_000 {
      var mutated = bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        mutated[Int.random(in: 0..<mutated.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if let message = try? Everything(serialized: mutated) {
        #expect((try? Everything(serialized: message.serialized()))?.serialized() == message.serialized())
      }
    }
  }
}
