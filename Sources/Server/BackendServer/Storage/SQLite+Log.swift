import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// The log: a row's id is its group's key and its sequence in one number, so that a group's rows lie together.
extension SQLiteBackendStore {
  static func logID(_ group: Int64, _ sequence: LogSequence) throws(SQLError) -> Int64 {
    guard StoredNumber.sequence.contains(sequence), group < 1 << 31 else { throw .damagedValue }
    return group << 32 | sequence
  }

  package func append(
    _ row: LogView, countedMessages: Int64, to group: GroupID
  ) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let key = try key(group)
      if row.kind == .commit {
        let witness = try connection.statement(
          "INSERT OR IGNORE INTO commit_key (grp, generation, epoch, sequence) VALUES (?, ?, ?, ?)")
        witness.bind(1, key)
        witness.bind(2, row.generation)
        witness.bind(3, Int64(row.epoch))
        witness.bind(4, row.sequence)
        try witness.run()
        guard connection.changedRowCount == 1 else { return false }
      }
      let insert = try connection.statement(
        """
        INSERT INTO log (id, epoch, generation, kind, sender, client_id, at, counted, blob)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """)
      insert.bind(1, try Self.logID(key, row.sequence))
      insert.bind(2, Int64(row.epoch))
      insert.bind(3, row.generation)
      insert.bind(4, Int64(row.kind.rawValue))
      insert.bind(5, try self.key(row.sender))
      insert.bind(6, optional: row.clientID?.bytes)
      insert.bind(7, row.at.microseconds)
      insert.bind(8, countedMessages)
      try insert.withBound(9, row.blob.span) { () throws(SQLError) in try insert.run() }
      return true
    }
  }

  package func receipt(
    of message: ClientMessageID, from device: DeviceID
  ) throws(BackendFailure) -> LogReceipt? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT log.id & 0xffffffff, log.epoch, grp.id FROM log JOIN grp ON grp.key = log.id >> 32
        WHERE sender = ? AND client_id = ?
        """)
      select.bind(1, try key(device))
      select.bind(2, copying: message.bytes)
      return try select.first { (row) throws(SQLError) in
        LogReceipt(group: try row.id(2), sequence: try row.sequence(0), epoch: try row.epoch(1))
      }
    }
  }

  /// Columns from `first`: sequence, epoch, generation, kind, sender's id, client's id, time, blob.
  static func logView(_ row: SQLStatement, from first: Int32) throws(SQLError) -> LogView {
    LogView(
      sequence: try row.sequence(first), epoch: try row.epoch(first + 1),
      generation: try row.count(first + 2),
      kind: try row.choice(first + 3), sender: try row.id(first + 4),
      clientID: try row.optional(first + 5, row.id), blob: row.bytes(first + 7),
      at: try row.time(first + 6))
  }

  package func commits(
    of group: GroupID, generation: Int64, from epoch: Epoch, limit: Int
  ) throws(BackendFailure) -> [LogView] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT sequence, log.epoch, log.generation, kind, device.id, client_id, at, blob
        FROM commit_key JOIN log ON log.id = grp << 32 | sequence JOIN device ON device.key = sender
        WHERE grp = ? AND commit_key.generation = ? AND commit_key.epoch >= ?
        ORDER BY commit_key.epoch LIMIT ?
        """)
      select.bind(1, try key(group))
      select.bind(2, generation)
      select.bind(3, Int64(clamping: epoch))
      select.bind(4, Int64(limit))
      return try select.all { (row) throws(SQLError) in try Self.logView(row, from: 0) }
    }
  }

  package func countedMessages(
    of group: GroupID, upTo sequence: LogSequence
  ) throws(BackendFailure) -> Int64? {
    try sql { (connection) throws(SQLError) in
      let key = try key(group)
      let select = try connection.statement(
        "SELECT counted FROM log WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1")
      select.bind(1, try Self.logID(key, 0))
      select.bind(2, try Self.logID(key, sequence))
      return try select.first { (row) throws(SQLError) in try row.sequence(0) }
    }
  }

  package func dropLogRows(before time: WallTime, limit: Int) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let old = try connection.statement(
        """
        SELECT key FROM grp WHERE (
          SELECT at FROM log WHERE id BETWEEN key << 32 AND key << 32 | 0xffffffff ORDER BY id LIMIT 1) < ?
        LIMIT ?
        """)
      old.bind(1, time.microseconds)
      old.bind(2, Int64(limit))
      let groups = try old.all { (row) throws(SQLError) in try row.key(0) }
      // Reads the old rows and one more.
      let first = try connection.statement(
        "SELECT id FROM log WHERE id BETWEEN ?1 << 32 AND ?1 << 32 | 0xffffffff AND at >= ?2 ORDER BY id LIMIT 1"
      )
      let delete = try connection.statement("DELETE FROM log WHERE id >= ?1 << 32 AND id < ?2")
      for group in groups {
        first.bind(1, group)
        first.bind(2, time.microseconds)
        let end = try first.first { (row) throws(SQLError) in try row.number(0, in: StoredNumber.logRow) }
        delete.bind(1, group)
        delete.bind(2, end ?? (group + 1) << 32)
        try delete.run()
      }
      return groups.count == limit
    }
  }
}
