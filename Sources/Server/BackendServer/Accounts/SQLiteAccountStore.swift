import PalbeAccountsCore
import PalbeBackendCore
import PalbeCrypto
import PalbeSQLStore
import PalbeUnits

/// Accounts and sessions in one SQLite file of their own, so that a backup of messages holds no password's hash.
///
/// As `SQLiteBackendStore`: when `commit` returns, its transaction is on the medium. One process at a time, on one thread.
package final class SQLiteAccountStore: AccountStore {
  private(set) var connection: SQLConnection
  private let path: String
  private let place: FilePlace?
  /// Called around the write of each transaction, for tests that end it there.
  var willCommit: () throws(AccountFailure) -> Void = {}
  var didCommit: () throws(AccountFailure) -> Void = {}

  /// Opens or makes a file, and brings its tables to the newest version. Throws `busy` while another process has it.
  /// - Parameter mayBeNew: otherwise a file without tables is refused with `noTables`, and stays as it is.
  package init(path: String, mayBeNew: Bool = true) throws(SQLError) {
    self.path = path
    connection = try Self.open(path, mayBeNew: mayBeNew)
    place = FilePlace(path)
  }

  /// See `SQLiteBackendStore`.
  private func checkPlace() throws(AccountFailure) {
    if let place, !place.isKept { throw .unavailable(.displaced) }
  }

  private static func open(_ path: String, mayBeNew: Bool) throws(SQLError) -> SQLConnection {
    let connection = try SQLConnection(path: path, settings: .server())
    try connection.migrate(AccountSchema.steps, mayBeNew: mayBeNew)
    return connection
  }

  /// False once an error left open whether a transaction is there: everything is refused until `reopen`.
  var isUsable: Bool { connection.isUsable }

  /// Opens the file again, and no other one in its place. When that fails, everything is still refused.
  func reopen() throws(SQLError) {
    if let place, !place.isKept { throw .displaced }
    connection = try .refusing()
    connection = try Self.open(path, mayBeNew: false)
  }

  // MARK: Transactions

  package func begin() throws(AccountFailure) {
    try checkPlace()
    try sql { (connection) throws(SQLError) in try connection.begin() }
  }

  package func commit() throws(AccountFailure) {
    try checkPlace()
    try willCommit()
    try sql { (connection) throws(SQLError) in try connection.commit() }
    try didCommit()
  }

  package func rollBack() {
    // What cannot be rolled back is refused by the connection from now on.
    try? connection.rollBack()
  }

  private func sql<Result>(
    _ body: (SQLConnection) throws(SQLError) -> Result
  ) throws(AccountFailure) -> Result {
    do throws(SQLError) { return try body(connection) } catch { throw .unavailable(StoreFault(error)) }
  }

  // MARK: Accounts

  private static let accountColumns =
    "account.user, account.email, account.salt, account.hash, account.n, account.r, account.p, account.created"

  private func account(
    where condition: StaticString, _ values: [UInt8]...
  ) throws(AccountFailure) -> AccountRow? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT \(Self.accountColumns) FROM account \(condition)")
      for (index, value) in values.enumerated() { select.bind(Int32(index + 1), copying: value) }
      return try select.first { (row) throws(SQLError) in
        var password: PasswordRecord?
        if !row.isNull(3) {
          guard
            let cost = Scrypt.Cost(
              n: Int(try row.count(4)), r: Int(try row.count(5)), p: Int(try row.count(6)))
          else { throw .damagedValue }
          password = PasswordRecord(salt: row.bytes(2), hash: row.bytes(3), cost: cost)
        }
        return AccountRow(
          user: try row.id(0),
          email: row.optionalBytes(1).map { Email(stored: String(decoding: $0, as: UTF8.self)) },
          password: password, createdAt: try row.time(7))
      }
    }
  }

  package func account(_ user: UserID) throws(AccountFailure) -> AccountRow? {
    try account(where: "WHERE user = ?", user.bytes)
  }

  package func account(email: Email) throws(AccountFailure) -> AccountRow? {
    try account(where: "WHERE email = ?", Array(email.text.utf8))
  }

  package func account(of identity: ExternalIdentity) throws(AccountFailure) -> AccountRow? {
    try account(
      where: "JOIN identity ON identity.user = account.user WHERE issuer = ? AND subject = ?",
      Array(identity.issuer.utf8), Array(identity.subject.utf8))
  }

  package func insert(_ account: AccountRow, of identity: ExternalIdentity?) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement("INSERT INTO account VALUES (?, ?, ?, ?, ?, ?, ?, ?)")
      insert.bind(1, copying: account.user.bytes)
      insert.bind(2, optional: account.email.map { Array($0.text.utf8) })
      Self.bind(account.password, to: insert, from: 3)
      insert.bind(8, account.createdAt.microseconds)
      try insert.run()
      guard let identity else { return }
      let name = try connection.statement("INSERT INTO identity VALUES (?, ?, ?)")
      name.bind(1, copying: Array(identity.issuer.utf8))
      name.bind(2, copying: Array(identity.subject.utf8))
      name.bind(3, copying: account.user.bytes)
      try name.run()
    }
  }

  package func setPassword(_ password: PasswordRecord, of user: UserID) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let update = try connection.statement(
        "UPDATE account SET salt = ?, hash = ?, n = ?, r = ?, p = ? WHERE user = ?")
      Self.bind(password, to: update, from: 1)
      update.bind(6, copying: user.bytes)
      try update.run()
    }
  }

  private static func bind(_ password: PasswordRecord?, to statement: SQLStatement, from place: Int32) {
    statement.bind(place, optional: password?.salt)
    statement.bind(place + 1, optional: password?.hash)
    statement.bind(place + 2, optional: password.map { Int64($0.cost.n) })
    statement.bind(place + 3, optional: password.map { Int64($0.cost.r) })
    statement.bind(place + 4, optional: password.map { Int64($0.cost.p) })
  }

  // MARK: Sessions

  private func sessions(where column: StaticString, _ value: [UInt8]) throws(AccountFailure) -> [SessionRow] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT * FROM session WHERE \(column) = ? ORDER BY id")
      select.bind(1, copying: value)
      return try select.all { (row) throws(SQLError) in
        SessionRow(
          id: try row.id(0), user: try row.id(1), createdAt: try row.time(2), lastUsedAt: try row.time(3),
          expiresAt: try row.time(4), generation: try row.count(5), current: row.bytes(6),
          previous: row.isNull(7)
            ? nil : .init(hash: row.bytes(7), at: try row.time(8), cover: row.bytes(9)),
          userAgent: String(decoding: row.bytes(10), as: UTF8.self), device: try row.optional(11, row.id))
      }
    }
  }

  package func session(_ id: SessionID) throws(AccountFailure) -> SessionRow? {
    try sessions(where: "id", id.bytes).first
  }

  package func sessions(of user: UserID) throws(AccountFailure) -> [SessionRow] {
    try sessions(where: "user", user.bytes)
  }

  package func sessions(of device: DeviceID) throws(AccountFailure) -> [SessionRow] {
    try sessions(where: "device", device.bytes)
  }

  package func put(_ session: SessionRow) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let put = try connection.statement(
        "INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      put.bind(1, copying: session.id.bytes)
      put.bind(2, copying: session.user.bytes)
      put.bind(3, session.createdAt.microseconds)
      put.bind(4, session.lastUsedAt.microseconds)
      put.bind(5, session.expiresAt.microseconds)
      put.bind(6, session.generation)
      put.bind(7, copying: session.current)
      put.bind(8, optional: session.previous?.hash)
      put.bind(9, optional: session.previous?.at.microseconds)
      put.bind(10, optional: session.previous?.cover)
      put.bind(11, copying: Array(session.userAgent.utf8))
      put.bind(12, optional: session.device?.bytes)
      try put.run()
    }
  }

  package func removeSession(_ id: SessionID) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let delete = try connection.statement("DELETE FROM session WHERE id = ?")
      delete.bind(1, copying: id.bytes)
      try delete.run()
    }
  }

  package func sessions(expiredAt time: WallTime, limit: Int) throws(AccountFailure) -> [SessionID] {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement(
        "SELECT id FROM session WHERE expires <= ? ORDER BY expires, id LIMIT ?")
      select.bind(1, time.microseconds)
      select.bind(2, Int64(limit))
      return try select.all { (row) throws(SQLError) in try row.id(0) }
    }
  }

  // MARK: Refused tokens

  package func refuse(_ session: SessionID, _ refusal: Refusal) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let insert = try connection.statement("INSERT OR REPLACE INTO refused VALUES (?, ?, ?)")
      insert.bind(1, copying: session.bytes)
      insert.bind(2, refusal.until.microseconds)
      insert.bind(3, refusal.isDeviceRevoked ? 1 : 0)
      try insert.run()
    }
  }

  private func refusals(_ condition: StaticString, _ values: [UInt8]...) throws(AccountFailure) -> [SessionID:
    Refusal]
  {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT session, until, device_revoked FROM refused \(condition)")
      for (index, value) in values.enumerated() { select.bind(Int32(index + 1), copying: value) }
      let rows = try select.all { (row) throws(SQLError) -> (SessionID, Refusal) in
        (try row.id(0), Refusal(until: try row.time(1), isDeviceRevoked: try row.flag(2)))
      }
      return Dictionary(uniqueKeysWithValues: rows)
    }
  }

  package func refusal(of session: SessionID) throws(AccountFailure) -> Refusal? {
    try refusals("WHERE session = ?", session.bytes)[session]
  }

  package func refused() throws(AccountFailure) -> [SessionID: Refusal] { try refusals("") }

  package func dropRefused(before time: WallTime) throws(AccountFailure) {
    try sql { (connection) throws(SQLError) in
      let last = try connection.statement("SELECT max(until) FROM refused WHERE until <= ?")
      last.bind(1, time.microseconds)
      let dropped = try last.first { (row) throws(SQLError) in try row.optional(0, row.time) }
      guard let latest = dropped ?? nil else { return }
      let note = try connection.statement(
        "UPDATE state SET last_dropped = max(ifnull(last_dropped, ?1), ?1) WHERE id = 1")
      note.bind(1, latest.microseconds)
      try note.run()
      let delete = try connection.statement("DELETE FROM refused WHERE until <= ?")
      delete.bind(1, time.microseconds)
      try delete.run()
    }
  }

  package func lastDropped() throws(AccountFailure) -> WallTime? {
    try sql { (connection) throws(SQLError) in
      let select = try connection.statement("SELECT last_dropped FROM state WHERE id = 1")
      return try select.first { (row) throws(SQLError) in try row.optional(0, row.time) } ?? nil
    }
  }
}
