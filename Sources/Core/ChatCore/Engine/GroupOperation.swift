import PalbeMLS
import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// Something to be done to a group, kept until it is done: one at a time a group, in the order they were asked for.
struct GroupOperation: ChatRecord {
  enum Intent: Equatable {
    case found
    /// Founds the group anew.
    case reset
    case add(UserID)
    case remove(UserID)
    case setRole(UserID, ChatRole)
    /// Tells the server a role that the group has already.
    case tellRole(UserID, ChatRole)
    /// Adds the devices that members got, removes those that are gone, and who left.
    case tidy
    case leave
    /// Comes back by a commit from outside: nobody sent a welcome.
    case rejoin

    /// Whether it seals the name of a group that is there.
    var sealsName: Bool {
      switch self {
      case .add, .remove, .setRole, .tidy, .reset: true
      case .found, .tellRole, .leave, .rejoin: false
      }
    }
  }

  /// A commit as it may lie with the server. Until there is an answer the same bytes go out under the same key.
  struct Prepared: Equatable {
    /// The server keeps an answer under it (Idempotency-Key).
    var key: [UInt8]
    var groupID: [UInt8]
    var commit: ServerCommit?
    /// Of epoch 0, for a founder alone.
    var groupInfo: [UInt8] = []
    /// Which versions of name and timer it sealed.
    var sealedName: Int64 = -1
    var sealedTimer: Int64 = -1
  }

  let chat: ChatID
  let order: UInt64
  let intent: Intent
  /// How often it was made anew because others were first.
  var attempts: UInt8 = 0
  var prepared: Prepared?

  init(chat: ChatID, order: UInt64, intent: Intent) {
    (self.chat, self.order, self.intent) = (chat, order, intent)
  }

  var key: MLSRecordKey { RecordKey.operation(chat, order) }

  init(from reader: inout ByteReader) throws(WireError) {
    chat = try reader.id()
    order = try reader.uint64()
    intent = try Intent(from: &reader)
    attempts = try reader.uint8()
    prepared = try reader.flag() ? try Prepared(from: &reader) : nil
  }

  func encode(into writer: inout ByteWriter) {
    writer.id(chat)
    writer.uint64(order)
    intent.encode(into: &writer)
    writer.uint8(attempts)
    writer.optional(prepared) { $1.encode(into: &$0) }
  }
}

extension GroupOperation.Intent {
  init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .found
    case 2: self = .reset
    case 3: self = .add(try reader.id())
    case 4: self = .remove(try reader.id())
    case 5: self = .setRole(try reader.id(), try reader.choice("role"))
    case 6: self = .tellRole(try reader.id(), try reader.choice("role"))
    case 7: self = .tidy
    case 8: self = .leave
    case 9: self = .rejoin
    case let number: throw .invalid(field: "intent", value: UInt64(number))
    }
  }

  func encode(into writer: inout ByteWriter) {
    switch self {
    case .found: writer.uint8(1)
    case .reset: writer.uint8(2)
    case .add(let user):
      writer.uint8(3)
      writer.id(user)
    case .remove(let user):
      writer.uint8(4)
      writer.id(user)
    case .setRole(let user, let role):
      writer.uint8(5)
      writer.id(user)
      writer.uint8(role.rawValue)
    case .tellRole(let user, let role):
      writer.uint8(6)
      writer.id(user)
      writer.uint8(role.rawValue)
    case .tidy: writer.uint8(7)
    case .leave: writer.uint8(8)
    case .rejoin: writer.uint8(9)
    }
  }
}

extension GroupOperation.Prepared {
  init(from reader: inout ByteReader) throws(WireError) {
    key = try reader.counted()
    groupID = try reader.counted()
    commit = try reader.flag() ? try ServerCommit(from: &reader) : nil
    groupInfo = try reader.counted()
    sealedName = try reader.int64()
    sealedTimer = try reader.int64()
  }

  func encode(into writer: inout ByteWriter) {
    writer.counted(key)
    writer.counted(groupID)
    writer.optional(commit) { $1.encode(into: &$0) }
    writer.counted(groupInfo)
    writer.int64(sealedName)
    writer.int64(sealedTimer)
  }
}

extension ServerCommit {
  init(from reader: inout ByteReader) throws(WireError) {
    epoch = try reader.uint64()
    commit = try reader.counted()
    welcome = try reader.flag() ? try reader.counted() : nil
    groupInfo = try reader.counted()
    sealedName = try reader.flag() ? try reader.counted() : nil
    for _ in 0..<(try reader.listCount()) { delta.addedUsers.append(try reader.id()) }
    for _ in 0..<(try reader.listCount()) { delta.removedUsers.append(try reader.id()) }
    for _ in 0..<(try reader.listCount()) {
      delta.addedLeaves.append(ServerLeaf(device: try reader.id(), index: try reader.uint32()))
    }
    for _ in 0..<(try reader.listCount()) { delta.removedLeaves.append(try reader.id()) }
    proposalsUpTo = try reader.flag() ? try reader.int64() : nil
  }

  func encode(into writer: inout ByteWriter) {
    writer.uint64(epoch)
    writer.counted(commit)
    writer.optional(welcome) { $0.counted($1) }
    writer.counted(groupInfo)
    writer.optional(sealedName) { $0.counted($1) }
    writer.list(delta.addedUsers) { $0.id($1) }
    writer.list(delta.removedUsers) { $0.id($1) }
    writer.list(delta.addedLeaves) {
      $0.id($1.device)
      $0.uint32($1.index)
    }
    writer.list(delta.removedLeaves) { $0.id($1) }
    writer.optional(proposalsUpTo) { $0.int64($1) }
  }
}
