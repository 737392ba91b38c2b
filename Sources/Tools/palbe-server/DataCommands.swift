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
    options: [data, .value("--to", "DIR", "where the copy goes; nothing may be there")],
    examples: ["palbe-server backup --data /var/lib/palbe --to /backup/palbe-monday"])

  static let check = Command(
    name: "check",
    summary:
      "looks whether the data is as it has to be; exit 1 where it is not. Of a server that runs, check a backup",
    options: [data, .flag("--repair", "brings in order what can be derived from the rest")],
    examples: ["palbe-server check --data /backup/palbe-monday"])

  private static func folder(_ arguments: ParsedArguments) -> String {
    guard let path = arguments.string("--data") else { fail("option '--data' is missing") }
    var status = stat()
    guard stat(path + "/messages.sqlite", &status) == 0 else { fail("\(path) holds no data of palbe-server") }
    return path
  }

  static func runBackup(_ arguments: ParsedArguments) {
    let path = folder(arguments)
    guard let target = arguments.string("--to") else { fail("option '--to' is missing") }
    do { try BackendServer.backUp(path, to: target) } catch { stop("\(error)") }
  }

  static func runCheck(_ arguments: ParsedArguments) {
    let repairs = arguments.has("--repair")
    let findings: [DataCheck.Finding]
    do { findings = try BackendServer.check(folder(arguments), repairs: repairs) } catch { stop("\(error)") }
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
