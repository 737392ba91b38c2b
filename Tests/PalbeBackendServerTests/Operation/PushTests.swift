import Foundation
import Glibc
import PalbeBackendCore
import PalbeServerObservation
import PalbeTestKit
import PalbeUnits
import Testing

@testable import PalbeBackendServer

@Suite("Pushes (S0-113, 2.11, 2.12)")
struct PushTests {
  private let folder: TemporaryFolder
  private let start = Instant(nanoseconds: 1_000_000_000)
  private var random = RandomSource(seed: 5)

  init() throws {
    folder = try TemporaryFolder()
    // As palbe-server does: a reader that goes away is an error of one write.
    signal(SIGPIPE, SIG_IGN)
  }

  private mutating func push(_ token: UInt8 = 1) -> PushNotification {
    let time = WallTime(microseconds: 1_700_000_000_000_000)
    return PushNotification(
      device: DeviceID(at: time, using: &random), group: GroupID(at: time, using: &random), isWelcome: false,
      token: PushToken(platform: .ios, bytes: [token, 0xab]))
  }

  @Test(
    "S0-112, S0-123: a push says that a message or a welcome waits in a group, and nothing of what",
    arguments: [(false, "message"), (true, "welcome")])
  mutating func content(isWelcome: Bool, wake: String) throws {
    var push = push()
    push.isWelcome = isWelcome
    let object = try #require(JSONSerialization.jsonObject(with: Data(push.line)) as? [String: Any])
    #expect(Set(object.keys) == ["platform", "token", "collapse_id", "payload"])
    #expect(object["token"] as? String == "01ab")
    let payload = try #require(object["payload"] as? [String: Any])
    #expect(Set(payload.keys) == ["pb_kind", "pb_wake", "pb_group"])
    #expect(payload["pb_kind"] as? String == "messaging_wake")
    #expect(payload["pb_wake"] as? String == wake)
    #expect(payload["pb_group"] as? String == push.group.text)
  }

  @Test("A newer push of the same device and group replaces one that waits")
  mutating func collapsed() {
    var queue = PushQueue(capacity: 10)
    var first = push()
    queue.add(first, at: start)
    first.isWelcome = true
    queue.add(first, at: start)
    queue.add(push(), at: start)
    #expect(queue.waitingCount == 2)
    #expect(queue.next(at: start)?.push.isWelcome == true)
    #expect(queue.next(at: start)?.push.isWelcome == false)
    #expect(queue.next(at: start) == nil && queue.nextDeadline() == nil)
  }

  @Test("One that fails is tried again, each time twice as late, six times in all")
  mutating func retried() {
    var queue = PushQueue(capacity: 10)
    let push = push()
    queue.add(push, at: start)
    var now = start
    var delays: [TimeDelta] = []
    while let (failed, attempts) = queue.next(at: now) {
      queue.failed(failed, attempts: attempts, at: now)
      guard let next = queue.nextDeadline() else { break }
      #expect(queue.next(at: next - .nanoseconds(1)) == nil)
      delays.append(next - now)
      now = next
    }
    #expect(delays == [1, 2, 4, 8, 16].map { .seconds($0) })
    #expect(queue.lostCount == 1 && queue.waitingCount == 0)
    // A newer one that came meanwhile takes the place of a retry.
    queue.add(push, at: now)
    _ = queue.next(at: now)
    queue.add(push, at: now)
    queue.failed(push, attempts: 0, at: now)
    #expect(queue.nextDeadline() == now && queue.waitingCount == 1)
  }

  @Test("The queue is bounded")
  mutating func bounded() {
    var queue = PushQueue(capacity: 3)
    for _ in 0..<5 { queue.add(push(), at: start) }
    #expect(queue.waitingCount == 3 && queue.lostCount == 2)
  }

