import Foundation
import Glibc
import PalbeUnits
import Testing

@testable import PalbeCallLab

@Suite("What the demo starts, it ends")
struct DemoProcessTests {
  private func shell(_ script: String) throws -> ChildProcess {
    try ChildProcess.start("/bin/sh", arguments: ["-c", script])
  }

  private func isRunning(_ processID: pid_t) -> Bool { kill(processID, 0) == 0 }

  @Test("A line of output is waited for; the program ends when it is asked")
  func greeting() async throws {
    let ready = "palbe-sfu 1.0.0 listening: signaling 127.0.0.1:7"
    let child = try shell("echo other; echo '\(ready)'; exec sleep 60")
    let line = try await child.line(beginningWith: "palbe-sfu ", within: .seconds(20))
    #expect(line == ready)
    #expect(isRunning(child.processID))
    #expect(child.stop() == 128 + SIGTERM)
    #expect(!isRunning(child.processID))
    #expect(child.stop() == 128 + SIGTERM)
  }

  @Test("A program that ends before it is ready is reported with its last words")
  func endsEarly() async throws {
    let child = try shell("echo 'port 7880 is in use' >&2; exit 2")
    await #expect(
      throws: ChildProcess.StartError.ended(program: "sh", status: 2, lastLine: "port 7880 is in use")
    ) { try await child.line(beginningWith: "palbe-sfu ", within: .seconds(20)) }
  }

  @Test("A program that says nothing is not waited for for ever")
  func silent() async throws {
    let child = try shell("exec sleep 60")
    await #expect(throws: ChildProcess.StartError.notReady(program: "sh", seconds: 0.05)) {
      try await child.line(beginningWith: "palbe-sfu ", within: .milliseconds(50))
    }
    child.stop()
    #expect(!isRunning(child.processID))
  }

  @Test("A program that does not listen to SIGTERM is killed")
  func stubborn() async throws {
    let child = try shell("trap '' TERM; echo ready; while :; do sleep 0.05; done")
    _ = try await child.line(beginningWith: "ready", within: .seconds(20))
    #expect(child.stop(patience: .milliseconds(50)) == 128 + SIGKILL)
    #expect(!isRunning(child.processID))
  }

  @Test("Signals reach the program although we block them")
  func signals() async throws {
    // A blocked SIGTERM would make stop() wait for SIGKILL.
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    var before = sigset_t()
    pthread_sigmask(SIG_BLOCK, &set, &before)
    let child = try shell("echo ready; exec sleep 60")
    pthread_sigmask(SIG_SETMASK, &before, nil)
    #expect(child.stop(patience: .seconds(60)) == 128 + SIGTERM)
  }

  @Test("Cleaning up ends processes and removes folders, those that come late too")
  func cleanup() async throws {
    let cleanup = Cleanup()
    let folder = try cleanup.makeFolder()
    let mode = try FileManager.default.attributesOfItem(atPath: folder)[.posixPermissions] as? Int
    #expect(mode == 0o700)
    try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/x"))
    let child = try shell("exec sleep 60")
    cleanup.add(child)
    await cleanup.endAll()
    #expect(!isRunning(child.processID))
    #expect(!FileManager.default.fileExists(atPath: folder))
    let late = try shell("exec sleep 60")
    cleanup.add(late)
    #expect(!isRunning(late.processID))
  }

  @Test("The SFU's ready line gives the signaling address")
  func address() {
    let line = "palbe-sfu 1.0.0 listening: signaling 127.0.0.1:40123, media 127.0.0.1:40124"
    #expect(DemoSFU.edgeURL(fromGreeting: line) == "ws://127.0.0.1:40123")
    for strange in [
      "", "palbe-sfu", "palbe-sfu signaling", "signaling :1", "signaling 127.0.0.1:0", "signaling a:b",
      "signaling 127.0.0.1:99999",
    ] { #expect(DemoSFU.edgeURL(fromGreeting: strange) == nil) }
  }

  @Test("Misuse is one line and starts nothing")
  func misuse() throws {
    var options = DemoOptions()
    options.sfuPath = "/nowhere/palbe-sfu"
    let error = #expect(throws: DemoOptions.Misuse.self) { try options.checkedSFUPath() }
    let line = try #require(error).description
    #expect(line.contains("/nowhere/palbe-sfu") && line.contains("--sfu") && !line.contains("\n"))
    options.sfuPath = "/bin/sh"
    #expect(try options.checkedSFUPath() == "/bin/sh")
    options.sfuPath = "/tmp"
    #expect(throws: DemoOptions.Misuse.self) { try options.checkedSFUPath() }
    options.sfuPath = "/bin/sh"
    options.seconds = 0
    #expect(throws: DemoOptions.Misuse.self) { try options.checkedSFUPath() }
    options.seconds = 10
    options.setupRuns = 0
    #expect(throws: DemoOptions.Misuse.self) { try options.checkedSFUPath() }
  }

  @Test("A folder is not made after the end, nor where it cannot be, and that is one line")
  func noFolder() async throws {
    let parent = NSTemporaryDirectory() + UUID().uuidString
    try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: parent) }
    let cleanup = Cleanup()
    let error = #expect(throws: Cleanup.FolderError.self) { try cleanup.makeFolder(in: parent + "/none") }
    #expect(
      try #require(error).description
        == "cannot make a folder in \(parent)/none (No such file or directory)")
    #expect(await cleanup.endAll())
    #expect(throws: CancellationError.self) { try cleanup.makeFolder(in: parent) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: parent).isEmpty)
  }

  @Test(
    "A report that cannot be written is found before anything is started",
    arguments: ["", "/proc/x.json", "/nowhere/report.json", "/tmp"])
  func unwritableReport(path: String) async throws {
    var options = DemoOptions()
    options.sfuPath = "/bin/false"
    options.reportPath = path
    // With an SFU that does not come up it would be 1 later.
    #expect(await Demo.run(options) == 2)
    do throws(DemoOptions.Misuse) {
      _ = try options.openReport()
      Issue.record("opened \(path)")
    } catch {
      #expect(!error.description.contains("\n"))
    }
  }

  @Test("A report's file that was made goes when there is no report; one that was there keeps its content")
  func discardedReport() throws {
    let path = NSTemporaryDirectory() + UUID().uuidString
    defer { try? FileManager.default.removeItem(atPath: path) }
    let text = { try String(contentsOfFile: path, encoding: .utf8) }
    try ReportFile(path).discard()
    #expect(!FileManager.default.fileExists(atPath: path))
    try ReportFile(path).write(Data("first and longer".utf8))
    #expect(try text() == "first and longer")
    try ReportFile(path).discard()
    #expect(try text() == "first and longer")
    try ReportFile(path).write(Data("second".utf8))
    #expect(try text() == "second")
  }

  @Test("Work that does not end is not waited for for ever")
  func boundedWait() async {
    let outcome = Demo.Outcome()
    #expect(await !outcome.wait(atMost: .milliseconds(10)))
    outcome.set(DemoMeasurements())
    #expect(await outcome.wait(atMost: .zero))
  }

  @Test("A demo without an SFU to start ends with 2")
  func missing() async {
    var options = DemoOptions()
    options.sfuPath = "/nowhere/palbe-sfu"
    #expect(await Demo.run(options) == 2)
  }

  @Test("A demo whose SFU does not come up fails, and ends what it started")
  func broken() async {
    var options = DemoOptions()
    options.sfuPath = "/bin/false"
    #expect(await Demo.run(options) == 1)
  }
}
