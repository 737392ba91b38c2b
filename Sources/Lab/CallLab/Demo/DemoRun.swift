import PalbeCallCore
import PalbeCrypto
import PalbeEventLoop
import PalbeUnits
import PalbeWire

/// A demo from its first process to its last figure.
struct DemoRun: Sendable {
  /// Somebody waited for something that did not happen.
  struct Trouble: Error, CustomStringConvertible {
    var description: String
  }

  static let anna = DemoParticipant.Role(
    name: "anna", identity: "anna#phone", voice: .tone(hertz: toneFrequency))
  static let ben = DemoParticipant.Role(
    name: "ben", identity: "ben#laptop", voice: .voice, numberBase: 1_000_000)
  static let mallory = DemoParticipant.Role(name: "mallory", identity: "mallory#tablet")
  static let toneFrequency = 1_000.0
  /// Seconds of the control run without end-to-end encryption.
  static let controlSeconds = 3
  /// How long to wait for a first picture.
  static let patience = TimeDelta.seconds(10)

  let options: DemoOptions
  /// The palbe-sfu to start.
  let program: String
  let progress: Progress
  let cleanup: Cleanup
  /// Where the servers' logs go.
  let folder: String

  /// Runs all of it. What goes wrong is among the measurements' troubles.
  func measure() async -> DemoMeasurements {
    var measured = DemoMeasurements()
    do {
      progress.phase("starting palbe-sfu")
      let sfu = try await startSFU("call")
      try await DemoCall(run: self, sfu: sfu).measure(into: &measured)
      progress.phase("control call without end-to-end encryption")
      measured.control = try await control()
    } catch is CancellationError {
      measured.troubles.append("interrupted")
    } catch {
      // Who else failed is a consequence when the server is gone.
      let gone = error is ChildProcess.StartError ? nil : cleanup.endedProcess
      let server = gone.map { "palbe-sfu is gone (status \($0)): " } ?? ""
      measured.troubles.append("\(server)\(error)")
    }
    return measured
  }

  func startSFU(_ name: String) async throws -> DemoSFU {
    try await DemoSFU.start(program, folder: folder, name: name) { cleanup.add($0) }
  }

  /// A room that no other call of this process uses.
  func newRoom() -> String {
    var random = SystemRandom.source()
    return "demo-" + Hex.encode(random.bytes(8))
  }

  /// Joins and returns when media flows.
  func join(
    _ role: DemoParticipant.Role, _ sfu: DemoSFU, room: String, key: [UInt8]?, seconds: Int
  ) async throws -> DemoParticipant {
    let participant = DemoParticipant(
      role, edgeURL: sfu.edgeURL, token: try sfu.token(room: room, identity: role.identity), key: key,
      seconds: seconds)
    try cleanup.add(participant)
    do {
      try await participant.start()
    } catch {
      throw Trouble(description: "\(role.name) cannot join: \(error)")
    }
    return participant
  }

  /// Waits for the first decoded picture; throws `Trouble` after `patience`.
  func firstPicture(
    _ participant: DemoParticipant, within limit: TimeDelta = patience
  ) async throws -> Instant {
    let deadline = MonotonicClock.now() + limit
    while MonotonicClock.now() < deadline {
      if let time = participant.received.firstDecode { return time }
      if let ended = participant.ended {
        throw Trouble(description: "\(participant.role.name)'s call ended: \(ended)")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    throw Trouble(
      description: "\(participant.role.name) saw no picture within \(Int(limit.inSeconds)) s")
  }

  /// Sleeps until `time`, showing how far the call is.
  func sleep(until time: Instant, _ detail: () -> String = { "" }) async throws {
    while true {
      let left = time - MonotonicClock.now()
      guard left > .zero else { return }
      let text = detail()
      if !text.isEmpty { progress.detail(text) }
      try await Task.sleep(for: .nanoseconds(min(left.nanoseconds, 250_000_000)))
    }
  }

  /// Another set-up of a call with a group of its own; nil when its second participant never saw a picture.
  func timeSetup(_ sfu: DemoSFU) async throws -> TimeDelta? {
    let group = try CallGroup.make(first: Self.anna.identity, second: Self.ben.identity)
    let (room, key) = (newRoom(), try group.callKey())
    let anna = try await join(Self.anna, sfu, room: room, key: key, seconds: 3)
    try await Task.sleep(for: .milliseconds(500))
    let begin = MonotonicClock.now()
    let ben = try await join(Self.ben, sfu, room: room, key: key, seconds: 3)
    let first = try? await firstPicture(ben)
    await anna.stop()
    await ben.stop()
    return first.map { $0 - begin }
  }

  /// The same call without encryption: what the search finds then.
  private func control() async throws -> AuditMeasurement {
    let sfu = try await startSFU("control")
    let room = newRoom()
    let anna = try await join(Self.anna, sfu, room: room, key: nil, seconds: Self.controlSeconds)
    let ben = try await join(Self.ben, sfu, room: room, key: nil, seconds: Self.controlSeconds)
    try await sleep(until: MonotonicClock.now() + .seconds(Self.controlSeconds))
    try await endLogging([anna, ben])
    var search = SFUSearch(anna.sent.frames + ben.sent.frames)
    try search.searchMemory(of: sfu.process.processID)
    await anna.stop()
    await ben.stop()
    sfu.process.stop()
    search.searchPackets(try sfu.receivedPackets())
    return search.result
  }

  /// Ends the logs of sent frames and waits until the SFU has what they hold.
  func endLogging(_ participants: [DemoParticipant]) async throws {
    for participant in participants { participant.sent.endLogging() }
    try await Task.sleep(for: .milliseconds(500))
  }
}