  @Test("Bug: of what was due at the end only one push was sent")
  mutating func last() throws {
    let sender = try PushSender(.file(folder.path("pushes")), log: ServerLog(level: .warning))
    for number in 0..<50 {
      let push = push(UInt8(number))
      sender.send(WakePush(device: push.device, group: push.group, kind: .message, tokens: [push.token]))
    }
    // Before its thread has seen the first one.
    sender.stop()
    try sender.start()
    sender.stop()
    #expect(sender.counts.sentCount == 50 && sender.counts.waitingCount == 0)
    #expect(
      try String(contentsOfFile: folder.path("pushes"), encoding: .utf8).split(separator: "\n").count == 50)
  }

  @Test("To a file, to a socket, to a command; what cannot be reached is counted")
  mutating func destinations() throws {
    let push = push()
    let wake = WakePush(device: push.device, group: push.group, kind: .message, tokens: [push.token])
    let listener = LocalSocket.make()
    defer { close(listener) }
    let socket = folder.path("s")
    #expect(LocalSocket.listen(listener, at: socket))
    let (file, script) = (folder.path("pushes"), folder.path("out"))
    let destinations: [PushDestination] = [
      .file(file), .socket(socket), .command(["/bin/sh", "-c", "cat > '\(script)'"]),
      .command(["/bin/false"]), .command(["/nonexistent"]), .socket(folder.path("none")),
    ]
    for destination in destinations {
      let sender = try PushSender(destination, log: ServerLog(level: .warning))
      try sender.start()
      sender.send(wake)
      var counts = sender.counts
      while counts.sentCount + counts.failedCount == 0 {
        usleep(1_000)
        counts = sender.counts
      }
      sender.stop()
    }
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: file))) == push.line)
    #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: script))) == push.line)
    let peer = accept(listener, nil, nil)
    defer { close(peer) }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = max(0, read(peer, &bytes, bytes.count))
    #expect(Array(bytes[..<count]) == push.line)
  }

  /// A sender that writes its log into a pipe, and what came there.
  private func logged(_ destination: PushDestination, _ body: (PushSender) throws -> Void) throws -> String {
    var ends: [Int32] = [0, 0]
    pipe(&ends)
    let sender = try PushSender(
      destination, log: ServerLog(level: .warning, descriptor: ends[1]), lastTime: .milliseconds(100))
    try sender.start()
    try body(sender)
    sender.stop()
    close(ends[1])
    defer { close(ends[0]) }
    return String(
      decoding: FileHandle(fileDescriptor: ends[0]).readDataToEndOfFile(), as: UTF8.self)
  }

  private func waitUntil(_ condition: () -> Bool) {
    for _ in 0..<20_000 where !condition() { usleep(500) }
    #expect(condition())
  }

  @Test(
    "Bug: a named pipe that nobody reads held the server up for ever; its pushes fail, and go when somebody reads"
  )
  mutating func pipeWithoutReader() throws {
    let path = folder.path("fifo")
    #expect(mkfifo(path, 0o600) == 0)
    try PushDestination.file(path).check()
    let push = push()
    let wake = WakePush(device: push.device, group: push.group, kind: .message, tokens: [push.token])
    let log = try logged(.file(path)) { sender in
      sender.send(wake)
      waitUntil { sender.counts.failedCount == 1 }
      let reader = open(path, O_RDONLY | O_NONBLOCK)
      defer { close(reader) }
      sender.send(wake)
      waitUntil { sender.counts.sentCount == 1 }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = max(0, read(reader, &bytes, bytes.count))
      #expect(Array(bytes[..<count]) == push.line)
    }
    #expect(log.contains("warning pushes failed count=1 reason=\"nobody reads the pipe\""))
  }

  @Test("Bug: pushes that fail were told at the level debug alone: a warning, and not one for each")
  mutating func failuresAreLogged() throws {
    let log = try logged(.command(["/bin/sh", "-c", "exit 3"])) { sender in
      for number in 0..<5 {
        let push = push(UInt8(number))
        sender.send(WakePush(device: push.device, group: push.group, kind: .message, tokens: [push.token]))
      }
      waitUntil { sender.counts.failedCount >= 5 }
    }
    let lines = log.split(separator: "\n").filter { $0.contains("pushes failed") }
    #expect(lines.count == 1)
    #expect(lines.first?.hasSuffix("warning pushes failed count=1 reason=\"ended with status 3\"") == true)
  }

  @Test(
    "Bug: a command that hangs held up the end by half a minute; it goes, with what it has started, when the time is over"
  )
  mutating func hangingCommand() throws {
    let push = push()
    let file = folder.path("pid")
    var process: pid_t = 0
    let log = try logged(.command(["/bin/sh", "-c", "sleep 600 & echo $$ > '\(file)'; wait"])) { sender in
      sender.send(
        WakePush(device: push.device, group: push.group, kind: .message, tokens: [push.token]))
      func written() -> pid_t? {
        (try? String(contentsOfFile: file, encoding: .utf8)).flatMap { pid_t($0.dropLast()) }
      }
      waitUntil { written() != nil }
      process = try #require(written())
      sender.stop()
      #expect(sender.counts.failedCount == 1)
    }
    #expect(
      log.contains("reason=\"took too long\"") && log.contains("pushes not sent before the end count=1"))
    // Nobody is left of its group but those whom their new parent has not buried yet.
    let states = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { name in
      try? String(contentsOfFile: "/proc/\(name)/stat", encoding: .utf8).split(separator: ") ").last?
        .split(separator: " ")
    }
    #expect(!states.contains { $0.count > 2 && pid_t($0[2]) == process && $0[0] != "Z" && $0[0] != "X" })
  }

  @Test("Where no push could ever be sent is refused at the start; what may come later is not")
  func checks() throws {
    let file = folder.path("pushes")
    let good: [PushDestination] = [
      .file(file), .file("/dev/null"), .socket(folder.path("none")), .command(["sh", "-c", "true"]),
      .command(["/bin/sh"]),
    ]
    for destination in good { try destination.check() }
    let bad: [PushDestination] = [
      .file(folder.url.path), .file(folder.path("none/pushes")), .file("/"),
      .socket("/" + String(repeating: "a", count: 200)), .command(["/nonexistent"]),
      .command(["no-such-program"]), .command([file]), .command([folder.url.path]), .command([""]),
    ]
    for destination in bad {
      #expect(throws: PushDestination.Unusable.self, "\(destination)") { try destination.check() }
    }
  }
}
