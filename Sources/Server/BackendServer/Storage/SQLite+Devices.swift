import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// Users, devices, key packages, blobs, first answers.
extension SQLiteBackendStore {
  package func user(_ id: UserID) throws(BackendFailure) -> UserRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT presence, receipts FROM user WHERE id = ?")
      select.bind(1, copying: id.bytes)
      return try select.first { (row) throws(SQLError) in
        UserRow(
          id: id, prefs: CommsPrefs(sharePresence: try row.flag(0), shareReceipts: try row.flag(1)))
      }
    }
  }

  package func put(_ user: UserRow) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO user (id, presence, receipts) VALUES (?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET presence = excluded.presence, receipts = excluded.receipts
        """)
      insert.bind(1, copying: user.id.bytes)
      insert.bind(2, user.prefs.sharePresence ? 1 : 0)
      insert.bind(3, user.prefs.shareReceipts ? 1 : 0)
      try insert.run()
    }
  }

  private static let deviceColumns = """
    SELECT device.id, user.id, signature_key, platform, created, revoked, woken
    FROM device JOIN user ON user.key = device.user
    """

  private static func deviceRow(_ row: SQLStatement) throws(SQLError) -> DeviceRow {
    DeviceRow(
      id: try row.id(0), user: try row.id(1), signatureKey: row.bytes(2), platform: try row.choice(3),
      createdAt: try row.time(4), revokedAt: try row.optional(5, row.time), wokenThrough: try row.queueID(6))
  }

  package func device(_ id: DeviceID) throws(BackendFailure) -> DeviceRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(Self.deviceColumns + " WHERE device.id = ?")
      select.bind(1, copying: id.bytes)
      return try select.first(Self.deviceRow)
    }
  }

  package func devices(of user: UserID) throws(BackendFailure) -> [DeviceRow] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        Self.deviceColumns + " WHERE device.user = (SELECT key FROM user WHERE id = ?) ORDER BY device.id")
      select.bind(1, copying: user.bytes)
      return try select.all(Self.deviceRow)
    }
  }

  package func insert(_ device: DeviceRow) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO device (id, user, signature_key, platform, created, revoked, woken)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """)
      insert.bind(1, copying: device.id.bytes)
      insert.bind(2, try key(device.user))
      insert.bind(3, copying: device.signatureKey)
      insert.bind(4, Int64(device.platform.rawValue))
      insert.bind(5, device.createdAt.microseconds)
      insert.bind(6, optional: device.revokedAt?.microseconds)
      insert.bind(7, device.wokenThrough.rawValue)
      try insert.run()
    }
  }

  package func revoke(_ device: DeviceID, at time: WallTime) throws(BackendFailure) -> [GroupID] {
    recipients.removeAll()
    return try sql { (connection) throws(SQLError) in
      let key = try key(device)
      try releaseWelcomes("device = ?1", key, nil)
      for statement in [
        "UPDATE device SET revoked = ?2 WHERE key = ?1", "DELETE FROM push_token WHERE device = ?1",
        "UPDATE key_package SET used = 1, blob = x'' WHERE device = ?1 AND used = 0",
        "DELETE FROM queue WHERE device = ?1", "UPDATE leaf SET live = 0 WHERE device = ?1",
      ] {
        let run = try connection.statement(statement)
        run.bind(1, key)
        run.bind(2, time.microseconds)
        try run.run()
        if statement.hasPrefix("DELETE FROM queue") { queueChanged(by: -connection.changedRowCount) }
      }
      let select = try connection.statement(
        "SELECT grp.id FROM leaf JOIN grp ON grp.key = leaf.grp WHERE leaf.device = ? ORDER BY grp.id")
      select.bind(1, key)
      return try select.all { (row) throws(SQLError) in try row.id(0) }
    }
  }

  package func setWoken(_ device: DeviceID, through id: QueueID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let update = try connection.statement("UPDATE device SET woken = max(woken, ?) WHERE id = ?")
      update.bind(1, id.rawValue)
      update.bind(2, copying: device.bytes)
      try update.run()
    }
  }

  package func put(_ token: PushToken, for device: DeviceID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO push_token (device, platform, token) VALUES (?, ?, ?)
        ON CONFLICT (device, platform) DO UPDATE SET token = excluded.token
        """)
      insert.bind(1, try key(device))
      insert.bind(2, Int64(token.platform.rawValue))
      insert.bind(3, copying: token.bytes)
      try insert.run()
    }
  }

  package func pushTokens(of device: DeviceID) throws(BackendFailure) -> [PushToken] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT platform, token FROM push_token WHERE device = ? ORDER BY platform")
      select.bind(1, try key(device))
      return try select.all { (row) throws(SQLError) in
        PushToken(platform: try row.choice(0), bytes: row.bytes(1))
      }
    }
  }

  // MARK: Key packages

  package func insert(_ package: KeyPackageRow) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let find = try connection.statement("SELECT 1 FROM key_package WHERE reference = ?")
      find.bind(1, copying: package.reference)
      guard try find.first({ _ in true }) == nil else { return false }
      let device = try key(package.device)
      if package.isLastResort {
        let replace = try connection.statement(
          "UPDATE key_package SET used = 1, blob = x'' WHERE device = ? AND last_resort = 1 AND used = 0")
        replace.bind(1, device)
        try replace.run()
      }
      let insert = try connection.statement(
        """
        INSERT INTO key_package (device, reference, blob, expires, last_resort, used)
        VALUES (?, ?, ?, ?, ?, 0)
        """)
      insert.bind(1, device)
      insert.bind(2, copying: package.reference)
      insert.bind(3, copying: package.blob)
      insert.bind(4, package.expiresAt.microseconds)
      insert.bind(5, package.isLastResort ? 1 : 0)
      try insert.run()
      return true
    }
  }

  package func keyPackageOwner(_ reference: [UInt8]) throws(BackendFailure) -> DeviceID? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT device.id FROM key_package JOIN device ON device.key = key_package.device WHERE reference = ?"
      )
      select.bind(1, copying: reference)
      return try select.first { (row) throws(SQLError) in try row.id(0) }
    }
  }

  private func unused(
    _ columns: StaticString, _ device: DeviceID, _ time: WallTime, isLastResort: Bool
  ) throws(SQLError) -> SQLStatement {
    let select = try connection.statement(
      """
      SELECT \(columns) FROM key_package
      WHERE device = ? AND last_resort = ? AND used = 0 AND expires > ? ORDER BY key
      """)
    select.bind(1, try key(device))
    select.bind(2, isLastResort ? 1 : 0)
    select.bind(3, time.microseconds)
    return select
  }

  package func keyPackageCount(of device: DeviceID, at time: WallTime) throws(BackendFailure) -> Int {
    try sql { (connection) throws(SQLError) in
      let select = try unused("count(*)", device, time, isLastResort: false)
      return Int(try select.first { row in row.integer(0) } ?? 0)
    }
  }

  package func hasLastResort(_ device: DeviceID, at time: WallTime) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      try unused("key", device, time, isLastResort: true).first { _ in true } ?? false
    }
  }

  package func takeKeyPackage(
    of device: DeviceID, at time: WallTime, isLastResort: Bool
  ) throws(BackendFailure) -> ClaimedKeyPackage? {
    try sql { (connection) throws(SQLError) in
      let oldest: (Int64, [UInt8])? =
        isLastResort
        ? nil
        : try unused("key, blob", device, time, isLastResort: false).first { (row) throws(SQLError) in
          (try row.key(0), row.bytes(1))
        }
      if let (key, blob) = oldest {
        let use = try connection.statement("UPDATE key_package SET used = 1, blob = x'' WHERE key = ?")
        use.bind(1, key)
        try use.run()
        return ClaimedKeyPackage(device: device, blob: blob, isLastResort: false)
      }
      return try unused("blob", device, time, isLastResort: true).first { row in
        ClaimedKeyPackage(device: device, blob: row.bytes(0), isLastResort: true)
      }
    }
  }

  // MARK: Blobs

  package func blob(_ id: BlobID) throws(BackendFailure) -> BlobRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT grp.id, device.id, size, state, expires FROM blob
        JOIN grp ON grp.key = blob.grp JOIN device ON device.key = uploader WHERE blob.id = ?
        """)
      select.bind(1, copying: id.bytes)
      return try select.first { (row) throws(SQLError) in
        BlobRow(
          id: id, group: try row.id(0), uploader: try row.id(1), byteCount: try row.count(2),
          state: try row.choice(3), expiresAt: try row.time(4))
      }
    }
  }

  package func put(_ blob: BlobRow) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO blob (id, grp, uploader, size, state, expires) VALUES (?, ?, ?, ?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires = excluded.expires
        """)
      insert.bind(1, copying: blob.id.bytes)
      insert.bind(2, try key(blob.group))
      insert.bind(3, try key(blob.uploader))
      insert.bind(4, blob.byteCount)
      insert.bind(5, Int64(blob.state.rawValue))
      insert.bind(6, blob.expiresAt.microseconds)
      try insert.run()
    }
  }

  package func dropBlobs(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> [BlobID] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT id FROM blob WHERE expires <= ? ORDER BY expires, id LIMIT ?")
      select.bind(1, time.microseconds)
      select.bind(2, Int64(limit))
      let ids: [BlobID] = try select.all { (row) throws(SQLError) in try row.id(0) }
      let delete = try connection.statement("DELETE FROM blob WHERE id = ?")
      for id in ids {
        delete.bind(1, copying: id.bytes)
        try delete.run()
      }
      return ids
    }
  }

  // MARK: First answers

  package func idempotency(owner: [UInt8], key: [UInt8]) throws(BackendFailure) -> IdempotencyRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT digest, response, expires FROM idempotency WHERE owner = ? AND key = ?")
      select.bind(1, copying: owner)
      select.bind(2, copying: key)
      return try select.first { (row) throws(SQLError) in
        IdempotencyRow(digest: row.bytes(0), response: row.bytes(1), expiresAt: try row.time(2))
      }
    }
  }

  package func put(_ row: IdempotencyRow, owner: [UInt8], key: [UInt8]) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        "INSERT OR REPLACE INTO idempotency (owner, key, digest, response, expires) VALUES (?, ?, ?, ?, ?)")
      insert.bind(1, copying: owner)
      insert.bind(2, copying: key)
      insert.bind(3, copying: row.digest)
      insert.bind(4, copying: row.response)
      insert.bind(5, row.expiresAt.microseconds)
      try insert.run()
    }
  }

  package func dropKeyPackages(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> Bool {
    try drop("key_package", "key", time, limit)
  }

  package func dropIdempotency(expiredAt time: WallTime, limit: Int) throws(BackendFailure) -> Bool {
    try drop("idempotency", "rowid", time, limit)
  }

  private func drop(
    _ table: StaticString, _ key: StaticString, _ time: WallTime, _ limit: Int
  ) throws(BackendFailure) -> Bool {
    try sql { (connection) throws(SQLError) in
      let delete = try connection.statement(
        "DELETE FROM \(table) WHERE \(key) IN (SELECT \(key) FROM \(table) WHERE expires <= ? LIMIT ?)")
      delete.bind(1, time.microseconds)
      delete.bind(2, Int64(limit))
      try delete.run()
      return connection.changedRowCount == limit
    }
  }
}
