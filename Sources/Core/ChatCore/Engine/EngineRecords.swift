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
  /// What a record is: the first byte of its name.
  private enum Kind: UInt8 {
    case device = 1
    case chat = 2
    case outbox = 3
    case operation = 4
    case secrets = 5
    case progress = 6
  }

  private static func key(_ kind: Kind, _ rest: [UInt8] = []) -> MLSRecordKey {
    .application([kind.rawValue] + rest, in: nil)
  }

  private static func key(_ kind: Kind, _ chat: ChatID, _ number: UInt64) -> MLSRecordKey {
    var rest = ByteWriter(capacity: 24)
    rest.append(chat.bytes)
    rest.uint64(number)
    return key(kind, rest.bytes)
  }

  static let device = key(.device)
  static let chats = key(.chat)
  static let outbox = key(.outbox)
  static let operations = key(.operation)
  static let secrets = key(.secrets)
  static let progress = key(.progress)

  static func chat(_ id: ChatID) -> MLSRecordKey { key(.chat, id.bytes) }
  static func outbox(_ chat: ChatID, _ order: UInt64) -> MLSRecordKey { key(.outbox, chat, order) }
  static func operation(_ chat: ChatID, _ order: UInt64) -> MLSRecordKey { key(.operation, chat, order) }
  /// Of all its epochs.
  static func secrets(_ chat: ChatID) -> MLSRecordKey { key(.secrets, chat.bytes) }
  static func secrets(_ chat: ChatID, _ epoch: UInt64) -> MLSRecordKey { key(.secrets, chat, epoch) }
  static func progress(_ id: ChatID) -> MLSRecordKey { key(.progress, id.bytes) }
}

extension MLSTransaction {
  /// Erases all records of a group.
  mutating func eraseGroup(_ id: [UInt8]) { eraseAll(under: MLSRecordKey(group: id, name: [])) }
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
