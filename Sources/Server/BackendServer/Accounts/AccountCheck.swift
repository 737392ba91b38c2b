import PalbeCrypto
import PalbeSQLStore
import PalbeUnits

/// Looks whether a file of accounts holds together, for `palbe-server check`.
///
///     for problem in try AccountCheck.problems(in: "/var/lib/palbe/accounts.sqlite") { print(problem) }
package enum AccountCheck {
  /// What must not be there, in words for an operator, each with a statement that counts it.
  private static let rules: [(words: String, count: String)] = [
    ("sessions of nobody", "SELECT count(*) FROM session WHERE user NOT IN (SELECT user FROM account)"),
    ("identities of nobody", "SELECT count(*) FROM identity WHERE user NOT IN (SELECT user FROM account)"),
    (
      "accounts that nobody can sign in to",
      "SELECT count(*) FROM account WHERE hash IS NULL AND user NOT IN (SELECT user FROM identity)"
    ),
    (
      "passwords without an e-mail, a salt or a cost",
      """
      SELECT count(*) FROM account WHERE hash IS NOT NULL AND (email IS NULL OR salt IS NULL OR length(salt) <> 16
        OR length(hash) <> 32 OR n IS NULL OR r IS NULL OR p IS NULL)
      """
    ),
    (
      "ids that are none",
      """
      SELECT (SELECT count(*) FROM account WHERE length(user) <> 16)
        + (SELECT count(*) FROM session WHERE length(id) <> 16 OR length(ifnull(device, id)) <> 16)
        + (SELECT count(*) FROM refused WHERE length(session) <> 16)
      """
    ),
    (
      "sessions without a refresh token",
      """
      SELECT count(*) FROM session WHERE length(current) <> 32 OR generation < 1 OR (previous IS NULL) <> (cover IS NULL)
        OR (previous IS NULL) <> (replaced IS NULL) OR length(ifnull(cover, current)) <> 32
      """
    ),
    ("sessions that are over", "SELECT count(*) FROM session WHERE id IN (SELECT session FROM refused)"),
  ]

  /// What is wrong in a file that no server has open; none is good. Throws `busy` while one has, `newerVersion` for a file of a
  /// newer program.
  package static func problems(in path: String) throws(SQLError) -> [String] {
    let connection = try SQLConnection(path: path, settings: .server())
    let version = try connection.userVersion
    guard version <= AccountSchema.steps.count else {
      throw .newerVersion(found: version, known: AccountSchema.steps.count)
    }
    guard version > 0 else { return ["no tables"] }
    let integrity = try connection.statement("PRAGMA integrity_check(20)").all { row in row.text(0) }
    guard integrity == ["ok"] else { return integrity }
    // Rules reckon with what is there.
    var problems = try connection.damagedValues(in: AccountSchema.tables)
    guard problems.isEmpty else { return problems }
    for rule in rules {
      let count = try connection.statement(rule.count).first { row in row.integer(0) } ?? 0
      if count > 0 { problems.append("\(count) \(rule.words)") }
    }
    let costs = try connection.statement("SELECT DISTINCT n, r, p FROM account WHERE hash IS NOT NULL")
      .all { row in [row.integer(0), row.integer(1), row.integer(2)].map { Int($0) } }
    for cost in costs where Scrypt.Cost(n: cost[0], r: cost[1], p: cost[2]) == nil {
      problems.append("a password's cost that is none: \(cost)")
    }
    return problems
  }
}
