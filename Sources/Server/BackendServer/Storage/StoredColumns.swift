import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// What the columns of tables may hold, each kind once: for who reads a row, and for `palbe-server check`.
///
/// A file that somebody has damaged can hold any number in any column. What is read is compared here, and nowhere else; what
/// passes can be reckoned with: no sum or difference of a few of them overflows.
enum StoredNumber {
  typealias Span = ClosedRange<Int64>

  static let flag: Span = 0...1
  /// Of rows; a group's is half of a log row's.
  static let key: Span = 1...(1 << 48)
  static let optionalKey: Span = 0...(1 << 48)
  /// What counts up by ones: epochs, generations, sizes in bytes.
  static let count: Span = 0...(1 << 48)
  /// Positions in a log, and counts of its rows: half of a log row's id.
  static let sequence: Span = 0...(1 << 32 - 1)
  static let logRow: Span = 1 << 32...(.max)
  /// Microseconds, to which an operator's longest lifetimes are added.
  static let time: Span = 0...(1 << 61)
  static let leafIndex: Span = 0...Int64(UInt32.max)

  /// Numbers of cases, from the first to the last.
  static func cases<Value: RawRepresentable<UInt8>>(_ first: Value, _ last: Value) -> Span {
    Int64(first.rawValue)...Int64(last.rawValue)
  }
}

extension SQLStatement {
  /// Throws `damagedValue` for anything but 16 bytes.
  func id<Kind>(_ column: Int32) throws(SQLError) -> Identifier<Kind> {
    guard let id = Identifier<Kind>(bytes: bytes(column)) else { throw .damagedValue }
    return id
  }

  func key(_ column: Int32) throws(SQLError) -> Int64 { try number(column, in: StoredNumber.key) }
  func flag(_ column: Int32) throws(SQLError) -> Bool { try number(column, in: StoredNumber.flag) == 1 }
  func count(_ column: Int32) throws(SQLError) -> Int64 { try number(column, in: StoredNumber.count) }
  func epoch(_ column: Int32) throws(SQLError) -> Epoch { Epoch(try count(column)) }
  func sequence(_ column: Int32) throws(SQLError) -> LogSequence {
    try number(column, in: StoredNumber.sequence)
  }
  func time(_ column: Int32) throws(SQLError) -> WallTime {
    WallTime(microseconds: try number(column, in: StoredNumber.time))
  }
  func queueID(_ column: Int32) throws(SQLError) -> QueueID {
    QueueID(try number(column, in: StoredNumber.time))
  }

  /// A number that stands for a case.
  func choice<Value: RawRepresentable<UInt8>>(_ column: Int32) throws(SQLError) -> Value {
    let number = try number(column, in: 0...Int64(UInt8.max))
    guard let value = Value(rawValue: UInt8(number)) else { throw .damagedValue }
    return value
  }

  /// Nil where the column is NULL.
  func optional<Value>(
    _ column: Int32, _ read: (Int32) throws(SQLError) -> Value
  ) throws(SQLError) -> Value? {
    isNull(column) ? nil : try read(column)
  }

  func optionalBytes(_ column: Int32) -> [UInt8]? { isNull(column) ? nil : bytes(column) }

  func bind(_ place: Int32, optional bytes: [UInt8]?) {
    if let bytes { bind(place, copying: bytes) } else { bindNull(place) }
  }

  func bind(_ place: Int32, optional value: Int64?) {
    if let value { bind(place, value) } else { bindNull(place) }
  }
}

/// A table's columns of numbers and ids.
struct StoredTable: Sendable {
  enum Form: Sendable {
    case number(StoredNumber.Span)
    /// NULL too.
    case optionalNumber(StoredNumber.Span)
    case id
    case optionalID
  }

  let name: String
  /// What names a row in it: columns of its key.
  let key: [String]
  let columns: KeyValuePairs<String, Form>
}

