import Glibc
import PalbeBackendCore
import PalbeSQLStore
import PalbeUnits

/// Looks whether a folder holds what the server relies on (requirements 4.1), and repairs what can be derived.
///
/// It needs the folder for itself: of a server that runs, check a backup.
package struct DataCheck {
  /// Something that is not as it has to be.
  package struct Finding: Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, for a person: names of tables and numbers, never what they hold.
    package var description: String
    /// It can be derived from the rest; `check` with repair has done it.
    package var isRepairable: Bool

    init(description: String, isRepairable: Bool) {
      self.description = description
      self.isRepairable = isRepairable
    }

    /// A write-ahead log that must be there.
    init(lostLog name: String) {
      self.init(description: "\(name) is gone: what was taken last is lost", isRepairable: false)
    }
  }

  /// What is looked at: rows that must not be, how that is told, and what brings it in order.
  private struct Rule {
    let words: String
    /// Counts what is wrong.
    let count: String
    /// Selects the keys of the groups that it is about.
    var groups: String?
    /// Nil where nothing can be derived.
    var repair: String?
  }

  private static let missingCommits = """
    (SELECT c.grp AS grp FROM commit_key AS c LEFT JOIN log ON log.id = c.grp << 32 | c.sequence
      LEFT JOIN (SELECT id >> 32 AS grp, min(id & 0xffffffff) AS oldest FROM log GROUP BY id >> 32) AS kept
        ON kept.grp = c.grp
      JOIN grp ON grp.key = c.grp
      WHERE log.id IS NULL AND (c.sequence >= kept.oldest OR kept.oldest IS NULL
        AND grp.created > (CAST(strftime('%s', 'now') AS INTEGER) - 86400) * 1000000))
    """

  private static let rules: [Rule] = [
    Rule(
      words: "devices of no user",
      count: "SELECT count(*) FROM device WHERE user NOT IN (SELECT key FROM user)"),
    Rule(
      words: "push tokens of no device",
      count: "SELECT count(*) FROM push_token WHERE device NOT IN (SELECT key FROM device)",
      repair: "DELETE FROM push_token WHERE device NOT IN (SELECT key FROM device)"),
    Rule(
      words: "key packages of no device",
      count: "SELECT count(*) FROM key_package WHERE device NOT IN (SELECT key FROM device)",
      repair: "DELETE FROM key_package WHERE device NOT IN (SELECT key FROM device)"),
    Rule(
      words: "groups without their state",
      count: "SELECT count(*) FROM grp WHERE key NOT IN (SELECT grp FROM group_state)",
      groups: "SELECT key FROM grp WHERE key NOT IN (SELECT grp FROM group_state)"),
    Rule(
      words: "states of no group",
      count: "SELECT count(*) FROM group_state WHERE grp NOT IN (SELECT key FROM grp)",
      repair: "DELETE FROM group_state WHERE grp NOT IN (SELECT key FROM grp)"),
    Rule(
      words: "members of no group, or who are no user",
      count: """
        SELECT count(*) FROM member WHERE grp NOT IN (SELECT key FROM grp) OR user NOT IN (SELECT key FROM user)
        """,
      repair: """
        DELETE FROM member WHERE grp NOT IN (SELECT key FROM grp) OR user NOT IN (SELECT key FROM user)
        """),
    Rule(
      words: "leaves of no group, or of no device",
      count: """
        SELECT count(*) FROM leaf WHERE grp NOT IN (SELECT key FROM grp) OR device NOT IN (SELECT key FROM device)
        """,
      repair: """
        DELETE FROM leaf WHERE grp NOT IN (SELECT key FROM grp) OR device NOT IN (SELECT key FROM device)
        """),
    Rule(
      words: "log rows of no group, or of no device",
      count: """
        SELECT count(*) FROM log WHERE id >> 32 NOT IN (SELECT key FROM grp)
          OR sender NOT IN (SELECT key FROM device)
        """),
    // The log is cut at its beginning only, so what is left has no hole.
    Rule(
      words: "groups whose sequence has a hole",
      count: """
        SELECT count(*) FROM (SELECT id >> 32 AS grp FROM log GROUP BY id >> 32
          HAVING count(*) <> max(id & 0xffffffff) - min(id & 0xffffffff) + 1)
        """,
      groups: """
        SELECT id >> 32 FROM log GROUP BY id >> 32
          HAVING count(*) <> max(id & 0xffffffff) - min(id & 0xffffffff) + 1
        """),
    // Of a log without any row only a young group tells: what is older than a day, the shortest retention, may have expired.
    Rule(
      words: "commits whose row is missing in the log",
      count: "SELECT count(*) FROM \(missingCommits)", groups: "SELECT grp FROM \(missingCommits)"),
    Rule(
      words: "groups whose head is not their newest row",
      count: """
        SELECT count(*) FROM grp JOIN (SELECT id >> 32 AS grp, max(id & 0xffffffff) AS newest FROM log GROUP BY id >> 32)
          AS last ON last.grp = grp.key WHERE newest <> head
        """,
      groups: """
        SELECT key FROM grp JOIN (SELECT id >> 32 AS grp, max(id & 0xffffffff) AS newest FROM log GROUP BY id >> 32)
          AS last ON last.grp = grp.key WHERE newest <> head
        """,
      repair: """
        UPDATE grp SET head = newest FROM (
          SELECT id >> 32 AS grp, max(id & 0xffffffff) AS newest FROM log GROUP BY id >> 32) AS last
        WHERE last.grp = grp.key AND newest <> head
        """),
    Rule(
      words: "commits in the log that no epoch names",
      count: """
        SELECT count(*) FROM log WHERE kind = \(LogKind.commit.rawValue) AND NOT EXISTS (
          SELECT 1 FROM commit_key WHERE grp = log.id >> 32 AND commit_key.generation = log.generation
            AND commit_key.epoch = log.epoch AND sequence = log.id & 0xffffffff)
        """,
      repair: """
        INSERT OR IGNORE INTO commit_key (grp, generation, epoch, sequence)
        SELECT id >> 32, generation, epoch, id & 0xffffffff FROM log WHERE kind = \(LogKind.commit.rawValue)
        """),
    Rule(
      words: "epochs whose commit is another kind of row",
      count: """
        SELECT count(*) FROM commit_key JOIN log ON log.id = grp << 32 | sequence
        WHERE log.kind <> \(LogKind.commit.rawValue) OR log.epoch <> commit_key.epoch
          OR log.generation <> commit_key.generation
        """,
      groups: """
        SELECT grp FROM commit_key JOIN log ON log.id = grp << 32 | sequence
        WHERE log.kind <> \(LogKind.commit.rawValue) OR log.epoch <> commit_key.epoch
          OR log.generation <> commit_key.generation
        """),
    Rule(
      words: "groups whose epoch is not the one after their last commit",
      count: """
        SELECT count(*) FROM grp JOIN (SELECT grp, generation, max(epoch) AS last FROM commit_key
          GROUP BY grp, generation) AS newest ON newest.grp = grp.key AND newest.generation = grp.generation
        WHERE grp.epoch <> last + 1
        """,
      groups: """
        SELECT key FROM grp JOIN (SELECT grp, generation, max(epoch) AS last FROM commit_key
          GROUP BY grp, generation) AS newest ON newest.grp = grp.key AND newest.generation = grp.generation
        WHERE grp.epoch <> last + 1
        """),
    Rule(
      words: "groups whose count of messages goes back",
      count: """
        SELECT count(DISTINCT later.id >> 32) FROM log AS later JOIN log AS earlier ON earlier.id = later.id - 1
        WHERE earlier.id >> 32 = later.id >> 32 AND later.counted < earlier.counted
        """,
      groups: """
        SELECT later.id >> 32 FROM log AS later JOIN log AS earlier ON earlier.id = later.id - 1
        WHERE earlier.id >> 32 = later.id >> 32 AND later.counted < earlier.counted
        """),
    Rule(
      words: "queue rows of no device, or of no group",
      count: """
        SELECT count(*) FROM queue WHERE device NOT IN (SELECT key FROM device)
          OR (grp <> 0 AND grp NOT IN (SELECT key FROM grp))
        """,
      repair: """
        DELETE FROM queue WHERE device NOT IN (SELECT key FROM device)
          OR (grp <> 0 AND grp NOT IN (SELECT key FROM grp))
        """),
    // A row whose message was cut off with the log's beginning tells the device of the gap.
    Rule(
      words: "queue rows whose message is missing in the log",
      count: """
        SELECT count(*) FROM queue WHERE kind = 1 AND NOT EXISTS (
          SELECT 1 FROM log WHERE log.id = queue.grp << 32 | queue.reference)
        AND reference >= (
          SELECT id & 0xffffffff FROM log WHERE id BETWEEN queue.grp << 32 AND queue.grp << 32 | 0xffffffff
          ORDER BY id LIMIT 1)
        """),
    Rule(
      words: "queue rows whose welcome is missing",
      count: "SELECT count(*) FROM queue WHERE kind = 2 AND reference NOT IN (SELECT key FROM welcome)",
      repair: "DELETE FROM queue WHERE kind = 2 AND reference NOT IN (SELECT key FROM welcome)"),
    Rule(
      words: "welcomes with a wrong count of readers",
      count: """
        SELECT count(*) FROM welcome LEFT JOIN (
          SELECT reference, count(*) AS count FROM queue WHERE kind = 2 GROUP BY reference) AS rows
        ON rows.reference = welcome.key WHERE readers <> coalesce(rows.count, 0)
        """,
      repair: """
        DELETE FROM welcome WHERE key NOT IN (SELECT reference FROM queue WHERE kind = 2);
        UPDATE welcome SET readers = rows.count FROM (
          SELECT reference, count(*) AS count FROM queue WHERE kind = 2 GROUP BY reference) AS rows
        WHERE rows.reference = welcome.key
        """),
    Rule(
      words: "queue rows newer than the newest id given out",
      count: "SELECT count(*) FROM queue WHERE id > (SELECT last_queue_id FROM state)",
      repair: "UPDATE state SET last_queue_id = max(last_queue_id, (SELECT max(id) FROM queue))"),
    Rule(
      words: "positions of reading or delivery beyond the head",
      count: """
        SELECT (SELECT count(*) FROM member JOIN grp ON grp.key = member.grp WHERE read > head)
          + (SELECT count(*) FROM delivered JOIN grp ON grp.key = delivered.grp WHERE sequence > head)
        """,
      repair: """
        UPDATE member SET read = (SELECT head FROM grp WHERE key = grp)
        WHERE read > (SELECT head FROM grp WHERE key = member.grp);
        UPDATE delivered SET sequence = (SELECT head FROM grp WHERE key = delivered.grp)
        WHERE sequence > (SELECT head FROM grp WHERE key = delivered.grp)
        """),
    Rule(
      words: "blobs of no group",
      count: "SELECT count(*) FROM blob WHERE grp NOT IN (SELECT key FROM grp)",
      repair: "DELETE FROM blob WHERE grp NOT IN (SELECT key FROM grp)"),
  ]

  private let folder: String
  private let repairs: Bool
  private let hasAccounts: Bool
  /// Whether anybody was ever registered: then nothing is missing because it was not made yet.
  private var hasUsers = false
  private var findings: [Finding] = []

  /// - Parameters:
  ///   - folder: locked by the caller, without a slash at its end.
  ///   - repairs: brings in order what can be derived.
  ///   - hasAccounts: false when somebody else knows the sessions.
  package init(_ folder: String, repairs: Bool, hasAccounts: Bool = true) {
    self.folder = folder
    self.repairs = repairs
    self.hasAccounts = hasAccounts
  }

  /// Everything that was found, also what was repaired.
  package mutating func run() -> [Finding] {
    checkMessages()
    if hasAccounts { checkAccounts() }
    for key in DataKey.allCases where hasAccounts || !key.isOfAccounts {
      if let problem = key.problem(in: folder, mayBeNew: !hasUsers) { found(problem) }
    }
    return findings
  }

  private func path(_ name: String) -> String { folder + "/" + name }

  private mutating func found(_ words: String, isRepairable: Bool = false) {
    findings.append(Finding(description: words, isRepairable: isRepairable))
  }

  /// Opens a database file; nil after a finding.
  private mutating func open(_ name: String, newest: Int) -> SQLConnection? {
    let path = path(name)
    guard access(path, F_OK) == 0 else {
      found("\(name) is missing")
      return nil
    }
    do throws(SQLError) {
      let connection = try SQLConnection(path: path, settings: .server())
      let version = try connection.userVersion
      guard version <= newest else { throw .newerVersion(found: version, known: newest) }
      // An empty file is a database too, and a server that starts with it has forgotten everything.
      guard version > 0 else {
        found("\(name) has no tables")
        return nil
      }
      for line in try connection.statement("PRAGMA integrity_check").all({ $0.text(0) }) where line != "ok" {
        found("\(name): \(line)")
      }
      for table in try connection.statement("PRAGMA foreign_key_check").all({ $0.text(0) }) {
        found("\(name): a row of '\(table)' refers to nothing")
      }
      return connection
    } catch {
      found("\(name) cannot be read: \(error.words)")
      return nil
    }
  }

  private mutating func checkAccounts() {
    let name = "accounts.sqlite"
    guard access(path(name), F_OK) == 0 else {
      if hasUsers { found("\(name) is missing") }
      return
    }
    do throws(SQLError) {
      for problem in try AccountCheck.problems(in: path(name)) { found("\(name): \(problem)") }
    } catch { found("\(name) cannot be read: \(error.words)") }
  }

  private mutating func checkMessages() {
    let name = "messages.sqlite"
    guard let connection = open(name, newest: Schema.steps.count), findings.isEmpty else { return }
    do throws(SQLError) {
      try connection.migrate(Schema.steps)
      hasUsers = try connection.statement("SELECT 1 FROM user LIMIT 1").first { _ in true } ?? false
      // Rules reckon with what is there, and a repair would spread it.
      for words in try connection.damagedValues(in: Schema.tables) { found("\(name): \(words)") }
      guard findings.isEmpty else { return }
      for rule in Self.rules {
        let count = try connection.statement(rule.count).first { $0.integer(0) } ?? 0
        guard count > 0 else { continue }
        let names = try groups(of: rule, connection)
        found("\(count) \(rule.words)\(names)", isRepairable: rule.repair != nil)
        guard repairs, let repair = rule.repair else { continue }
        try connection.transaction { () throws(SQLError) in try connection.execute(repair) }
      }
      try checkBlobs(connection)
    } catch {
      found("\(name) cannot be read: \(error.words)")
    }
  }

  /// Their ids behind a colon, the first few of them.
  private func groups(of rule: Rule, _ connection: SQLConnection) throws(SQLError) -> String {
    guard let keys = rule.groups else { return "" }
    let ids = try connection.statement("SELECT id FROM grp WHERE key IN (\(keys)) ORDER BY key").all {
      (row) throws(SQLError) -> GroupID in try row.id(0)
    }
    return Self.named(ids.map(\.text))
  }

  private static let namedCount = 5

  private static func named(_ ids: [String]) -> String {
    guard !ids.isEmpty else { return "" }
    let rest = ids.count - namedCount
    return ": " + ids.prefix(namedCount).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }

  private mutating func checkBlobs(_ connection: SQLConnection) throws(SQLError) {
    let rows = try connection.statement("SELECT id, size, state FROM blob").all {
      (row) throws(SQLError) -> (BlobID, Int64, Bool) in
      let state: BlobState = try row.choice(2)
      return (try row.id(0), try row.count(1), state == .ready)
    }
    do throws(BlobFault) {
      let files = try BlobFiles(folder: path("blobs"))
      let found = try files.all()
      let whole = Dictionary(
        found.compactMap { id, state in if case .whole(let count) = state { (id, count) } else { nil } },
        uniquingKeysWith: { first, _ in first })
      let missing = rows.filter { $0.2 && whole[$0.0] != $0.1 }.map(\.0)
      if !missing.isEmpty {
        self.found(
          "\(missing.count) attachments whose bytes are missing or cut\(Self.named(missing.map(\.text)))",
          isRepairable: true)
      }
      let known = Set(rows.map(\.0))
      let orphans = Set(found.map(\.id)).subtracting(known)
      if !orphans.isEmpty {
        self.found(
          "\(orphans.count) files of no attachment\(Self.named(orphans.map(\.text).sorted()))",
          isRepairable: true)
      }
      guard repairs else { return }
      for id in orphans.union(missing) { try files.remove(id) }
      do throws(SQLError) {
        try connection.transaction { () throws(SQLError) in
          let delete = try connection.statement("DELETE FROM blob WHERE id = ?")
          for id in missing {
            delete.bind(1, copying: id.bytes)
            try delete.run()
          }
        }
      } catch { self.found("messages.sqlite cannot be written: \(error.words)") }
    } catch {
      self.found("the folder of attachments cannot be read: \(error)")
    }
  }
}
