import Glibc
import PalbeBackendCore

/// What is done with the data of a server, whether it runs or not.
extension BackendServer {
  static let controlName = "control"

  /// A copy that was made.
  package struct Backup: Hashable, Sendable {
    /// Absolute.
    package var path: String
    package var byteCount: Int64
  }

  /// Makes a copy of a data folder: by the server that uses it, or here when none does.
  /// - Parameter target: relative to this process's folder, also where the server writes.
  @discardableResult
  package static func backUp(_ path: String, to target: String) throws -> Backup {
    let target = absolute(target)
    guard let folder = try unused(path) else {
      guard access(target, F_OK) != 0 else { throw Failure(description: "\(target) is there already") }
      guard let answer = ControlSocket.ask("backup " + target, at: path + "/" + controlName) else {
        throw Failure(
          description: "a server uses \(path) and does not answer; is this its user, or root, on its machine?"
        )
      }
      guard answer == "ok" else {
        throw Failure(description: "the server that runs writes the copy, and says: \(answer)\(whereItMay)")
      }
      guard access(target + "/messages.sqlite", F_OK) == 0 else {
        throw Failure(
          description:
            "the server wrote \(target), but in its own view of the files: here it is not to be seen\(whereItMay)"
        )
      }
      return Backup(path: target, byteCount: DataBackup.byteCount(of: target))
    }
    try folder.takeLogs()
    let names = ["messages.sqlite", "accounts.sqlite"].filter { access(folder.path($0), F_OK) == 0 }
    guard names.contains("messages.sqlite") else {
      throw Failure(description: "\(folder.path("messages.sqlite")) is missing; restore a backup")
    }
    try DataBackup(of: folder.root, to: target).run(
      names.map { DataBackup.file($0, in: folder.root) })
    withExtendedLifetime(folder) {}
    return Backup(path: target, byteCount: DataBackup.byteCount(of: target))
  }

  private static let whereItMay =
    ". Under systemd it has a /tmp of its own and writes only where the unit lets it: below StateDirectory, such as /var/lib/palbe-backups, or in what ReadWritePaths adds"

  /// Nil when a server uses it.
  private static func unused(_ path: String) throws -> DataFolder? {
    do throws(DataFolder.Failure) { return try DataFolder(path) } catch {
      guard error.isInUse else { throw error }
      return nil
    }
  }

  /// Looks at a folder that no server uses.
  /// - Parameter hasAccounts: false when somebody else knows the sessions.
  package static func check(
    _ path: String, repairs: Bool, hasAccounts: Bool = true
  ) throws -> [DataCheck.Finding] {
    let folder = try DataFolder(path)
    defer { withExtendedLifetime(folder) {} }
    let lost = folder.lostLogs
    // What is lost stays noted, for who starts a server with it.
    if lost.isEmpty { try folder.takeLogs() }
    var findings = lost.map { DataCheck.Finding(lostLog: $0) }
    var check = DataCheck(folder.root, repairs: repairs, hasAccounts: hasAccounts)
    findings += check.run()
    return findings
  }

  /// The running server's own backup.
  static func backUp(
    _ root: String, to target: String, loop: BackendLoop, blobs: BlobStore,
    others: [DataBackup.Source]
  ) -> String {
    blobs.holdDeletions()
    defer { blobs.releaseDeletions() }
    do {
      let messages = DataBackup.Source(name: "messages.sqlite") { path in
        let outcome = Awaited<StoreFault?>()
        loop.copy(to: path) { outcome.set($0) }
        if let fault = outcome.wait() {
          throw Failure(description: "cannot copy messages.sqlite: \(fault.words)")
        }
      }
      try DataBackup(of: root, to: target).run([messages] + others)
      return "ok"
    } catch { return "\(error)" }
  }

  private static func absolute(_ path: String) -> String {
    guard path.first != "/", let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }
}
