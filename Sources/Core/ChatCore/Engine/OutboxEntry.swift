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

  /// The bytes of a file on their way to the server, before the message that names them.
  struct Upload: Equatable {
    /// The shell's name for the bytes.
    var spool: String
    /// They are there, and `plaintext` says where.
    var isReleased = false
  }

  let chat: ChatID
  /// Ascending; within a chat the order of sending.
  let order: UInt64
  let id: ClientMessageID
  var plaintext: [UInt8]
  let wakes: Bool
  /// Nil for all but files.
  var upload: Upload?
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
    upload = try reader.flag() ? Upload(spool: try reader.text(), isReleased: try reader.flag()) : nil
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
    writer.optional(upload) {
      $0.text($1.spool)
      $0.flag($1.isReleased)
    }
  }

  /// Not failed, and not waiting for its bytes: it goes out when its turn comes.
  var isDue: Bool { failure == nil && upload?.isReleased != false }
  /// Its bytes are still to go up.
  var awaitsUpload: Bool { failure == nil && upload?.isReleased == false }

  var key: MLSRecordKey { RecordKey.outbox(chat, order) }
}
