import PalbeUnits
import PalbeWire
import Testing

struct ByteFieldsTests {
  enum Choice: UInt8 {
    case first = 1
    case second = 2
  }

  struct Fields: Equatable {
    var id: UserID
    var flags: [Bool]
    var number: Int64
    var counted: [UInt8]
    var choice: Choice

    init(id: UserID, flags: [Bool], number: Int64, counted: [UInt8], choice: Choice) {
      (self.id, self.flags, self.number) = (id, flags, number)
      (self.counted, self.choice) = (counted, choice)
    }

    init(_ bytes: [UInt8]) throws(WireError) {
      var reader = ByteReader(bytes.span)
      id = try reader.id()
      flags = [try reader.flag(), try reader.flag()]
      number = try reader.int64()
      counted = try reader.counted()
      choice = try reader.choice("choice")
      try reader.finish()
    }

    var bytes: [UInt8] {
      var writer = ByteWriter()
      writer.id(id)
      for flag in flags { writer.flag(flag) }
      writer.int64(number)
      writer.counted(counted)
      writer.uint8(choice.rawValue)
      return writer.bytes
    }
  }

  static let fields = Fields(
    id: UserID(bytes: (1...16).map { UInt8($0) })!, flags: [true, false], number: -2, counted: [7, 8, 9],
    choice: .second)
  static let bytes: [UInt8] =
    (1...16).map { UInt8($0) } + [1, 0] + [255, 255, 255, 255, 255, 255, 255, 254] + [0, 0, 0, 3, 7, 8, 9, 2]

  @Test("fields of records are written and read, and no prefix is taken for them")
  func roundTrip() throws {
    #expect(Self.fields.bytes == Self.bytes)
    #expect(try Fields(Self.bytes) == Self.fields)
    for count in Self.bytes.indices {
      do throws(WireError) {
        _ = try Fields(Array(Self.bytes.prefix(count)))
        Issue.record("\(count) bytes are read")
      } catch {
        guard case .truncated = error else {
          Issue.record("\(count): \(error)")
          continue
        }
      }
    }
  }

  @Test("a flag is 1 or 0, a choice one of those there are, and a count is held against what is left")
  func refused() {
    func error(of index: Int, _ value: UInt8) -> WireError? {
      var bytes = Self.bytes
      bytes[index] = value
      do throws(WireError) { _ = try Fields(bytes) } catch { return error }
      return nil
    }
    #expect(error(of: 16, 2) == .invalid(field: "flag", value: 2))
    #expect(error(of: 33, 3) == .invalid(field: "choice", value: 3))
    #expect(error(of: 26, 0xff) == .truncated(needed: 0xff00_0003, have: 4))
  }
}
