import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// Groups, members, leaves.
extension SQLiteBackendStore {
  private static let groupColumns = """
    SELECT grp.id, mls_id, kind, direct_key, epoch, generation, head, counted, last_proposal, user.id, created
    FROM grp JOIN user ON user.key = created_by
    """

  private static func groupRow(_ row: SQLStatement) throws(SQLError) -> GroupRow {
    GroupRow(
      id: try row.id(0), mlsID: MLSGroupID(row.bytes(1)), kind: try row.choice(2),
      directKey: row.optionalBytes(3), epoch: try row.epoch(4), generation: try row.count(5),
      headSequence: try row.sequence(6), countedMessages: try row.sequence(7),
      lastProposal: try row.sequence(8), createdBy: try row.id(9), createdAt: try row.time(10))
  }

  private func group(where column: StaticString, _ value: [UInt8]) throws(BackendFailure) -> GroupRow? {
    let row = try sql { (connection) throws(SQLError) in
      let select = try connection.statement(Self.groupColumns + " WHERE \(column) = ?")
      select.bind(1, copying: value)
      return try select.first(Self.groupRow)
    }
    if let row { lastGroup = row }
    return row
  }

  package func group(_ id: GroupID) throws(BackendFailure) -> GroupRow? {
    try group(where: "grp.id", id.bytes)
  }

  package func group(mlsID: MLSGroupID) throws(BackendFailure) -> GroupRow? {
    try group(where: "mls_id", mlsID.bytes)
  }

  package func group(directKey: [UInt8]) throws(BackendFailure) -> GroupRow? {
    try group(where: "direct_key", directKey)
  }

