import Foundation
import Glibc
import PalbeBackendCore
import PalbeBackendKit
import PalbeSQLStore
import PalbeServerClient
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

/// The real binary over files that somebody has damaged, cut or locked.
@Suite(
  "palbe-server and a damaged or locked database (section 3)", .serialized,
  .enabled(if: ToolProcess.executable("palbe-server") != nil))
final class DamagedDatabaseTests {
  private let folder: TemporaryFolder
  private var data: String { folder.path("data") }
  private var messages: String { data + "/messages.sqlite" }

  init() throws { folder = try TemporaryFolder() }

  private func start() throws -> (ToolProcess, UInt16) {
    let process = try ToolProcess.serving(data, ["--reserved-space", "0"])
    return (process, try process.readPort())
  }

  private func signIn(_ name: String, _ port: UInt16) throws -> ServerClient {
    try .signedIn(
      port: port, "\(name)@example.org", "correct horse \(name)",
      seed: UInt64(port) << 8 | UInt64(name.utf8.count))
  }

  /// Two people with a group each, of which the first one's rows fill pages of their own.
  private struct Life {
    let anna: ServerClient
    let carola: ServerClient
    let annas: GroupID
    let carolas: (group: GroupID, mlsID: MLSGroupID)
    /// Stands in each message of the first group.
    let mark: [UInt8]
  }

  private func live() throws -> Life {
    let (process, port) = try start()
    let (anna, carola, ben) = (try signIn("anna", port), try signIn("carola", port), try signIn("ben", port))
    let annas = try ben.found(with: [anna.user])
    let carolas = try carola.found(with: [])
    let mark = anna.random.bytes(32)
    for _ in 0..<100 {
      var message = ben.message(annas.mlsID, 1)
      message["blob"] = ServerClient.text(
        Wire.application(annas.mlsID, 1, mark + ben.random.bytes(300)))
      try ben.get("POST", "/v1/groups/\(annas.group)/messages", message)
    }
    for _ in 0..<50 {
      try carola.get(
        "POST", "/v1/groups/\(carolas.group)/messages", carola.message(carolas.mlsID, 0, count: 300))
    }
    process.terminate()
    #expect(process.finish().code == 0)
    return Life(anna: anna, carola: carola, annas: annas.group, carolas: carolas, mark: mark)
  }

  private func check() throws -> ToolProcess.Result {
    try ToolProcess.run("palbe-server", ["check", "--data", data])
  }

  /// Overwrites bytes of the file as it lies there, whoever has it open.
  private func overwrite(at offset: Int, with bytes: [UInt8]) throws {
    let descriptor = open(messages, O_WRONLY)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    #expect(pwrite(descriptor, bytes, bytes.count, off_t(offset)) == bytes.count)
  }