extension StoredTable.Form {
  /// SQL that is true for what is not of this form, and what that is, for an operator.
  fileprivate func damage(_ column: String) -> (condition: String, words: String) {
    switch self {
    case .number(let span):
      (
        "typeof(\(column)) <> 'integer' OR \(column) NOT BETWEEN \(span.lowerBound) AND \(span.upperBound)",
        "\(column) is no number from \(span.lowerBound) to \(span.upperBound)"
      )
    case .id:
      ("typeof(\(column)) <> 'blob' OR length(\(column)) <> 16", "\(column) is no id")
    case .optionalNumber(let span): Self.number(span).orNull(column)
    case .optionalID: Self.id.orNull(column)
    }
  }

  private func orNull(_ column: String) -> (condition: String, words: String) {
    let (condition, words) = damage(column)
    return ("\(column) IS NOT NULL AND (\(condition))", words)
  }
}

extension SQLConnection {
  /// Columns that hold what no server has written, each with the first of its rows, for an operator.
  func damagedValues(in tables: [StoredTable]) throws(SQLError) -> [String] {
    var problems: [String] = []
    for table in tables {
      let row = table.key.map { "quote(\($0))" }.joined(separator: " || ',' || ")
      for (column, form) in table.columns {
        let (condition, words) = form.damage(column)
        let select = try statement(
          "SELECT count(*), min(\(row)) FROM \(table.name) WHERE \(condition)")
        let found = try select.first { select in (select.integer(0), select.text(1)) }
        guard let (count, first) = found, count > 0 else { continue }
        let others = count > 1 ? ", and \(count - 1) rows more" : ""
        problems.append("table \(table.name), row \(first): \(words)\(others)")
      }
    }
    return problems
  }
}

