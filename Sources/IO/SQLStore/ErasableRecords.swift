public import PalbeCrypto
public import PalbeUnits
import PalbeWire

/// Named values in a database whose erased and replaced bytes are really gone.
///
/// SQLite zeroes what it frees (`secure_delete`), but where it moves rows between pages it leaves copies behind that
/// it does not know of any more. So each value is stored encrypted (AES-256-GCM) under a key of its own, and the keys
/// lie in a table whose rows have one size, are never deleted and never move: a key is overwritten in place when its
/// value is replaced or erased, and with it goes every copy of the value.
///
///     let records = try ErasableRecords(connection, random: random)
///     try records.transaction { () throws(SQLError) in
///       try records.write(scope: [1], name: [2], secret.span)
///       try records.erase(scope: [1], name: [3])
///     }
///
/// With a sealing key, what lies in the table of keys is no key yet: a value's key is HMAC-SHA256(sealing key, row). Who
/// has the file alone reads no value; who has both reads none that was erased.
///
/// It keeps the bytes out of the files, not out of blocks that a drive or a file system keeps aside.
public final class ErasableRecords {
  private let connection: SQLConnection
  private var random: RandomSource
  private var sealing: HMACContext<SHA256>?
  private let context: [UInt8]
  /// Rows of keys without a value; nil: must be read.
  private var free: [Int64]?
  /// Sees every key that values are encrypted under. For tests that look for them in the file.
  var onKey: ((Span<UInt8>) -> Void)?

  private static let keyByteCount = 32
  /// For `SQLConnection.migrate`.
  public static let tables = """
    CREATE TABLE erasable_key (id INTEGER PRIMARY KEY, key BLOB NOT NULL);
    CREATE TABLE erasable_record (
      scope BLOB NOT NULL, name BLOB NOT NULL, key_id INTEGER NOT NULL, value BLOB NOT NULL,
      PRIMARY KEY (scope, name)) WITHOUT ROWID;
    """

  /// Makes the search for a row of keys without a value short, in a large table. Behind `tables`, where a file has it.
  public static let freeKeyIndex = "CREATE INDEX erasable_key_free ON erasable_key (id) WHERE \(isFree);"
  private static let isFree = "key = x'\(String(repeating: "00", count: keyByteCount))'"

  /// Records in a database that has `tables`. Keys are drawn from `random`.
  public init(_ connection: SQLConnection, random: RandomSource) {
    self.connection = connection
    self.random = random
    sealing = nil
    context = []
  }

  /// Records that are sealed.
  /// - Parameters:
  ///   - sealingKey: not in the file.
  ///   - context: authenticated with each value, such as the version of what values are.
  public init(
    _ connection: SQLConnection, random: RandomSource, sealingKey: Span<UInt8>, context: [UInt8]
  ) {
    self.connection = connection
    self.random = random
    sealing = HMACContext(key: sealingKey)
    self.context = context
  }

  /// A transaction of the connection.
  public func transaction<Result>(_ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
    do throws(SQLError) { return try connection.transaction(body) } catch {
      free = nil
      throw error
    }
  }

  /// A part of the open transaction: when it throws, nothing of the part is there, and the rest of the transaction is.
  /// Throws `unusable` where the database ended all of it. There is one part at a time.
  public func part<Result>(_ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
    try connection.setSavepoint()
    do throws(SQLError) {
      let result = try body()
      try connection.releaseSavepoint()
      return result
    } catch let cause {
      free = nil
      do throws(SQLError) {
        guard connection.hasTransaction else { throw .unusable }
        try connection.rollBackToSavepoint()
      } catch {
        // The database undid the parts before it too.
        connection.refuseEverything()
        throw .unusable
      }
      throw cause
    }
  }

  // MARK: Reading

  /// A value; nil where there is none. Throws `damagedValue` when it is not what was written under this name.
  public func read(scope: [UInt8], name: [UInt8]) throws(SQLError) -> SymmetricKey? {
    let select = try connection.statement(
      """
      SELECT value, key FROM erasable_record JOIN erasable_key ON id = key_id WHERE scope = ? AND name = ?
      """)
    select.bind(1, copying: scope)
    select.bind(2, copying: name)
    return try select.first { row throws(SQLError) in
      try row.withBytes(0) { value throws(SQLError) in
        try row.withBytes(1) { key throws(SQLError) in
          try open(value, key: key, authenticating: label(scope, name))
        }
      }
    }
  }

