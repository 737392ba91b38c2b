import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// Where a chat is between this device and the server.
package enum ChatStanding: UInt8, Sendable {
  /// Only here (S0-12).
  case draft = 1
  /// The server was asked to found it.
  case founding = 2
  /// The server has one already, of which a welcome must come.
  case adopting = 3
  case active = 4
  case left = 5
  case removed = 6
  /// Somebody's commit could not be followed: what the others say is not heard here until the group is founded anew.
  case diverged = 7
  /// It is being founded anew by somebody; a welcome must come.
  case resetting = 8

  /// Somebody's answer or welcome must come before there is a group here.
  var awaitsGroup: Bool {
    switch self {
    case .founding, .adopting, .resetting: true
    case .draft, .active, .left, .removed, .diverged: false
    }
  }

  /// What it is to the user (2.3).
  package var state: ChatState {
    switch self {
    case .draft, .founding: .draft
    case .adopting, .active, .diverged, .resetting: .active
    case .left: .left
    case .removed: .removed
    }
  }
}

/// A chat as the engine must know it before it reads anything else of it; the list has `ChatSummary`.
package struct ChatHead: ChatRecord {
  package let id: ChatID
  package internal(set) var standing = ChatStanding.draft
  /// The server's name of it; stays when the group is founded anew.
  package internal(set) var group: GroupID?
  /// MLS' name of it.
  package internal(set) var groupID: [UInt8]?
  package internal(set) var generation: Int64 = 0
  package internal(set) var epoch: UInt64 = 0
  /// Members and roles; of a draft, those to be.
  package internal(set) var shape: GroupShape

  /// What is added to the server's sequence numbers in the transcript. A direct chat that begins again has a new log there,
  /// which counts from one; here what was said before stays before it.
  package internal(set) var seqBase: Int64 = 0

  /// The last row of the log that came by the queue; in a record of its own (`Progress`), for it changes with every row.
  var processedSeq: Int64 = 0
  /// Up to where the user has read, and up to where the server knows; as the transcript counts.
  var readSeq: Int64 = 0
  var toldReadSeq: Int64 = 0
  /// Users who left and still have leaves; users whose devices changed at some time.
  var departed: Set<UserID> = []
  var changed: Set<UserID> = []
  /// The server's view is wanted: who joined does not know the name yet.
  package internal(set) var wantsView = false

  init(id: ChatID, shape: GroupShape) {
    self.id = id
    self.shape = shape
  }

  /// The chat lives in this group from now on.
  mutating func enter(_ groupID: [UInt8], _ snapshot: GroupSnapshot) {
    self.groupID = groupID
    standing = .active
    epoch = snapshot.epoch
    shape = snapshot.shape
  }

  package init(from reader: inout ByteReader) throws(WireError) {
    id = try reader.id()
    standing = try reader.choice("standing")
    group = try reader.flag() ? try reader.id() : nil
    groupID = try reader.flag() ? try reader.counted() : nil
    generation = try reader.int64()
    epoch = try reader.uint64()
    guard let shape = GroupShape(decoding: try reader.counted()) else {
      throw .invalid(field: "shape", value: 0)
    }
    self.shape = shape
    seqBase = try reader.int64()
    readSeq = try reader.int64()
    toldReadSeq = try reader.int64()
    departed = Set(try reader.users())
    changed = Set(try reader.users())
    wantsView = try reader.flag()
  }

  package func encode(into writer: inout ByteWriter) {
    writer.id(id)
    writer.uint8(standing.rawValue)
    writer.optional(group) { $0.id($1) }
    writer.optional(groupID) { $0.counted($1) }
    writer.int64(generation)
    writer.uint64(epoch)
    writer.counted(shape.encoded)
    writer.int64(seqBase)
    writer.int64(readSeq)
    writer.int64(toldReadSeq)
    writer.users(departed.sorted())
    writer.users(changed.sorted())
    writer.flag(wantsView)
  }
}

/// How far a chat's log was carried out.
struct Progress: ChatRecord {
  let seq: Int64

  init(seq: Int64) { self.seq = seq }
  init(from reader: inout ByteReader) throws(WireError) { seq = try reader.int64() }
  func encode(into writer: inout ByteWriter) { writer.int64(seq) }
}
