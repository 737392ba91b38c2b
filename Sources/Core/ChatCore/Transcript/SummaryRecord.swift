import PalbeUnits
import PalbeWire

/// A summary as it is stored.
struct SummaryRecord: ChatRecord {
  var summary: ChatSummary

  init(_ summary: ChatSummary) { self.summary = summary }

  init(from reader: inout ByteReader) throws(WireError) {
    summary = ChatSummary(
      chat: try reader.counted(), kind: try reader.choice("kind of a chat"),
      state: try reader.choice("state of a chat"), createdAt: WallTime(microseconds: try reader.int64()))
    summary.group = try reader.flag() ? try reader.id() : nil
    summary.peer = try reader.flag() ? try reader.id() : nil
    summary.notifyScope = try reader.flag() ? try reader.choice("notify scope") : nil
    summary.consent = try reader.choice("consent")
    summary.serverUnread = try reader.flag() ? try reader.serverUnread() : nil
    summary.profile = try reader.profile()
    summary.lastMessage = try reader.flag() ? try MessagePreview(from: &reader) : nil
    summary.lastActivity = WallTime(microseconds: try reader.int64())
    summary.lastSeq = try reader.int64()
    summary.readSeq = try reader.int64()
    summary.unreadCount = try reader.count()
    summary.deliveredUpTo = try reader.int64()
    summary.readUpTo = try reader.int64()
    for _ in 0..<(try reader.uint8()) { summary.deadlines.append(try ChatDeadline(from: &reader)) }
    summary.counters = try FoldCounters(from: &reader)
    let top = TranscriptPosition.maximumSeq
    guard (0...top).contains(summary.lastSeq), (0...top).contains(summary.readSeq) else {
      throw .invalid(field: "sequence number", value: UInt64(bitPattern: summary.lastSeq))
    }
  }

  func encode(into writer: inout ByteWriter) {
    writer.counted(summary.chat)
    writer.uint8(summary.kind.rawValue)
    writer.uint8(summary.state.rawValue)
    writer.int64(summary.createdAt.microseconds)
    writer.optional(summary.group) { $0.id($1) }
    writer.optional(summary.peer) { $0.id($1) }
    writer.optional(summary.notifyScope) { $0.uint8($1.rawValue) }
    writer.uint8(summary.consent.rawValue)
    writer.optional(summary.serverUnread) { $0.serverUnread($1) }
    writer.profile(summary.profile)
    writer.optional(summary.lastMessage) { $1.encode(into: &$0) }
    writer.int64(summary.lastActivity.microseconds)
    writer.int64(summary.lastSeq)
    writer.int64(summary.readSeq)
    writer.uint64(UInt64(clamping: summary.unreadCount))
    writer.int64(summary.deliveredUpTo)
    writer.int64(summary.readUpTo)
    writer.uint8(UInt8(clamping: summary.deadlines.count))
    for deadline in summary.deadlines { deadline.encode(into: &writer) }
    summary.counters.encode(into: &writer)
  }
}

extension MessagePreview {
  init(from reader: inout ByteReader) throws(WireError) {
    id = try reader.id()
    position = try reader.flag() ? try reader.position() : nil
    sender = try reader.id()
    kind = try reader.text()
    text = try reader.flag() ? try reader.text() : nil
    isDeleted = try reader.flag()
    sentAt = WallTime(microseconds: try reader.int64())
    switch try reader.uint8() {
    case 1: delivery = .pending
    case 2: delivery = .sent
    case 3: delivery = .failed(code: try reader.text())
    case let value: throw .invalid(field: "delivery", value: UInt64(value))
    }
  }

  func encode(into writer: inout ByteWriter) {
    writer.id(id)
    writer.optional(position) { $0.uint64($1.rawValue) }
    writer.id(sender)
    writer.text(kind)
    writer.optional(text) { $0.text($1) }
    writer.flag(isDeleted)
    writer.int64(sentAt.microseconds)
    switch delivery {
    case .pending: writer.uint8(1)
    case .sent: writer.uint8(2)
    case .failed(let code):
      writer.uint8(3)
      writer.text(code)
    }
  }
}

extension FoldCounters {
  init(from reader: inout ByteReader) throws(WireError) {
    rows = try reader.count()
    trimmedThrough = try reader.position()
    pending = try reader.count()
    nextPending = try reader.uint64()
    orphans = try reader.count()
    nextOrphan = try reader.uint64()
    timers = try reader.count()
    readers = try reader.count()
    let first = try reader.uint64()
    let end = try reader.uint64()
    guard first <= end, end < 1 << 62, nextPending < 1 << 62, nextOrphan < 1 << 62 else {
      throw .invalid(field: "number of a message that is gone", value: end)
    }
    gone = first..<end
  }

  func encode(into writer: inout ByteWriter) {
    writer.uint64(UInt64(clamping: rows))
    writer.uint64(trimmedThrough.rawValue)
    writer.uint64(UInt64(clamping: pending))
    writer.uint64(nextPending)
    writer.uint64(UInt64(clamping: orphans))
    writer.uint64(nextOrphan)
    writer.uint64(UInt64(clamping: timers))
    writer.uint64(UInt64(clamping: readers))
    writer.uint64(gone.lowerBound)
    writer.uint64(gone.upperBound)
  }
}

extension ByteWriter {
  mutating func serverUnread(_ unread: ServerUnread) {
    int64(unread.groupMaxSeq)
    int64(unread.lastReadSeq)
    int64(unread.deliveredSeq)
    int64(unread.unreadCount)
  }

  mutating func profile(_ profile: GroupProfile) {
    optional(profile.name) { $0.text($1) }
    version(profile.nameVersion)
    optional(profile.timer) { $0.expiry($1) }
    version(profile.timerVersion)
  }

  private mutating func version(_ version: ProfileVersion) {
    uint64(version.epoch)
    int64(version.seq)
    optional(version.control) { $0.id($1) }
  }
}

extension ByteReader {
  @_lifetime(self: copy self)
  mutating func serverUnread() throws(WireError) -> ServerUnread {
    ServerUnread(
      groupMaxSeq: try int64(), lastReadSeq: try int64(), deliveredSeq: try int64(), unreadCount: try int64())
  }

  @_lifetime(self: copy self)
  mutating func profile() throws(WireError) -> GroupProfile {
    GroupProfile(
      name: try flag() ? try text() : nil, nameVersion: try version(), timer: try flag() ? try expiry() : nil,
      timerVersion: try version())
  }

  @_lifetime(self: copy self)
  private mutating func version() throws(WireError) -> ProfileVersion {
    ProfileVersion(epoch: try uint64(), seq: try int64(), control: try flag() ? try id() : nil)
  }
}