extension Schema {
  /// The columns that are read as numbers or ids.
  static let tables = [
    StoredTable(name: "state", key: ["id"], columns: ["last_queue_id": .number(StoredNumber.time)]),
    StoredTable(
      name: "user", key: ["key"],
      columns: [
        "key": .number(StoredNumber.key), "id": .id, "presence": .number(StoredNumber.flag),
        "receipts": .number(StoredNumber.flag),
      ]),
    StoredTable(
      name: "device", key: ["key"],
      columns: [
        "key": .number(StoredNumber.key), "id": .id, "user": .number(StoredNumber.key),
        "platform": .number(StoredNumber.cases(DevicePlatform.ios, .linux)),
        "created": .number(StoredNumber.time), "revoked": .optionalNumber(StoredNumber.time),
        "woken": .number(StoredNumber.time),
      ]),
    StoredTable(
      name: "push_token", key: ["device", "platform"],
      columns: [
        "device": .number(StoredNumber.key),
        "platform": .number(StoredNumber.cases(PushPlatform.ios, .iosVoIP)),
      ]),
    StoredTable(
      name: "key_package", key: ["key"],
      columns: [
        "key": .number(StoredNumber.key), "device": .number(StoredNumber.key),
        "expires": .number(StoredNumber.time), "last_resort": .number(StoredNumber.flag),
        "used": .number(StoredNumber.flag),
      ]),
    StoredTable(
      name: "grp", key: ["key"],
      columns: [
        "key": .number(1...(1 << 31 - 1)), "id": .id,
        "kind": .number(StoredNumber.cases(ChatKind.direct, .group)), "epoch": .number(StoredNumber.count),
        "generation": .number(StoredNumber.count), "head": .number(StoredNumber.sequence),
        "counted": .number(StoredNumber.sequence), "last_proposal": .number(StoredNumber.sequence),
        "created_by": .number(StoredNumber.key), "created": .number(StoredNumber.time),
      ]),
    StoredTable(
      name: "group_state", key: ["grp"],
      columns: [
        "grp": .number(StoredNumber.key), "name_epoch": .optionalNumber(StoredNumber.count),
      ]),
    StoredTable(
      name: "member", key: ["grp", "user"],
      columns: [
        "grp": .number(StoredNumber.key), "user": .number(StoredNumber.key),
        "role": .number(StoredNumber.cases(ChatRole.member, .owner)),
        "joined": .number(StoredNumber.sequence), "left_at": .optionalNumber(StoredNumber.sequence),
        "scope": .number(StoredNumber.cases(NotifyScope.all, .none)), "read": .number(StoredNumber.sequence),
        "read_counted": .number(StoredNumber.sequence),
      ]),
    StoredTable(
      name: "leaf", key: ["grp", "device"],
      columns: [
        "grp": .number(StoredNumber.key), "device": .number(StoredNumber.key),
        "leaf_index": .number(StoredNumber.leafIndex), "added_epoch": .number(StoredNumber.count),
        "live": .number(StoredNumber.flag),
      ]),
    StoredTable(
      name: "log", key: ["id"],
      columns: [
        "id": .number(StoredNumber.logRow), "epoch": .number(StoredNumber.count),
        "generation": .number(StoredNumber.count),
        "kind": .number(StoredNumber.cases(LogKind.application, .commit)),
        "sender": .number(StoredNumber.key), "client_id": .optionalID, "at": .number(StoredNumber.time),
        "counted": .number(StoredNumber.sequence),
      ]),
    StoredTable(
      name: "commit_key", key: ["grp", "generation", "epoch"],
      columns: [
        "grp": .number(StoredNumber.key), "generation": .number(StoredNumber.count),
        "epoch": .number(StoredNumber.count), "sequence": .number(StoredNumber.sequence),
      ]),
    StoredTable(
      name: "welcome", key: ["key"],
      columns: ["key": .number(StoredNumber.key), "readers": .number(StoredNumber.count)]),
    StoredTable(
      name: "queue", key: ["device", "id"],
      columns: [
        "device": .number(StoredNumber.key), "id": .number(StoredNumber.time), "kind": .number(1...3),
        "grp": .number(StoredNumber.optionalKey), "reference": .number(StoredNumber.count),
        "wakes": .number(StoredNumber.flag),
      ]),
    StoredTable(
      name: "delivered", key: ["grp", "device"],
      columns: [
        "grp": .number(StoredNumber.key), "device": .number(StoredNumber.key),
        "sequence": .number(StoredNumber.sequence),
      ]),
    StoredTable(
      name: "blob", key: ["id"],
      columns: [
        "id": .id, "grp": .number(StoredNumber.key), "uploader": .number(StoredNumber.key),
        "size": .number(StoredNumber.count),
        "state": .number(StoredNumber.cases(BlobState.pending, .ready)),
        "expires": .number(StoredNumber.time),
      ]),
    StoredTable(name: "idempotency", key: ["rowid"], columns: ["expires": .number(StoredNumber.time)]),
  ]
}

extension AccountSchema {
  /// The columns that are read as numbers or ids.
  static let tables = [
    StoredTable(
      name: "account", key: ["user"],
      columns: [
        "user": .id, "n": .optionalNumber(StoredNumber.count), "r": .optionalNumber(StoredNumber.count),
        "p": .optionalNumber(StoredNumber.count), "created": .number(StoredNumber.time),
      ]),
    StoredTable(name: "identity", key: ["user"], columns: ["user": .id]),
    StoredTable(
      name: "session", key: ["id"],
      columns: [
        "id": .id, "user": .id, "created": .number(StoredNumber.time), "used": .number(StoredNumber.time),
        "expires": .number(StoredNumber.time), "generation": .number(StoredNumber.count),
        "replaced": .optionalNumber(StoredNumber.time), "device": .optionalID,
      ]),
    StoredTable(
      name: "refused", key: ["session"],
      columns: [
        "session": .id, "until": .number(StoredNumber.time), "device_revoked": .number(StoredNumber.flag),
      ]),
    StoredTable(name: "state", key: ["id"], columns: ["last_dropped": .optionalNumber(StoredNumber.time)]),
  ]
}
