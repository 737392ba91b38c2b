import PalbeUnits
import PalbeWire

/// Where a message is, by its id.
struct PlaceRecord: ChatRecord {
  enum State: UInt8, Sendable {
    /// It has a row.
    case row = 1
    /// The user hid it (S0-71).
    case hidden = 2
    /// Its time was over.
    case expired = 3
  }

  var state: State
  var position: TranscriptPosition

  init(_ state: State, _ position: TranscriptPosition) { (self.state, self.position) = (state, position) }

  init(from reader: inout ByteReader) throws(WireError) {
    state = try reader.choice("state of a message")
    position = try reader.position()
  }

  func encode(into writer: inout ByteWriter) {
    writer.uint8(state.rawValue)
    writer.uint64(position.rawValue)
  }
}

/// The id of a message that is gone.
struct GoneRecord: ChatRecord {
  var id: ClientMessageID

  init(_ id: ClientMessageID) { self.id = id }
  init(from reader: inout ByteReader) throws(WireError) { id = try reader.id() }
  func encode(into writer: inout ByteWriter) { writer.id(id) }
}

/// An action whose message has not come (2.9a, section 3 #20).
struct OrphanRecord: ChatRecord {
  /// How long it waits.
  static let lifetime = TimeDelta.seconds(30 * 86_400)

  var user: UserID
  var seq: Int64
  var deadline: ChatDeadline
  /// The `Envelope` it came in.
  var bytes: [UInt8]

  init(user: UserID, seq: Int64, deadline: ChatDeadline, bytes: [UInt8]) {
    (self.user, self.seq, self.deadline, self.bytes) = (user, seq, deadline, bytes)
  }

  init(from reader: inout ByteReader) throws(WireError) {
    user = try reader.id()
    seq = try reader.int64()
    deadline = try ChatDeadline(from: &reader)
    bytes = try reader.counted()
  }

  func encode(into writer: inout ByteWriter) {
    writer.id(user)
    writer.int64(seq)
    deadline.encode(into: &writer)
    writer.counted(bytes)
  }

  /// What it does; nil when it does not decode.
  var action: MessageAction? {
    guard let envelope = try? Envelope(serialized: bytes.span) else { return nil }
    return MessageAction(envelope.content, by: user, seq: seq)
  }
}

/// What this device made and the server has not taken: a row, or an action on one.
struct PendingRecord: ChatRecord {
  /// The code of what went wrong; nil while it is tried.
  var failure: String?
  /// The user hid the row already.
  var isHidden: Bool
  var bytes: [UInt8]

  init(failure: String?, isHidden: Bool, bytes: [UInt8]) {
    (self.failure, self.isHidden, self.bytes) = (failure, isHidden, bytes)
  }

  init(from reader: inout ByteReader) throws(WireError) {
    failure = try reader.flag() ? try reader.text() : nil
    isHidden = try reader.flag()
    bytes = try reader.counted()
  }

  func encode(into writer: inout ByteWriter) {
    writer.optional(failure) { $0.text($1) }
    writer.flag(isHidden)
    writer.counted(bytes)
  }
}

/// How far one user got (S0-91, S0-97).
struct ReceiptRecord: ChatRecord {
  var delivered: Int64 = 0
  var read: Int64 = 0

  init() {}

  init(from reader: inout ByteReader) throws(WireError) {
    delivered = try reader.int64()
    read = try reader.int64()
  }

  func encode(into writer: inout ByteWriter) {
    writer.int64(delivered)
    writer.int64(read)
  }
}
