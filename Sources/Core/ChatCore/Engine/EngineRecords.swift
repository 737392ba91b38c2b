import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// The engine's own records, all of the client's (group nil), so that opening reads one row a chat and what waits:
///
///     1              the device              2 chat          the chat's head
///     3 chat order   a message to be sent    4 chat order    something to be done to the group
///     5 chat epoch   what is kept of an epoch that ended
///     6 chat         how far the chat's log was carried out
///
/// Their schema is that of `ChatRecord`.
enum RecordKey {
  static let device = MLSRecordKey.application([1], in: nil)
  static let chats = MLSRecordKey.application([2], in: nil)
  static let outbox = MLSRecordKey.application([3], in: nil)
  static let operations = MLSRecordKey.application([4], in: nil)
  static let progress = MLSRecordKey.application([6], in: nil)
  static let secrets = MLSRecordKey.application([5], in: nil)

  private static func key(_ kind: UInt8, _ chat: ChatID, _ number: UInt64) -> MLSRecordKey {
    var name = ByteWriter(capacity: 25)
    name.uint8(kind)
    name.append(chat.bytes)
    name.uint64(number)
    return .application(name.bytes, in: nil)
  }

  static func chat(_ id: ChatID) -> MLSRecordKey { .application([2] + id.bytes, in: nil) }
  static func progress(_ id: ChatID) -> MLSRecordKey { .application([6] + id.bytes, in: nil) }
  static func outbox(_ chat: ChatID, _ order: UInt64) -> MLSRecordKey { key(3, chat, order) }
  static func operation(_ chat: ChatID, _ order: UInt64) -> MLSRecordKey { key(4, chat, order) }
  static func secrets(_ chat: ChatID, _ epoch: UInt64) -> MLSRecordKey { key(5, chat, epoch) }
}

extension ByteWriter {
  /// A list behind its count.
  mutating func list<Value>(_ values: [Value], _ body: (inout ByteWriter, Value) -> Void) {
    uint32(UInt32(values.count))
    for value in values { body(&self, value) }
  }
}

extension ByteReader {
  /// A list's count; each element takes a byte at least, so memory is bounded by the record.
  @_lifetime(self: copy self)
  mutating func listCount() throws(WireError) -> Int {
    let count = Int(try uint32())
    guard count <= remaining else { throw .truncated(needed: count, have: remaining) }
    return count
  }
}
