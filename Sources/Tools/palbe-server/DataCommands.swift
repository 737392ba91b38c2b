import Glibc
import PalbeBackendServer
import PalbeCommandLine
import PalbeWire

/// `palbe-server backup` and `palbe-server check`.
enum DataCommands {
  private static let data = Option.value("--data", "DIR", "the folder with everything that is kept")

  static let backup = Command(
    name: "backup",
    summary:
      "makes a consistent copy of the data, also while the server runs; start a server with it to restore",
    options: [
      data,
      .value(
        "--to", "DIR",
        "where the copy goes, outside of the data; nothing may be there. A server that runs writes it itself"),
    ],
    examples: ["palbe-server backup --data /var/lib/palbe --to /var/lib/palbe-backups/monday"])

  static let check = Command(
    name: "check",
    summary:
      "looks whether the data is as it has to be; exit 1 where it is not, 3 while a server uses it: check a backup then",
    options: [data, .flag("--repair", "brings in order what can be derived from the rest")],
    examples: ["palbe-server check --data /var/lib/palbe-backups/monday"])

  private static func folder(_ arguments: ParsedArguments) -> String {
    guard let path = arguments.string("--data") else { fail("option '--data' is missing") }
    // What is not there is not made. A folder that lacks only its messages is one for `check` to tell about.
    for name in ["messages.sqlite", "accounts.sqlite"] {
      if access(path + "/" + name, F_OK) == 0 { return path }
      guard errno == ENOENT || errno == ENOTDIR else {
        fail("cannot look into \(path): \(String(cString: strerror(errno))); run it as the server's user")
      }
    }
    fail("\(path) holds no data of palbe-server")
  }

  static func runBackup(_ arguments: ParsedArguments) {
    let path = folder(arguments)
    guard let target = arguments.string("--to") else { fail("option '--to' is missing") }
    do {
      let backup = try BackendServer.backUp(path, to: target)
      put(printable("wrote \(backup.path), \(backup.byteCount) bytes"), to: STDOUT_FILENO)
    } catch { stop("\(error)") }
  }

  static func runCheck(_ arguments: ParsedArguments) {
    let repairs = arguments.has("--repair")
    let findings: [DataCheck.Finding]
    let path = folder(arguments)
    do { findings = try BackendServer.check(path, repairs: repairs) } catch let error as DataFolder.Failure
      where error.isInUse
    {
      fail(
        "a server uses \(path), so nothing was checked; check a backup of it: palbe-server backup --data \(path) --to COPY",
        code: 3)
    } catch { fail("\(error)") }
    for finding in findings {
      let end = !finding.isRepairable ? "" : repairs ? " (repaired)" : " (--repair brings it in order)"
      put(printable(finding.description) + end, to: STDOUT_FILENO)
    }
    let isSound = findings.allSatisfy { repairs && $0.isRepairable }
    if findings.isEmpty { put("the data is as it has to be", to: STDOUT_FILENO) }
    exit(isSound ? 0 : 1)
  }

  private static func stop(_ reason: String) -> Never { fail(reason, code: 1) }
}