  /// The pages that hold a mark.
  private func pages(with mark: [UInt8]) throws -> [Int] {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: messages))
    return stride(from: 0, to: bytes.count, by: 4_096).filter { start in
      bytes[start..<min(bytes.count, start + 4_096)].range(of: Data(mark)) != nil
    }
  }

  @Test(
    "Pages damaged while it runs: who needs them is refused as unavailable, the others are served, check tells"
  )
  func damagedWhileRunning() throws {
    let life = try live()
    let (process, port) = try start()
    let (anna, carola) = (ServerClient(life.anna, port: port), ServerClient(life.carola, port: port))
    let damaged = try pages(with: life.mark)
    #expect(damaged.count > 5)
    for start in damaged { try overwrite(at: start, with: [UInt8](repeating: 0xff, count: 100)) }
    for _ in 0..<3 {
      let refused = try anna.ask("GET", "/v1/queue")
      #expect(refused.status == 503 && refused.code == "unavailable" && refused.headers["retry-after"] != nil)
      #expect(try carola.get("GET", "/v1/groups/\(life.carolas.group)")["head_seq"] as? Int ?? 0 >= 50)
      try carola.get(
        "POST", "/v1/groups/\(life.carolas.group)/messages", carola.message(life.carolas.mlsID, 0))
      #expect(try HTTPConnection(port: port).send("GET", "/v1/ready").status == 204)
    }
    process.terminate()
    let end = process.finish()
    #expect(end.code == 0, "\(end.errors)")
    let check = try check()
    #expect(check.code == 1 && check.output.contains("messages.sqlite"), "\(check)")
  }

  @Test(
    "Cut off while it runs: a typed refusal or an answer, no crash; the next start and check say what is wrong"
  )
  func cutWhileRunning() throws {
    let life = try live()
    let (process, port) = try start()
    let (anna, carola) = (ServerClient(life.anna, port: port), ServerClient(life.carola, port: port))
    let count = try Data(contentsOf: URL(fileURLWithPath: messages)).count
    #expect(truncate(messages, off_t(count / 2 / 4_096 * 4_096)) == 0)
    var refusals = 0
    for client in [anna, carola, anna, carola] {
      for path in ["/v1/queue", "/v1/groups", "/v1/devices"] {
        let answer = try client.ask("GET", path)
        #expect(answer.status == 200 || (answer.status == 503 && answer.code == "unavailable"))
        if answer.status == 503 { refusals += 1 }
      }
    }
    #expect(refusals > 0)
    process.terminate()
    #expect(process.finish().code == 0)
    #expect(try check().code == 1)
  }

  @Test(
    "Bytes flipped, the file cut: the start says which file and why, or what it serves is typed; check tells")
  func damagedAtStart() throws {
    let life = try live()
    let whole = try Data(contentsOf: URL(fileURLWithPath: messages))
    var random = RandomSource(seed: 3)
    func place(_ bytes: Data) throws {
      for end in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: messages + end) }
      try bytes.write(to: URL(fileURLWithPath: messages))
    }
    var (refused, served) = (0, 0)
    func tryOut(_ bytes: Data, _ comment: Comment) throws {
      try place(bytes)
      let process = try ToolProcess.serving(data, ["--reserved-space", "0"])
      if let port = try? process.readPort() {
        served += 1
        for client in [ServerClient(life.anna, port: port), ServerClient(life.carola, port: port)] {
          for path in ["/v1/queue", "/v1/groups", "/v1/devices", "/v1/groups/\(life.annas)"] {
            let answer = try client.ask("GET", path)
            #expect(answer.status < 500 || (answer.status == 503 && answer.code == "unavailable"), comment)
          }
        }
        process.terminate()
        #expect(process.finish().code == 0, comment)
      } else {
        refused += 1
        let end = process.finish()
        // One line, whichever step of the start has met it.
        let words = ["open", "read"].map { "palbe-server: cannot \($0) \(messages): it is " }
        #expect(end.code == 2 && words.contains { end.errors.hasPrefix($0) }, "\(comment): \(end.errors)")
      }
    }
    // The header, the schema, the end.
    for count in [20, 100, 4_096, whole.count / 2, whole.count - 4_096] {
      try tryOut(whole.prefix(count), "cut to \(count)")
      #expect(try check().code == 1, "cut to \(count)")
    }
    for number in 0..<8 {
      var bytes = whole
      for _ in 0..<20 {
        let page = Int(random.next() % UInt64(whole.count / 4_096)) * 4_096
        // What says where things are stands at a page's beginning.
        bytes[page + Int(random.next() % 12)] ^= UInt8(1 + random.next() % 255)
      }
      try tryOut(bytes, "flipped \(number)")
      let check = try check()
      #expect(check.code == 1 && !check.output.isEmpty, "flipped \(number): \(check)")
    }
    #expect(refused >= 3, "refused \(refused), served \(served)")
    try place(whole)
    #expect(try check().code == 0)
  }

  @Test(
    "Bug: a server whose messages, or accounts, were gone began anew beside what was left",
    arguments: ["messages.sqlite", "accounts.sqlite"])
  func lost(_ name: String) throws {
    _ = try live()
    let path = data + "/" + name
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    try Data().write(to: URL(fileURLWithPath: path))
    let check = try check()
    #expect(check.code == 1 && check.output.contains(name) && check.output.contains("no tables"), "\(check)")
    try Data().write(to: URL(fileURLWithPath: path))
    for isMissing in [false, true] {
      if isMissing { try FileManager.default.removeItem(atPath: path) }
      let end = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", data, "--port", "0"])
      #expect(end.code == 2 && end.errors.contains("cannot open \(path): it is missing or empty"), "\(end)")
    }
    try bytes.write(to: URL(fileURLWithPath: path))
    #expect(try self.check().code == 0)
  }

  @Test(
    "Bug: keys that were gone beside databases were made anew without a word, and check found all in order")
  func keys() throws {
    let life = try live()
    func isRefused(_ words: String) throws {
      let check = try check()
      #expect(check.code == 1 && check.output.contains(words), "\(check)")
      let end = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", data, "--port", "0"])
      #expect(end.code == 2 && end.errors.contains(words), "\(end)")
    }
    for name in DataKey.allCases.map(\.rawValue) {
      let path = data + "/keys/" + name
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      try FileManager.default.removeItem(atPath: path)
      try isRefused("\(path) is missing")
      #expect(!FileManager.default.fileExists(atPath: path))
      try Data(bytes.dropFirst()).write(to: URL(fileURLWithPath: path))
      let check = try check()
      #expect(check.code == 1 && check.output.contains(path), "\(check)")
      try bytes.write(to: URL(fileURLWithPath: path))
    }
    let accounts = data + "/accounts.sqlite"
    try FileManager.default.moveItem(atPath: accounts, toPath: data + "/kept")
    #expect(try check().output.contains("accounts.sqlite is missing"))
    try FileManager.default.moveItem(atPath: data + "/kept", toPath: accounts)
    #expect(try check().code == 0)
    let (process, port) = try start()
    #expect(try ServerClient(life.anna, port: port).ask("GET", "/v1/devices").status == 200)
    process.terminate()
    #expect(process.finish().code == 0)
  }

  @Test("Accounts damaged: no start, and the file is named")
  func accounts() throws {
    _ = try live()
    let path = data + "/accounts.sqlite"
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    try (Data("SQLite format 3\0".utf8) + Data(repeating: 0xee, count: bytes.count - 16))
      .write(to: URL(fileURLWithPath: path))
    let end = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", data, "--port", "0"])
    #expect(end.code == 2 && end.errors.contains("cannot open \(path): "), "\(end.errors)")
    #expect(try check().output.contains("accounts.sqlite"))
  }

  @Test(
    "Locked by another process: no start, with the reason; it starts when the lock is gone, and lets nobody in"
  )
  func locked() throws {
    let life = try live()
    do {
      let other = try SQLConnection(path: messages, settings: .server())
      let end = try ToolProcess.run("palbe-server", ["serve", "--dev", "--data", data, "--port", "0"])
      #expect(
        end.code == 2 && end.errors.contains("cannot open \(messages): another process uses it"),
        "\(end.errors)")
      #expect(try check().output.contains("another process uses it"))
      withExtendedLifetime(other) {}
    }
    let (process, port) = try start()
    let carola = ServerClient(life.carola, port: port)
    for name in ["messages.sqlite", "accounts.sqlite"] {
      #expect(throws: SQLError.busy) { try SQLConnection(path: data + "/" + name, settings: .server()) }
    }
    // Who tried and was refused has disturbed nobody.
    try carola.get(
      "POST", "/v1/groups/\(life.carolas.group)/messages", carola.message(life.carolas.mlsID, 0))
    _ = try signIn("anna", port)
    let checked = try check()
    #expect(checked.code == 3 && checked.errors.contains("check a backup"), "\(checked)")
    process.terminate()
    #expect(process.finish().code == 0)
    #expect(try check().code == 0)
  }
}
