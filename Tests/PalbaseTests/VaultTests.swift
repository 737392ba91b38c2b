import Foundation
import PalbeSDKKit
import PalbeTestKit
import PalbeUnits
import Testing

@testable import Palbase

private struct Crash: Error {}

@Suite("Vault: secrets in files (2.12, issue 5 item 4)")
struct VaultTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("vault") }
  init() throws { folder = try TemporaryFolder() }

  private func vault(
    _ passphrase: String? = nil, witness: AtomicFile.Witness? = nil, seed: UInt64 = .random(in: 0 ... .max)
  ) throws -> FileKeyVault {
    try FileKeyVault(
      folder: path, passphrase: passphrase.map { Array($0.utf8) }, random: RandomSource(seed: seed),
      cost: [4, 1, 1], witness: witness)
  }

  private func mode(_ name: String) throws -> Int {
    try #require(
      try FileManager.default.attributesOfItem(atPath: path + name)[.posixPermissions] as? Int)
  }

  @Test("Round trip, replacement, removal, names; also for another instance")
  func roundTrip() throws {
    let one = try vault()
    #expect(try one.read("session") == nil)
    try one.write([1, 2, 3], as: "session")
    try one.write([], as: "device.usr_1")
    try one.write([UInt8](repeating: 7, count: 1 << 20), as: "session")
    let two = try vault()
    #expect(try two.read("session") == [UInt8](repeating: 7, count: 1 << 20))
    #expect(try two.read("device.usr_1") == [])
    #expect(try two.names() == ["device.usr_1", "session"])
    try two.remove("session")
    try two.remove("session")
    #expect(try one.read("session") == nil)
  }

  @Test("Nobody else may read: folder 0700, files 0600, also when they were copied with another mode")
  func modes() throws {
    try vault().write([1], as: "session")
    #expect(try mode("") == 0o700)
    #expect(try mode("/session.sealed") == 0o600 && mode("/vault.key") == 0o600)
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o644], ofItemAtPath: path + "/session.sealed")
    #expect(try vault().read("session") == [1])
    #expect(try mode("") == 0o700 && mode("/session.sealed") == 0o600)
  }

  @Test("A secret is nowhere in the folder in clear, and the same secret is never sealed the same way")
  func sealed() throws {
    let marker = Array("a marker that nobody else writes".utf8)
    let vault = try vault()
    try vault.write(marker, as: "session")
    let first = try #require(FileManager.default.contents(atPath: path + "/session.sealed"))
    try vault.write(marker, as: "session")
    #expect(FileManager.default.contents(atPath: path + "/session.sealed") != first)
    #expect(first.range(of: Data(marker)) == nil)
  }

  @Test("Every changed byte and every prefix of a record is `corrupted` with its name, never nil or garbage")
  func corrupted() throws {
    let vault = try vault()
    try vault.write([1, 2, 3], as: "session")
    let file = URL(fileURLWithPath: path + "/session.sealed")
    let whole = try Data(contentsOf: file)
    for index in whole.indices {
      var changed = whole
      changed[index] ^= 1
      try changed.write(to: file)
      let error = #expect(throws: StoreFault.self) { try vault.read("session") }
      #expect(error == .corrupted("session") || index == 3 && error == .newerSchema)
    }
    for count in 0..<whole.count {
      try whole[..<count].write(to: file)
      #expect(throws: StoreFault.corrupted("session")) { try vault.read("session") }
    }
    try (whole + whole).write(to: file)
    #expect(throws: StoreFault.corrupted("session")) { try vault.read("session") }
    try vault.write([4], as: "session")
    #expect(try vault.read("session") == [4])
  }

  @Test("A record under another name, or of another vault, does not open")
  func exchanged() throws {
    let vault = try vault()
    try vault.write([1], as: "session")
    try FileManager.default.copyItem(atPath: path + "/session.sealed", toPath: path + "/other.sealed")
    #expect(throws: StoreFault.corrupted("other")) { try vault.read("other") }
  }

  @Test("A lost key is an error, not a reason to make another; a damaged one too")
  func lostKey() throws {
    try vault().write([1], as: "session")
    let key = URL(fileURLWithPath: path + "/vault.key")
    let whole = try Data(contentsOf: key)
    try FileManager.default.removeItem(at: key)
    #expect(throws: StoreFault.keyMissing) { try vault() }
    for index in whole.indices {
      var changed = whole
      changed[index] ^= 0x40
      try changed.write(to: key)
      #expect(throws: StoreFault.self) { try vault() }
    }
    for count in 0..<whole.count {
      try whole[..<count].write(to: key)
      #expect(throws: StoreFault.corrupted("vault.key")) { try vault() }
    }
    try whole.write(to: key)
    #expect(try vault().read("session") == [1])
  }

  @Test("2.12: a passphrase wraps the key; another one, or none, is told apart from damage")
  func passphrase() throws {
    try vault("open sesame").write([1], as: "session")
    #expect(try vault("open sesame").read("session") == [1])
    #expect(throws: StoreFault.wrongPassphrase) { try vault("open") }
    #expect(throws: StoreFault.wrongPassphrase) { try vault() }
    let key = URL(fileURLWithPath: path + "/vault.key")
    let whole = try Data(contentsOf: key)
    for count in 0..<whole.count {
      try whole[..<count].write(to: key)
      #expect(throws: StoreFault.corrupted("vault.key")) { try vault("open sesame") }
    }
    // A cost that would take for ever is damage.
    var endless = whole
    for index in 6..<10 { endless[index] = 0xff }
    try endless.write(to: key)
    #expect(throws: StoreFault.corrupted("vault.key")) { try vault("open sesame") }
  }

  @Test("Two processes that begin at once agree on one key")
  func concurrentStart() async throws {
    let path = path
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<8 {
        group.addTask {
          try FileKeyVault(folder: path, random: RandomSource(seed: UInt64(index)))
            .write([UInt8(index)], as: "secret-\(index)")
        }
      }
      try await group.waitForAll()
    }
    let last = try vault()
    for index in 0..<8 { #expect(try last.read("secret-\(index)") == [UInt8(index)]) }
  }

  @Test(
    "A crash at each step of a replacement leaves the old or the new secret",
    arguments: AtomicFile.Step.allCases)
  func crash(at step: AtomicFile.Step) throws {
    try vault().write([1], as: "session")
    let dying = try vault(witness: { (now: AtomicFile.Step) throws(StoreFault) in
      if now == step { throw .system(9) }
    })
    #expect(throws: StoreFault.system(9)) { try dying.write([2], as: "session") }
    #expect(try vault().read("session") == (step == .renamed ? [2] : [1]))
  }

  @Test("A full disk is told apart, and the old secret stays")
  func fullDisk() throws {
    try vault().write([1], as: "session")
    let full = try vault(witness: { (_: AtomicFile.Step) throws(StoreFault) in throw StoreFault(errno: ENOSPC)
    })
    #expect(throws: StoreFault.full) { try full.write([2], as: "session") }
    #expect(try vault().read("session") == [1])
  }

  @Test("kill -9 of a process that replaces a secret all the time: it is always one of those written")
  func killed() throws {
    for _ in 0..<12 {
      let probe = try ToolProcess("sdk-probe", ["write", path])
      #expect(probe.readLine() == "ready")
      usleep(useconds_t.random(in: 1_000...20_000))
      probe.terminate(with: SIGKILL)
      _ = probe.finish()
      if let secret = try FileKeyVault(folder: path, random: Timebase.system.randomSource).read("secret") {
        #expect(secret.count == 5_000 && Set(secret).count == 1)
      }
    }
  }

  @Test("S0-116: secrets move to another vault by copy, check and removal; again is harmless")
  func adoption() throws {
    let old = MemoryVault()
    try old.write([1], as: "session")
    try old.write([2], as: "device.usr_1")
    let new = try vault()
    try new.write([9], as: "device.usr_1")
    #expect(new.adopt(from: old))
    #expect(new.adopt(from: old))
    #expect(try new.read("session") == [1] && new.read("device.usr_1") == [9])
    #expect(try old.names().isEmpty)
    let full = MemoryVault()
    full.fail(with: .full)
    #expect(!full.adopt(from: new))
    #expect(try new.read("session") == [1])
  }
}
