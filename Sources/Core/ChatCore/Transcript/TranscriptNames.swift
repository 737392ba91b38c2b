import PalbeMLS
import PalbeUnits
import PalbeWire

/// The names of a transcript's records, behind the engine's byte for records of the application. They begin
/// with 'T', which nobody else's do.
///
///     no group    T chat              the summary: one row a chat is all that the list reads
///     chat        T 1 position        a confirmed row, ascending
///                 T 2 id              where the message is, or that it is gone
///                 T 3 number          a pending row or action, in the order they were made
///                 T 4 number target seq   an action whose message has not come
///                 T 5 deadline id     a message's deadline; the name alone says all
///                 T 6 position        a message whose time begins when it is read
///                 T 7 number          a message that is gone, the oldest forgotten first
///                 T 8 user            how far a user got
///                 T 9 user            a user who applied the timer
struct TranscriptNames: Sendable {
  private static let space = UInt8(ascii: "T")
  /// The chat's records are those of this group.
  let chat: [UInt8]

  static let summaries = MLSRecordKey.application([space], in: nil)

  var summary: MLSRecordKey { .application([Self.space] + chat, in: nil) }
  /// Everything but the summary.
  var all: MLSRecordKey { .application([Self.space], in: chat) }

  var rows: MLSRecordKey { key(1) }
  var places: MLSRecordKey { key(2) }
  var pending: MLSRecordKey { key(3) }
  var orphans: MLSRecordKey { key(4) }
  var timers: MLSRecordKey { key(5) }
  var readers: MLSRecordKey { key(6) }
  var gone: MLSRecordKey { key(7) }
  var receipts: MLSRecordKey { key(8) }
  var acknowledgements: MLSRecordKey { key(9) }

  func row(_ position: TranscriptPosition) -> MLSRecordKey { key(1) { $0.uint64(position.rawValue) } }
  /// The rows of the 256 sequence numbers from 256 times `number` on.
  func block(_ number: Int64) -> MLSRecordKey { key(1) { $0.uint(UInt64(number), bytes: 6) } }
  /// The rows that share a sequence number.
  func parts(of seq: Int64) -> MLSRecordKey { key(1) { $0.uint(UInt64(seq), bytes: 7) } }
  func place(_ id: ClientMessageID) -> MLSRecordKey { key(2) { $0.id(id) } }
  func pending(_ number: UInt64) -> MLSRecordKey { key(3) { $0.uint64(number) } }
  func orphan(_ orphan: OrphanList.Entry) -> MLSRecordKey {
    key(4) {
      $0.uint64(orphan.number)
      $0.id(orphan.target)
      $0.int64(orphan.seq)
    }
  }
  func timer(_ timer: ExpiryTimers.Timer) -> MLSRecordKey {
    key(5) {
      timer.deadline.encode(into: &$0)
      $0.id(timer.id)
    }
  }
  func reader(_ position: TranscriptPosition) -> MLSRecordKey { key(6) { $0.uint64(position.rawValue) } }
  func gone(_ number: UInt64) -> MLSRecordKey { key(7) { $0.uint64(number) } }
  func receipt(_ user: UserID) -> MLSRecordKey { key(8) { $0.id(user) } }
  func acknowledgement(_ user: UserID) -> MLSRecordKey { key(9) { $0.id(user) } }

  /// What follows the kind in the name of a record.
  static func fields(of key: MLSRecordKey) -> [UInt8] { Array(key.name.dropFirst(3)) }
  /// The eight bytes that follow it.
  static func number(of key: MLSRecordKey) -> UInt64 {
    key.name.dropFirst(3).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private func key(_ kind: UInt8, _ more: (inout ByteWriter) -> Void = { _ in }) -> MLSRecordKey {
    var name = ByteWriter(capacity: 48)
    name.uint8(Self.space)
    name.uint8(kind)
    more(&name)
    return .application(name.bytes, in: chat)
  }
}
