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

  init() throws { folder = try TemporaryFolder() }

  private mutating func push(_ token: UInt8 = 1) -> PushNotification {
    let time = WallTime(microseconds: 1_700_000_000_000_000)
    return PushNotification(
      device: DeviceID(at: time, using: &random), group: GroupID(at: time, using: &random), isWelcome: false,
      token: PushToken(platform: .ios, bytes: [token, 0xab]))
  }

  @Test("4.2: a push says that something waits in a group, and nothing of what")
  mutating func content() throws {
    let push = push()
    let object = try #require(JSONSerialization.jsonObject(with: Data(push.line)) as? [String: Any])
    #expect(Set(object.keys) == ["platform", "token", "collapse_id", "payload"])
    #expect(object["token"] as? String == "01ab")
    let payload = try #require(object["payload"] as? [String: Any])
    #expect(Set(payload.keys) == ["pb_kind", "pb_wake", "pb_group"])
    #expect(payload["pb_group"] as? String == push.group.text && payload["pb_kind"] as? String == "message")
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
}