  /// The names in a scope that begin with `prefix`, ascending.
  public func names(scope: [UInt8], prefix: [UInt8] = []) throws(SQLError) -> [[UInt8]] {
    // Where there is no end, all that follow are under the prefix.
    let end = Self.end(of: prefix)
    let select = try connection.statement(
      "SELECT name FROM erasable_record WHERE scope = ? AND name >= ?"
        + (end == nil ? "" : " AND name < ?") + " ORDER BY name")
    select.bind(1, copying: scope)
    select.bind(2, copying: prefix)
    if let end { select.bind(3, copying: end) }
    return try select.all { row in row.bytes(0) }
  }

  /// The scopes that have values and begin with `prefix`, ascending.
  public func scopes(prefix: [UInt8] = []) throws(SQLError) -> [[UInt8]] {
    // One step for each scope, however many values it has.
    let first = try connection.statement(
      "SELECT scope FROM erasable_record WHERE scope >= ? ORDER BY scope LIMIT 1")
    let next = try connection.statement(
      "SELECT scope FROM erasable_record WHERE scope > ? ORDER BY scope LIMIT 1")
    first.bind(1, copying: prefix)
    var found: [[UInt8]] = []
    var scope = try first.first { row in row.bytes(0) }
    while let current = scope, current.starts(with: prefix) {
      found.append(current)
      next.bind(1, copying: current)
      scope = try next.first { row in row.bytes(0) }
    }
    return found
  }

  // MARK: Writing

  /// Gives a name a value, in place of the one it had.
  public func write(scope: [UInt8], name: [UInt8], _ value: Span<UInt8>) throws(SQLError) {
    let key = SymmetricKey(byteCount: Self.keyByteCount, using: &random)
    onKey?(key.span)
    let sealed = try seal(value, key: key.span, authenticating: label(scope, name))
    if let id = try keyID(scope, name) {
      let update = try connection.statement(
        "UPDATE erasable_record SET value = ? WHERE scope = ? AND name = ?")
      update.bind(2, copying: scope)
      update.bind(3, copying: name)
      try update.withBound(1, sealed.span) { () throws(SQLError) in try update.run() }
      try set(key.span, at: id)
    } else {
      let insert = try connection.statement(
        "INSERT INTO erasable_record (scope, name, key_id, value) VALUES (?, ?, ?, ?)")
      insert.bind(1, copying: scope)
      insert.bind(2, copying: name)
      insert.bind(3, try place(key.span))
      try insert.withBound(4, sealed.span) { () throws(SQLError) in try insert.run() }
    }
  }

  /// Erases a value; one that is not there stays so.
  public func erase(scope: [UInt8], name: [UInt8]) throws(SQLError) {
    guard let id = try keyID(scope, name) else { return }
    let delete = try connection.statement("DELETE FROM erasable_record WHERE scope = ? AND name = ?")
    delete.bind(1, copying: scope)
    delete.bind(2, copying: name)
    try delete.run()
    try set(SymmetricKey(copying: [UInt8](repeating: 0, count: Self.keyByteCount)).span, at: id)
    free?.append(id)
  }

  /// Erases all values of a scope whose name begins with `prefix`.
  public func eraseAll(scope: [UInt8], prefix: [UInt8] = []) throws(SQLError) {
    for name in try names(scope: scope, prefix: prefix) { try erase(scope: scope, name: name) }
  }

  // MARK: Keys

  /// Numbers of keys; one more than the last is no overflow.
  private static let ids: ClosedRange<Int64> = 1...(1 << 62)

  private func keyID(_ scope: [UInt8], _ name: [UInt8]) throws(SQLError) -> Int64? {
    let select = try connection.statement(
      "SELECT key_id FROM erasable_record WHERE scope = ? AND name = ?")
    select.bind(1, copying: scope)
    select.bind(2, copying: name)
    return try select.first { (row) throws(SQLError) in try row.number(0, in: Self.ids) }
  }

