import PalbeMLS
import PalbeUnits
import PalbeWire

/// A message that the server has not answered for.
struct OutboxEntry: ChatRecord {
  /// As it is encrypted and as it may lie with the server: the same bytes go out again until there is an answer.
  struct Sealed: Equatable {
    var epoch: UInt64
    var blob: [UInt8]
  }

  let chat: ChatID
  /// Ascending; within a chat the order of sending.
  let order: UInt64
  let id: ClientMessageID
  let plaintext: [UInt8]
  let wakes: Bool
  var sealed: Sealed?
  /// With which code it failed; it waits to be tried again or given up.
  var failure: String?

  init(chat: ChatID, order: UInt64, id: ClientMessageID, plaintext: [UInt8], wakes: Bool) {
    (self.chat, self.order, self.id) = (chat, order, id)
    (self.plaintext, self.wakes) = (plaintext, wakes)
  }

  init(from reader: inout ByteReader) throws(WireError) {
    chat = try reader.id()
    order = try reader.uint64()
    id = try reader.id()
    plaintext = try reader.counted()
    wakes = try reader.flag()
    if try reader.flag() { sealed = Sealed(epoch: try reader.uint64(), blob: try reader.counted()) }
    failure = try reader.flag() ? try reader.text() : nil
  }

  func encode(into writer: inout ByteWriter) {
    writer.id(chat)
    writer.uint64(order)
    writer.id(id)
    writer.counted(plaintext)
    writer.flag(wakes)
    writer.optional(sealed) {
      $0.uint64($1.epoch)
      $0.counted($1.blob)
    }
    writer.optional(failure) { $0.text($1) }
  }

  var key: MLSRecordKey { RecordKey.outbox(chat, order) }
}
