import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("palbe-server check (4.1)")
final class DataCheckTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A life with every kind of row, in a folder of its own, its attachment's bytes with it.
  @discardableResult
  private func live() throws -> BlobID {
    let data = try DataFolder(folder.url.path)
    for key in DataKey.allCases where !key.isOfAccounts { _ = try data.key(key) }
    let blob = try StoredLife(in: folder.path("messages.sqlite")).blob
    let files = try BlobFiles(folder: folder.path("blobs"))
    let (descriptor, _) = try files.openPart(of: blob)
    defer { close(descriptor) }
    try files.write([1, 2, 3], at: 0, to: descriptor)
    try files.finish(blob, descriptor)
    return blob
  }

  private func check(repairs: Bool = false) -> [DataCheck.Finding] {
    var check = DataCheck(folder.url.path, repairs: repairs, hasAccounts: false)
    return check.run()
  }

  private func change(_ sql: String) throws {
    var settings = SQLConnection.Settings()
    settings.journal = .writeAhead
    try SQLConnection(path: folder.path("messages.sqlite"), settings: settings).execute(sql)
  }

  @Test("Nothing is found in what the server has made")
  func sound() throws {
    try live()
    #expect(check() == [])
    #expect(check(repairs: true) == [])
  }

  @Test(
    "Each break of an invariant is found; what can be derived is brought in order",
    arguments: [
      ("DELETE FROM device WHERE key = 1", "log rows of no group, or of no device", false),
      ("INSERT INTO push_token VALUES (99, 1, x'01')", "push tokens of no device", true),
      (
        "INSERT INTO key_package (device, reference, expires, last_resort, used, blob) VALUES (99, x'01', 1, 0, 0, x'')",
        "key packages of no device", true
      ),
      ("DELETE FROM group_state WHERE grp = 1", "groups without their state", false),
      ("INSERT INTO member VALUES (99, 1, 1, 1, NULL, 1, 0, 0)", "members of no group", true),
      ("INSERT INTO leaf VALUES (99, 1, 0, 1, 1)", "leaves of no group", true),
      ("DELETE FROM log WHERE id = 1 << 32 | 3", "sequence has a hole", false),
      ("DELETE FROM log WHERE id = 1 << 32 | 3", "sequence has a hole: grp_", false),
      (
        "UPDATE grp SET created = 9000000000000000; DELETE FROM log WHERE id >> 32 = 1",
        "commits whose row is missing in the log: grp_", false
      ),
      ("UPDATE grp SET head = head + 1 WHERE key = 1", "head is not their newest row", true),
      ("DELETE FROM commit_key WHERE grp = 1", "commits in the log that no epoch names", true),
      (
        "UPDATE commit_key SET sequence = 2 WHERE grp = 1 AND sequence = 1", "epochs whose commit is another",
        false
      ),
      ("UPDATE grp SET epoch = epoch + 1 WHERE key = 1", "epoch is not the one after", false),
      ("UPDATE log SET counted = 0 WHERE id = 1 << 32 | 4", "count of messages goes back", false),
      ("INSERT INTO queue VALUES (99, 1, 1, 1, 1, 0, NULL)", "queue rows of no device", true),
      ("INSERT INTO queue VALUES (2, 1, 1, 1, 77, 0, NULL)", "queue rows whose message is missing", false),
      ("INSERT INTO queue VALUES (2, 1, 2, 1, 77, 0, NULL)", "queue rows whose welcome is missing", true),
      ("UPDATE welcome SET readers = readers + 1", "welcomes with a wrong count", true),
      ("UPDATE state SET last_queue_id = 5", "newer than the newest id", true),
      ("UPDATE member SET read = 1000 WHERE grp = 1 AND user = 1", "beyond the head", true),
      ("UPDATE blob SET grp = 99", "blobs of no group", true),
    ])
  func broken(_ sql: String, _ words: String, _ isRepairable: Bool) throws {
    try live()
    try change(sql)
    let findings = check()
    let finding = findings.first { $0.description.contains(words) }
    #expect(finding?.isRepairable == isRepairable, "\(findings)")
    // One repair can show what another one has to bring in order.
    #expect(Set(check(repairs: true)).isSuperset(of: findings.filter { !isRepairable || $0 == finding }))
    _ = check(repairs: true)
    if isRepairable { #expect(check().allSatisfy { !$0.description.contains(words) }) }
  }

  @Test("Attachments: missing bytes, cut ones, files of none")
  func blobs() throws {
    let id = try live()
    let files = try BlobFiles(folder: folder.path("blobs"))
    try Data([1]).write(to: URL(fileURLWithPath: files.path(of: id)))
    var random = RandomSource(seed: 2)
    let stray = BlobID(at: WallTime(microseconds: 1_700_000_000_000_000), using: &random)
    let (descriptor, _) = try files.openPart(of: stray)
    close(descriptor)
    #expect(check().map(\.isRepairable) == [true, true])
    #expect(check(repairs: true).count == 2)
    #expect(check() == [])
    #expect(try files.all().isEmpty)
  }

  @Test("A file that is damaged, none, of a newer program: a finding, no crash")
  func unreadable() throws {
    #expect(check().map(\.description) == ["messages.sqlite is missing"])
    try live()
    let path = folder.path("messages.sqlite")
    try change("PRAGMA user_version = 99")
    #expect(check().first?.description.contains("version 99") == true)
    try change("PRAGMA user_version = \(Schema.steps.count)")
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    for index in stride(from: 8_192, to: bytes.count - 200, by: 4_096) {
      bytes.replaceSubrange(index..<index + 200, with: Data(repeating: 0xff, count: 200))
    }
    try bytes.write(to: URL(fileURLWithPath: path))
    let damaged = check()
    #expect(!damaged.isEmpty && damaged.allSatisfy { !$0.isRepairable })
    try Data("no database".utf8).write(to: URL(fileURLWithPath: path))
    #expect(check().count == 1)
  }
}
