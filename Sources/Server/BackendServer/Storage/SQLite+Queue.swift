import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits
import PalbeWire

/// The devices' queues.
extension SQLiteBackendStore {
  /// What the columns `kind` and `reference` say.
  private enum Kind: Int64 {
    case message = 1
    case welcome = 2
    case control = 3
  }

  package func nextQueueID(at time: WallTime) throws(BackendFailure) -> QueueID {
    lastQueueID = max(lastQueueID + 1, time.microseconds)
    return QueueID(lastQueueID)
  }

  package func insertWelcome(
    _ blob: [UInt8], of group: GroupID, readers: Int
  ) throws(BackendFailure) -> WelcomeID {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement("INSERT INTO welcome (readers, blob) VALUES (?, ?) RETURNING key")
      insert.bind(1, Int64(readers))
      insert.bind(2, copying: blob)
      // To the end, so that the statement is done before the next one.
      let keys = try insert.all { (row) throws(SQLError) in try row.key(0) }
      guard let key = keys.first else { throw .damagedValue }
      return WelcomeID(key)
    }
  }

  /// Binds an item's columns, from `place`: kind, group, reference, wakes, control.
  private func bind(
    _ item: QueueItem, wakes: Bool, to statement: SQLStatement, from place: Int32
  ) throws(SQLError) {
    var group: GroupID?
    var columns: (kind: Kind, reference: Int64, control: [UInt8]?) = (.control, 0, nil)
    switch item {
    case .message(let of, let sequence):
      group = of
      columns = (.message, sequence, nil)
    case .welcome(let of, let welcome):
      group = of
      columns = (.welcome, welcome.rawValue, nil)
    case .control(let control):
      group = control.group
      columns = (.control, 0, control.encoded)
    }
    statement.bind(place, columns.kind.rawValue)
    statement.bind(place + 1, try group.map { (id) throws(SQLError) in try key(id) } ?? 0)
    statement.bind(place + 2, columns.reference)
    statement.bind(place + 3, wakes ? 1 : 0)
    statement.bind(place + 4, optional: columns.control)
  }

  package func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, to devices: [DeviceID]
  ) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO queue (device, id, kind, grp, reference, wakes, control) VALUES (?, ?, ?, ?, ?, ?, ?)
        """)
      insert.bind(2, id.rawValue)
      try bind(item, wakes: wakes, to: insert, from: 3)
      for device in devices {
        insert.bind(1, try key(device))
        try insert.run()
      }
      queueChanged(by: devices.count)
    }
  }

  package func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, toLeavesOf group: GroupID, except device: DeviceID?
  ) throws(BackendFailure) -> [DeviceID] {
    try sql { (connection) throws(SQLError) in
      let groupKey = try key(group)
      let insert = try connection.statement(
        """
        INSERT INTO queue (device, id, kind, grp, reference, wakes, control)
        SELECT device, ?, ?, ?, ?, ?, ? FROM leaf WHERE grp = ? AND live = 1 AND device <> ?
        """)
      insert.bind(1, id.rawValue)
      try bind(item, wakes: wakes, to: insert, from: 2)
      insert.bind(7, groupKey)
      insert.bind(8, try device.map { (id) throws(SQLError) in try key(id) } ?? 0)
      try insert.run()
      queueChanged(by: connection.changedRowCount)
      return try liveDevices(groupKey).filter { $0 != device }
    }
  }

  private func liveDevices(_ group: Int64) throws(SQLError) -> [DeviceID] {
    if let known = recipients[group] { return known }
    let select = try connection.statement(
      """
      SELECT device.id FROM leaf JOIN device ON device.key = leaf.device WHERE grp = ? AND live = 1
      ORDER BY device.id
      """)
    select.bind(1, group)
    let devices: [DeviceID] = try select.all { (row) throws(SQLError) in try row.id(0) }
    if recipients.count >= Self.cacheLimit / 10 { recipients.removeAll() }
    recipients[group] = devices
    return devices
  }

  // MARK: Reading

  package func queue(
    of device: DeviceID, after: QueueID, limit: Int, byteLimit: Int
  ) throws(BackendFailure) -> (rows: [QueueRow], hasMore: Bool) {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT queue.id, queue.kind, grp.id, control, welcome.blob, log.id & 0xffffffff, log.epoch, log.generation,
          log.kind, sender.id, client_id, at, log.blob
        FROM queue LEFT JOIN grp ON grp.key = queue.grp
        LEFT JOIN log ON queue.kind = 1 AND log.id = queue.grp << 32 | queue.reference
        LEFT JOIN device sender ON sender.key = log.sender
        LEFT JOIN welcome ON queue.kind = 2 AND welcome.key = queue.reference
        WHERE queue.device = ? AND queue.id > ? ORDER BY queue.id LIMIT ?
        """)
      select.bind(1, try key(device))
      select.bind(2, after.rawValue)
      select.bind(3, Int64(limit) + 1)
      var rows: [QueueRow] = []
      var count = 0
      defer { select.reset() }
      while try select.step() {
        guard rows.count < limit, count < byteLimit else { return (rows, true) }
        let content = try content(select)
        count += content.byteCount
        rows.append(QueueRow(id: try select.queueID(0), content: content))
      }
      return (rows, false)
    }
  }

  private func content(_ row: SQLStatement) throws(SQLError) -> QueueContent {
    switch Kind(rawValue: try row.count(1)) {
    case .message:
      // The log was cut before this row was.
      if row.isNull(5) { return .control(.historyGap(try row.id(2))) }
      return .message(try row.id(2), try Self.logView(row, from: 5))
    case .welcome: return .welcome(try row.id(2), row.bytes(4))
    case .control, nil:
      do throws(WireError) { return .control(try Control(decoding: row.bytes(3))) } catch {
        throw .damagedValue
      }
    }
  }

  // MARK: Acknowledging

  /// Before rows of a device go: their welcomes have a reader less, and go with the last one.
  func releaseWelcomes(_ condition: StaticString, _ device: Int64, _ bound: Int64?) throws(SQLError) {
    let select = try connection.statement("SELECT reference FROM queue WHERE \(condition) AND kind = 2")
    select.bind(1, device)
    if let bound { select.bind(2, bound) }
    try release(try select.all { (row) throws(SQLError) in try row.count(0) })
  }

  private func release(_ welcomes: [Int64]) throws(SQLError) {
    for welcome in welcomes {
      for statement in [
        "UPDATE welcome SET readers = readers - 1 WHERE key = ?",
        "DELETE FROM welcome WHERE key = ? AND readers <= 0",
      ] {
        let run = try connection.statement(statement)
        run.bind(1, welcome)
        try run.run()
      }
    }
  }

  package func acknowledge(
    _ rows: Acknowledgement, of device: DeviceID
  ) throws(BackendFailure) -> RemovedRows {
    try sql { (connection) throws(SQLError) in
      let key = try key(device)
      var removed = RemovedRows()
      var newest: [Int64: LogSequence] = [:]
      func remove(_ condition: StaticString, _ bound: QueueID) throws(SQLError) {
        let delete = try connection.statement(
          "DELETE FROM queue WHERE \(condition) RETURNING kind, grp, reference")
        delete.bind(1, key)
        delete.bind(2, bound.rawValue)
        var hasWelcome: [Int64] = []
        let rows = try delete.all { (row) throws(SQLError) in
          (try row.count(0), try row.number(1, in: StoredNumber.optionalKey), try row.count(2))
        }
        for (kind, group, reference) in rows {
          removed.count += 1
          if kind == Kind.message.rawValue { newest[group] = max(newest[group] ?? 0, reference) }
          if kind == Kind.welcome.rawValue { hasWelcome.append(reference) }
        }
        try release(hasWelcome)
      }
      switch rows {
      case .upTo(let last): try remove("device = ?1 AND id <= ?2", last)
      case .listed(let ids): for id in ids { try remove("device = ?1 AND id = ?2", id) }
      }
      queueChanged(by: -removed.count)
      let name = try connection.statement("SELECT id FROM grp WHERE key = ?")
      for (group, sequence) in newest {
        name.bind(1, group)
        let id: GroupID? = try name.first { (row) throws(SQLError) in try row.id(0) }
        if let id { removed.delivered[id] = sequence }
      }
      return removed
    }
  }

  package func raiseDelivered(
    _ device: DeviceID, of group: GroupID, to sequence: LogSequence
  ) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let raise = try connection.statement(
        """
        INSERT INTO delivered (grp, device, sequence) VALUES (?, ?, ?) ON CONFLICT (grp, device) DO UPDATE
        SET sequence = excluded.sequence WHERE excluded.sequence > sequence
        """)
      raise.bind(1, try key(group))
      raise.bind(2, try key(device))
      raise.bind(3, sequence)
      try raise.run()
      return connection.changedRowCount == 1
    }
  }

  package func delivered(to user: UserID, of group: GroupID) throws(BackendFailure) -> LogSequence {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT max(sequence) FROM device JOIN delivered ON delivered.device = device.key AND grp = ?
        WHERE device.user = ?
        """)
      select.bind(1, try key(group))
      select.bind(2, try key(user))
      let furthest = try select.first { (row) throws(SQLError) in try row.optional(0, row.sequence) }
      return (furthest ?? nil) ?? 0
    }
  }

  // MARK: Waking

  package func isUnacknowledged(_ span: WakeSpan) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT 1 FROM queue WHERE device = ? AND id BETWEEN ? AND ? AND grp = ? AND wakes = 1 LIMIT 1")
      select.bind(1, try key(span.device))
      select.bind(2, span.first.rawValue)
      select.bind(3, span.last.rawValue)
      select.bind(4, try key(span.group))
      return try select.first { _ in true } ?? false
    }
  }

  package func unwoken() throws(BackendFailure) -> [WakeSpan] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT device.id, grp.id, min(queue.id), max(queue.id), max(queue.kind)
        FROM device CROSS JOIN queue ON queue.device = device.key AND queue.id > woken AND wakes = 1
        JOIN grp ON grp.key = queue.grp
        WHERE revoked IS NULL GROUP BY device.key, grp.key ORDER BY device.id, grp.id
        """)
      func span(_ row: SQLStatement) throws(SQLError) -> WakeSpan {
        WakeSpan(
          device: try row.id(0), group: try row.id(1), first: try row.queueID(2), last: try row.queueID(3),
          kind: try row.count(4) == Kind.welcome.rawValue ? .welcome : .message)
      }
      // A damaged row keeps nobody else from being woken, and no server from starting; who fetches it is told.
      return try select.all { row in try? span(row) }.compactMap { $0 }
    }
  }

  // MARK: Retention

  package func dropQueueRows(
    before id: QueueID, limit: Int, at time: WallTime
  ) throws(BackendFailure) -> Bool {
    let devices: [DeviceID] = try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT id FROM device WHERE EXISTS (SELECT 1 FROM queue WHERE queue.device = device.key AND queue.id < ?)
        ORDER BY id LIMIT ?
        """)
      select.bind(1, id.rawValue)
      select.bind(2, Int64(limit))
      return try select.all { (row) throws(SQLError) in try row.id(0) }
    }
    for device in devices {
      let groups: [GroupID] = try sql { (connection) throws(SQLError) in
        let key = try key(device)
        try releaseWelcomes("device = ?1 AND id < ?2", key, id.rawValue)
        // A gap that was not fetched either stays a gap.
        let select = try connection.statement(
          """
          SELECT DISTINCT grp.id FROM queue JOIN grp ON grp.key = queue.grp
          WHERE device = ? AND queue.id < ? AND (queue.kind IN (1, 2) OR substr(control, 1, 1) = x'05')
          ORDER BY grp.id
          """)
        select.bind(1, key)
        select.bind(2, id.rawValue)
        let groups: [GroupID] = try select.all { (row) throws(SQLError) in try row.id(0) }
        let delete = try connection.statement("DELETE FROM queue WHERE device = ? AND id < ?")
        delete.bind(1, key)
        delete.bind(2, id.rawValue)
        try delete.run()
        queueChanged(by: -connection.changedRowCount)
        return groups
      }
      for group in groups {
        let gap = try nextQueueID(at: time)
        try enqueue(.control(.historyGap(group)), id: gap, wakes: false, to: [device])
      }
    }
    return devices.count == limit
  }
}