  /// Overwrites a key in place: the row's size does not change, so SQLite writes it where it is.
  private func set(_ key: Span<UInt8>, at id: Int64) throws(SQLError) {
    let update = try connection.statement("UPDATE erasable_key SET key = ? WHERE id = ?")
    update.bind(2, id)
    try update.withBound(1, key) { () throws(SQLError) in try update.run() }
  }

  /// Puts a key in a free row, else behind the last one, where no other row moves for it.
  private func place(_ key: Span<UInt8>) throws(SQLError) -> Int64 {
    var list: [Int64]
    if let free {
      list = free
    } else {
      let select = try connection.statement(
        "SELECT id FROM erasable_key WHERE \(Self.isFree) ORDER BY id DESC")
      list = try select.all { (row) throws(SQLError) in try row.number(0, in: Self.ids) }
    }
    free = nil
    if let id = list.popLast() {
      try set(key, at: id)
      free = list
      return id
    }
    let last = try connection.statement("SELECT max(id) FROM erasable_key")
    let newest = try last.first { (row) throws(SQLError) in
      row.isNull(0) ? 0 : try row.number(0, in: Self.ids)
    }
    let id = (newest ?? 0) + 1
    let insert = try connection.statement("INSERT INTO erasable_key (id, key) VALUES (?, ?)")
    insert.bind(1, id)
    try insert.withBound(2, key) { () throws(SQLError) in try insert.run() }
    free = list
    return id
  }

  // MARK: Values

  /// What a value is encrypted under, from what lies in the table of keys.
  private func valueKey(_ row: Span<UInt8>) -> SymmetricKey {
    guard sealing != nil else { return SymmetricKey(copying: row) }
    return SymmetricKey(byteCount: Self.keyByteCount) { output in
      for _ in 0..<Self.keyByteCount { output.append(0) }
      var bytes = output.mutableSpan
      sealing?.authenticate(row, into: &bytes)
    }
  }

  /// Binds a value to its name.
  private func label(_ scope: [UInt8], _ name: [UInt8]) -> [UInt8] {
    var label = ByteWriter(capacity: context.count + scope.count + name.count + 4)
    label.append(context)
    label.uint32(UInt32(scope.count))
    label.append(scope)
    label.append(name)
    return label.bytes
  }

  /// The first bytes that are not under a prefix any more; nil where there are none, as for an empty prefix.
  private static func end(of prefix: [UInt8]) -> [UInt8]? {
    var end = prefix
    while let last = end.popLast() { if last < 0xff { return end + [last + 1] } }
    return nil
  }

  /// A key encrypts one value only, so the nonce may stay the same.
  private static let nonce = [UInt8](repeating: 0, count: AEADContext.Algorithm.aes256GCM.nonceByteCount)

  private func seal(
    _ value: Span<UInt8>, key: Span<UInt8>, authenticating label: [UInt8]
  ) throws(SQLError) -> SymmetricKey {
    let count = value.count
    let key = valueKey(key)
    do throws(CryptoError) {
      var context = try AEADContext(.aes256GCM, key: key.span, direction: .seal)
      return try SymmetricKey(byteCount: count + 16) { output throws(CryptoError) in
        output.append(contentsOf: value)
        for _ in 0..<16 { output.append(0) }
        var bytes = output.mutableSpan
        try context.seal(in: &bytes, body: 0..<count, authenticating: label.span, nonce: Self.nonce.span)
      }
    } catch { throw .failed(code: -1) }
  }

  private func open(
    _ sealed: Span<UInt8>, key: Span<UInt8>, authenticating label: [UInt8]
  ) throws(SQLError) -> SymmetricKey {
    let count = sealed.count - 16
    guard count >= 0 else { throw .damagedValue }
    let key = valueKey(key)
    do throws(CryptoError) {
      var context = try AEADContext(.aes256GCM, key: key.span, direction: .open)
      let whole = try SymmetricKey(byteCount: count + 16) { output throws(CryptoError) in
        output.append(contentsOf: sealed)
        var bytes = output.mutableSpan
        try context.open(in: &bytes, body: 0..<count, authenticating: label.span, nonce: Self.nonce.span)
      }
      return SymmetricKey(copying: whole.span.extracting(0..<count))
    } catch { throw .damagedValue }
  }
}
