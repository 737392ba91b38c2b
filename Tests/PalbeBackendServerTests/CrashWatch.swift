import Foundation
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import Testing

/// Looks at what lies on the disk around the end of each transaction of the database "db", as a crash would leave it.
final class CrashWatch {
  private let folder: TemporaryFolder
  private let connection: SQLConnection
  /// The contents after each transaction that wrote something.
  private(set) var states: [[String]]

  init(_ folder: TemporaryFolder, _ connection: SQLConnection) throws {
    self.folder = folder
    self.connection = connection
    states = [try contents(connection)]
  }

  /// The file is still the one before.
  func willCommit() {
    do {
      // What only reads, writes nothing.
      guard try contents(connection) != states.last else { return }
      let found = try contents(folder.copyDatabase(to: "crash"))
      #expect(found == states.last)
    } catch { Issue.record(error) }
  }

  /// The file is the one after it.
  func didCommit() {
    do {
      let now = try contents(connection)
      guard now != states.last else { return }
      let found = try contents(folder.copyDatabase(to: "crash"))
      #expect(found == now)
      states.append(now)
    } catch { Issue.record(error) }
  }

  /// A log cut anywhere holds the transactions that are whole in it.
  func checkCutLogs() throws {
    let size = try Data(contentsOf: URL(fileURLWithPath: folder.path("db-wal"))).count
    var random = RandomSource(seed: 5)
    for _ in 0..<40 {
      let cut = Int(random.next() % UInt64(size))
      let found = try contents(folder.copyDatabase(to: "crash", truncatingLogTo: cut))
      #expect(found.isEmpty || states.contains(found) || found.count < states[0].count, "cut at \(cut)")
    }
    #expect(try contents(folder.copyDatabase(to: "crash", truncatingLogTo: size)) == states.last)
  }
}