  package func insert(_ group: GroupRow, _ state: GroupStateRow) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO grp (id, mls_id, kind, direct_key, epoch, generation, head, counted, last_proposal, created_by,
          created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """)
      insert.bind(1, copying: group.id.bytes)
      insert.bind(2, copying: group.mlsID.bytes)
      insert.bind(3, Int64(group.kind.rawValue))
      insert.bind(4, optional: group.directKey)
      insert.bind(5, Int64(group.epoch))
      insert.bind(6, group.generation)
      insert.bind(7, group.headSequence)
      insert.bind(8, group.countedMessages)
      insert.bind(9, group.lastProposal)
      insert.bind(10, try key(group.createdBy))
      insert.bind(11, group.createdAt.microseconds)
      try insert.run()
      let make = try connection.statement("INSERT INTO group_state (grp, group_info) VALUES (?, x'')")
      make.bind(1, try key(group.id))
      try make.run()
    }
    lastGroup = group
    try setState(state, of: group.id)
  }

  package func update(_ group: GroupRow) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let update = try connection.statement(
        "UPDATE grp SET epoch = ?, generation = ?, head = ?, counted = ?, last_proposal = ? WHERE key = ?")
      let key = try key(group.id)
      update.bind(1, Int64(group.epoch))
      update.bind(2, group.generation)
      update.bind(3, group.headSequence)
      update.bind(4, group.countedMessages)
      update.bind(5, group.lastProposal)
      update.bind(6, key)
      try update.run()
      // Columns with an index are written only when they changed, which is almost never.
      let last = lastGroup?.id == group.id ? lastGroup : nil
      if last == nil || last?.mlsID != group.mlsID || last?.directKey != group.directKey {
        let rename = try connection.statement("UPDATE grp SET mls_id = ?, direct_key = ? WHERE key = ?")
        rename.bind(1, copying: group.mlsID.bytes)
        rename.bind(2, optional: group.directKey)
        rename.bind(3, key)
        try rename.run()
      }
    }
    lastGroup = group
  }

  package func state(of group: GroupID) throws(BackendFailure) -> GroupStateRow {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT group_info, tree, name, name_epoch FROM group_state WHERE grp = ?")
      select.bind(1, try key(group))
      let state = try select.first { (row) throws(SQLError) in
        GroupStateRow(
          groupInfo: row.bytes(0), ratchetTree: row.optionalBytes(1), sealedName: row.optionalBytes(2),
          nameEpoch: try row.optional(3, row.epoch))
      }
      guard let state else { throw .damagedValue }
      return state
    }
  }

  package func setState(_ state: GroupStateRow, of group: GroupID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let update = try connection.statement(
        "UPDATE group_state SET group_info = ?, tree = ?, name = ?, name_epoch = ? WHERE grp = ?")
      update.bind(1, copying: state.groupInfo)
      update.bind(2, optional: state.ratchetTree)
      update.bind(3, optional: state.sealedName)
      update.bind(4, optional: state.nameEpoch.map { Int64($0) })
      update.bind(5, try key(group))
      try update.run()
    }
  }

  // MARK: Members

  private static let memberColumns =
    "user.id, role, joined, left_at, scope, read, read_counted"

  private static func memberRow(_ row: SQLStatement) throws(SQLError) -> MemberRow {
    try memberRow(row, from: 0)
  }

  private static func memberRow(_ row: SQLStatement, from first: Int32) throws(SQLError) -> MemberRow {
    MemberRow(
      user: try row.id(first), role: try row.choice(first + 1), joinedSequence: try row.sequence(first + 2),
      leftSequence: try row.optional(first + 3, row.sequence), scope: try row.choice(first + 4),
      readSequence: try row.sequence(first + 5), readCounted: try row.sequence(first + 6))
  }

  package func member(_ user: UserID, of group: GroupID) throws(BackendFailure) -> MemberRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT \(Self.memberColumns) FROM user JOIN member ON member.user = user.key AND grp = ?
        WHERE user.id = ?
        """)
      select.bind(1, try key(group))
      select.bind(2, copying: user.bytes)
      return try select.first(Self.memberRow)
    }
  }

  package func members(of group: GroupID) throws(BackendFailure) -> [MemberRow] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT \(Self.memberColumns) FROM member JOIN user ON user.key = member.user
        WHERE grp = ? AND left_at IS NULL ORDER BY user.id
        """)
      select.bind(1, try key(group))
      return try select.all(Self.memberRow)
    }
  }

  package func put(_ member: MemberRow, of group: GroupID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement(
        """
        INSERT INTO member (grp, user, role, joined, left_at, scope, read, read_counted)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (grp, user) DO UPDATE SET
          role = excluded.role, joined = excluded.joined, left_at = excluded.left_at, scope = excluded.scope,
          read = excluded.read, read_counted = excluded.read_counted
        """)
      insert.bind(1, try key(group))
      insert.bind(2, try key(member.user))
      insert.bind(3, Int64(member.role.rawValue))
      insert.bind(4, member.joinedSequence)
      insert.bind(5, optional: member.leftSequence)
      insert.bind(6, Int64(member.scope.rawValue))
      insert.bind(7, member.readSequence)
      insert.bind(8, member.readCounted)
      try insert.run()
    }
  }

  package func groups(
    of user: UserID, after: GroupID?, limit: Int
  ) throws(BackendFailure) -> [(GroupRow, MemberRow)] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT grp.id, mls_id, kind, direct_key, epoch, generation, head, counted, last_proposal, creator.id, created,
          \(Self.memberColumns)
        FROM user JOIN member ON member.user = user.key AND left_at IS NULL
        JOIN grp ON grp.key = member.grp JOIN user creator ON creator.key = created_by
        WHERE user.id = ? AND grp.id > ? ORDER BY grp.id LIMIT ?
        """)
      select.bind(1, copying: user.bytes)
      select.bind(2, copying: after?.bytes ?? [])
      select.bind(3, Int64(limit))
      return try select.all { (row) throws(SQLError) in
        (try Self.groupRow(row), try Self.memberRow(row, from: 11))
      }
    }
  }

  // MARK: Leaves

  private static let leafColumns = """
    SELECT device.id, user.id, leaf_index, added_epoch, live FROM leaf
    JOIN device ON device.key = leaf.device JOIN user ON user.key = device.user WHERE grp = ?
    """

  private static func leafRow(_ row: SQLStatement) throws(SQLError) -> LeafRow {
    LeafRow(
      device: try row.id(0), user: try row.id(1),
      index: UInt32(try row.number(2, in: StoredNumber.leafIndex)), addedEpoch: try row.epoch(3),
      isLive: try row.flag(4))
  }

  package func leaf(_ device: DeviceID, of group: GroupID) throws(BackendFailure) -> LeafRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(Self.leafColumns + " AND leaf.device = ?")
      select.bind(1, try key(group))
      select.bind(2, try key(device))
      return try select.first(Self.leafRow)
    }
  }

  package func leaves(of group: GroupID) throws(BackendFailure) -> [LeafRow] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(Self.leafColumns + " ORDER BY device.id")
      select.bind(1, try key(group))
      return try select.all(Self.leafRow)
    }
  }

  package func put(_ leaf: LeafRow, of group: GroupID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let key = try key(group)
      recipients[key] = nil
      let insert = try connection.statement(
        "INSERT OR REPLACE INTO leaf (grp, device, leaf_index, added_epoch, live) VALUES (?, ?, ?, ?, ?)")
      insert.bind(1, key)
      insert.bind(2, try self.key(leaf.device))
      insert.bind(3, Int64(leaf.index))
      insert.bind(4, Int64(leaf.addedEpoch))
      insert.bind(5, leaf.isLive ? 1 : 0)
      try insert.run()
    }
  }

  package func removeLeaf(_ device: DeviceID, of group: GroupID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let key = try key(group)
      recipients[key] = nil
      let delete = try connection.statement("DELETE FROM leaf WHERE grp = ? AND device = ?")
      delete.bind(1, key)
      delete.bind(2, try self.key(device))
      try delete.run()
    }
  }

  package func removeAllLeaves(of group: GroupID) throws(BackendFailure) {
    try sql { (connection) throws(SQLError) in
      let key = try key(group)
      recipients[key] = nil
      let delete = try connection.statement("DELETE FROM leaf WHERE grp = ?")
      delete.bind(1, key)
      try delete.run()
    }
  }

  package func contacts(of user: UserID) throws(BackendFailure) -> [DeviceID] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        """
        SELECT DISTINCT device.id FROM member JOIN leaf ON leaf.grp = member.grp AND live = 1
        JOIN device ON device.key = leaf.device
        WHERE member.user = (SELECT key FROM user WHERE id = ?) AND left_at IS NULL ORDER BY device.id
        """)
      select.bind(1, copying: user.bytes)
      return try select.all { (row) throws(SQLError) in try row.id(0) }
    }
  }
}
