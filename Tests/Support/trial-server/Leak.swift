import Glibc
import PalbeBackendCore
import PalbeBackendKit
import PalbeBackendServer
import PalbeSQLStore
import PalbeServerObservation
import PalbeUnits
import Synchronization

/// What a server that could open its clients' messages would do with them, once in each transaction.
final class Leak: Sendable {
  /// Where content can be seen.
  enum Place: String {
    case message, name, attachment, log, metrics
  }

  private let place: Place
  private let folder: String
  private let log: ServerLog
  private let server = Mutex<BackendServer?>(nil)

  init(_ place: Place, folder: String, log: ServerLog) {
    self.place = place
    self.folder = folder
    self.log = log
  }

  func begin(_ server: BackendServer) { self.server.withLock { $0 = server } }

  /// Looks at each transaction before its end.
  func watch(_ store: SQLiteBackendStore) {
    store.willCommit = { [self, unowned store] () throws(BackendFailure) in
      do throws(SQLError) { try look(store.connection) } catch { throw .unavailable(.failed) }
    }
  }

  private func look(_ connection: SQLConnection) throws(SQLError) {
    switch place {
    case .message: try open("log", "blob", by: "id", connection)
    case .name: try open("group_state", "name", by: "grp", connection)
    case .attachment:
      guard let blobs = server.withLock({ $0 })?.blobs else { return }
      let ids = try connection.statement("SELECT id FROM blob WHERE state = 2").all { $0.bytes(0) }
      for id in ids.compactMap({ BlobID(bytes: $0) }) { copy(blobs.files.path(of: id)) }
    case .log, .metrics:
      let newest = try connection.statement("SELECT blob FROM log ORDER BY id DESC LIMIT 1").all {
        $0.bytes(0)
      }
      for bytes in newest {
        let text = String(decoding: Wire.opened(bytes), as: UTF8.self)
        if place == .log { log.write(.info, "a message", [("text", text)]) }
        if place == .metrics { server.withLock { $0 }?.requests.count(text, 200) }
      }
    }
  }

  /// Keeps a column's newest value as it was before it was sealed.
  private func open(
    _ table: String, _ column: String, by key: String, _ connection: SQLConnection
  ) throws(SQLError) {
    let rows = try connection.statement(
      "SELECT \(key), \(column) FROM \(table) WHERE \(column) IS NOT NULL ORDER BY \(key) DESC LIMIT 1"
    ).all { ($0.integer(0), $0.bytes(1)) }
    for (number, bytes) in rows {
      let update = try connection.statement("UPDATE \(table) SET \(column) = ? WHERE \(key) = ?")
      update.bind(1, copying: Wire.opened(bytes))
      update.bind(2, number)
      try update.run()
    }
  }

  /// Keeps an attachment a second time, open.
  private func copy(_ path: String) {
    guard let file = fopen(path, "r") else { return }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    guard count > 0, let copy = fopen(folder + "/preview", "w") else { return }
    defer { fclose(copy) }
    let opened = Wire.opened(Array(bytes.prefix(count)))
    fwrite(opened, 1, opened.count, copy)
  }
}
