import Foundation
import PalbeBackendCore
import PalbeBackendKit
import PalbeEventLoop
import PalbeSQLStore
import PalbeTestKit
import PalbeUnits
import PalbeWebServer
import Synchronization
import Testing

@testable import PalbeBackendServer

/// A loop over a file, and devices at it.
private final class LoopRig: @unchecked Sendable {
  let folder: TemporaryFolder
  let store: SQLiteBackendStore
  let loop: BackendLoop
  private var random = RandomSource(seed: 5)

  init(_ change: (inout BackendLoop.Settings) -> Void = { _ in }) throws {
    folder = try TemporaryFolder()
    // In a folder of its own, which can be moved away as a whole.
    mkdir(folder.path("live"), 0o700)
    store = try SQLiteBackendStore(path: folder.path("live/db"))
    var settings = BackendLoop.Settings()
    change(&settings)
    let events = Events()
    loop = try BackendLoop(store: store, settings: settings) { events.add($0, $1) }
    self.delivered = events
  }

  let delivered: Events

  final class Events: Sendable {
    private let list = Mutex<[(BackendEvent, [ConnectionID])]>([])
    func add(_ event: BackendEvent, _ subscribers: [ConnectionID]) {
      list.withLock { $0.append((event, subscribers)) }
    }
    var all: [(BackendEvent, [ConnectionID])] { list.withLock { $0 } }
  }

  deinit { loop.stop() }

  func ask(
    _ request: BackendRequest, _ caller: Caller, wait: TimeDelta? = nil
  ) async -> Result<BackendResponse, BackendFailure> {
    await withCheckedContinuation { continuation in
      loop.ask(BackendCall(request, from: caller), patience: wait.map { LoopPatience(atMost: $0) }) {
        continuation.resume(returning: $0)
      }
    }
  }

  func enrol(_ user: UserID? = nil) async throws -> Caller {
    let now = ServerTime.now
    let user = user ?? UserID(at: now.wall, using: &random)
    let key = random.bytes(32)
    let name = DeviceID(at: now.wall, using: &random)
    let packages = (0..<4).map { _ in
      Wire.keyPackage(
        initKey: random.bytes(32), signatureKey: key, user: user, device: name,
        notAfter: UInt64(now.wall.seconds + 90 * 86_400))
    }
    let enrolment = DeviceEnrolment(
      device: name, signatureKey: key, platform: .linux, keyPackages: packages, lastResort: nil)
    guard
      case .enrolled(let device) = try await ask(.enrolDevice(enrolment), Caller(user: user, device: nil))
        .get()
    else { throw Rig<MemoryStore>.Unexpected() }
    return Caller(user: user, device: device)
  }

  /// A group of two, and a message for it.
  func pair() async throws -> (anna: Caller, ben: Caller, group: GroupID, message: OutgoingMessage) {
    let (anna, ben) = (try await enrol(), try await enrol())
    let id = MLSGroupID(random.bytes(32))
    _ = await ask(.claimKeyPackages(of: ben.user), anna)
    var delta = MemberDelta()
    delta.addedUsers = [ben.user]
    delta.addedLeaves = [NewLeaf(device: ben.device!, index: 1)]
    let bundle = CommitBundle(
      epoch: 0, commit: Wire.commit(id, 0, [1]), welcome: Wire.welcome([2]), groupInfo: Wire.groupInfo(id, 1),
      delta: delta)
    guard
      case .founded(let group) = try await ask(
        .createGroup(GroupFounding(mlsID: id, kind: .group, commit: bundle)), anna
      ).get()
    else { throw Rig<MemoryStore>.Unexpected() }
    let message = OutgoingMessage(
      epoch: 1, id: ClientMessageID(at: ServerTime.now.wall, using: &random),
      blob: Wire.application(id, 1, [3]))
    return (anna, ben, group.id, message)
  }

  func empty(_ caller: Caller) async throws {
    guard
      case .queue(let rows, _) = try await ask(
        .fetchQueue(after: .start, limit: 100, connection: nil), caller
      ).get(), let last = rows.last
    else { return }
    _ = await ask(.acknowledge(.upTo(last.id), connection: nil), caller)
  }
}

/// Holds the loop's thread in a transaction until it is opened.
private final class Gate: Sendable {
  private let isOpen = Mutex(false)
  private let isReached = Mutex(false)
  func pass() {
    isReached.withLock { $0 = true }
    while !isOpen.withLock({ $0 }) { WakeUpPause.short() }
  }
  func open() { isOpen.withLock { $0 = true } }
  func waitUntilReached() { while !isReached.withLock({ $0 }) { WakeUpPause.short() } }
}

private enum WakeUpPause {
  static func short() {
    var signals = try? Poller()
    _ = try? signals?.wait(for: .microseconds(200))
  }
}

@Suite("The backend's thread")
struct LoopTests {
  @Test("4.4: all that waits shares one transaction, and is answered after it")
  func groupCommit() async throws {
    let rig = try LoopRig()
    let caller = try await rig.enrol()
    let gate = Gate()
    let commits = Mutex(0)
    rig.store.willCommit = { () throws(BackendFailure) in
      commits.withLock { $0 += 1 }
      gate.pass()
    }
    let answers = Mutex(0)
    await withCheckedContinuation { continuation in
      rig.loop.ask(BackendCall(.commsPrefs, from: caller)) { _ in }
      gate.waitUntilReached()
      for _ in 0..<100 {
        rig.loop.ask(BackendCall(.keyPackageCount, from: caller)) { result in
          #expect(result == .success(.keyPackageCount(KeyPackageCount(count: 4, hasLastResort: false))))
          if answers.withLock({ count in
            count += 1
            return count
          }) == 100 {
            continuation.resume()
          }
        }
      }
      #expect(answers.withLock { $0 } == 0)
      gate.open()
    }
    #expect(commits.withLock { $0 } == 2)
  }

  @Test(
    "2.2: more than may wait is refused at once as unavailable, to be tried again; the others are answered")
  func overload() async throws {
    let rig = try LoopRig { $0.waitingCount = 3 }
    let caller = try await rig.enrol()
    let gate = Gate()
    rig.store.willCommit = { () throws(BackendFailure) in gate.pass() }
    let results = Mutex<[Result<BackendResponse, BackendFailure>]>([])
    await withCheckedContinuation { continuation in
      rig.loop.ask(BackendCall(.commsPrefs, from: caller)) { _ in }
      gate.waitUntilReached()
      for index in 0..<4 {
        rig.loop.ask(BackendCall(.commsPrefs, from: caller)) { result in
          results.withLock { $0.append(result) }
          if index == 2 { continuation.resume() }
        }
      }
      #expect(results.withLock { $0 } == [.failure(.unavailable(.overloaded))])
      gate.open()
    }
    #expect(results.withLock { $0 }.dropFirst().allSatisfy { $0 == .success(.commsPrefs(CommsPrefs())) })
    let error = APIError(.unavailable(.overloaded))
    #expect(error.status == 503 && error.response(requestID: "x").headers.contains(.init("retry-after", "1")))
    #expect(rig.loop.statistics.overloadCount == 1)
  }

  @Test(
    "4.1: a store that cannot tell whether a commit is there refuses it and is opened again; nothing else is lost"
  )
  func reopening() async throws {
    let rig = try LoopRig { $0.reopenInterval = .zero }
    let (anna, ben, group, message) = try await rig.pair()
    let breaks = Mutex(true)
    rig.store.willCommit = { [store = rig.store] () throws(BackendFailure) in
      guard
        breaks.withLock({ breaks in
          defer { breaks = false }
          return breaks
        })
      else { return }
      store.connection.refuseEverything()
    }
    #expect(await rig.ask(.send(group, message), anna) == .failure(.unavailable(.failed)))
    let accepted = Result<BackendResponse, BackendFailure>.success(
      .accepted(sequence: 2, epoch: 1, isRepeated: false))
    #expect(await rig.ask(.send(group, message), anna) == accepted)
    guard
      case .queue(let rows, _) = try await rig.ask(
        .fetchQueue(after: .start, limit: 100, connection: nil), ben
      ).get()
    else {
      Issue.record("no queue")
      return
    }
    #expect(rows.count == 2)
    #expect(rig.loop.statistics.reopenCount == 1)
  }

  @Test(
    "Bug: the backend was never told of a store that was opened again when telling it failed the first time")
  func behind() async throws {
    let rig = try LoopRig {
      $0.reopenInterval = .zero
      $0.limits.wakeDelay = .zero
    }
    let (anna, ben, group, message) = try await rig.pair()
    _ = await rig.ask(.setPushToken(PushToken(platform: .ios, bytes: [1])), ben)
    try await rig.empty(ben)
    // The message is there, and nobody was told; then the look at what is there fails once.
    let step = Mutex(0)
    rig.store.didCommit = { [store = rig.store] () throws(BackendFailure) in
      let number = step.withLock { step in
        step += 1
        return step
      }
      if number == 1 { store.connection.refuseEverything() }
      if number <= 2 { throw .unavailable(.failed) }
    }
    #expect(await rig.ask(.send(group, message), anna) == .failure(.unavailable(.failed)))
    // No request of anybody's: what the last transaction has left is found all the same.
    let deadline = MonotonicClock.now() + .seconds(20)
    func isWoken() -> Bool {
      rig.delivered.all.contains { event, _ in
        if case .wakePush(let push) = event {
          push.device == ben.device && push.group == group
        } else {
          false
        }
      }
    }
    while !isWoken(), MonotonicClock.now() < deadline { WakeUpPause.short() }
    #expect(isWoken())
    #expect(rig.loop.statistics.reopenCount == 1)
    #expect(rig.delivered.all.contains { event, _ in event == .storeFault(.failed) })
  }

  @Test(
    "Section 3: a file that is damaged when it is opened again: refused until it is put right, then nothing is lost"
  )
  func replaced() async throws {
    let rig = try LoopRig { $0.reopenInterval = .zero }
    let (anna, ben, group, message) = try await rig.pair()
    let (live, away) = (rig.folder.path("live"), rig.folder.path("away"))
    let breaks = Mutex(true)
    rig.store.didCommit = { [store = rig.store] () throws(BackendFailure) in
      let isFirst = breaks.withLock { breaks in
        defer { breaks = false }
        return breaks
      }
      guard isFirst else { return }
      rename(live, away)
      mkdir(live, 0o700)
      try? Data("no database".utf8).write(to: URL(fileURLWithPath: live + "/db"))
      store.connection.refuseEverything()
      throw .unavailable(.failed)
    }
    // It is there, and nobody was told.
    #expect(await rig.ask(.send(group, message), anna) == .failure(.unavailable(.failed)))
    for _ in 0..<5 { #expect(await rig.ask(.unread(group), ben) == .failure(.unavailable(.displaced))) }
    #expect(rig.loop.statistics.reopenCount == 0)
    rename(live, rig.folder.path("damaged"))
    rename(away, live)
    #expect(
      await rig.ask(.send(group, message), anna)
        == .success(.accepted(sequence: 2, epoch: 1, isRepeated: true)))
    #expect(rig.loop.statistics.reopenCount == 1)
  }

  @Test(
    "A store and its core are brought back one after the other; what failed is tried again, and only that")
  func recovery() {
    struct Fault: Error {}
    var recovery = StoreRecovery(interval: .seconds(1))
    var now = Instant(nanoseconds: 0)
    var (isUsable, calls) = (true, [String]())
    func attempt(reopens: Bool = true, tells: Bool = true) -> String {
      let outcome = recovery.attempt(at: now, isUsable: isUsable) {
        calls.append("reopen")
        guard reopens else { throw Fault() }
        isUsable = true
      } tell: {
        calls.append("tell")
        guard tells else { throw Fault() }
      }
      defer { calls = [] }
      return (["\(outcome)".prefix(while: { $0.isLetter })].map(String.init) + calls).joined(separator: " ")
    }
    #expect(recovery.deadline(isUsable: true) == nil && attempt() == "none")
    isUsable = false
    #expect(attempt(reopens: false) == "failed reopen")
    #expect(attempt() == "none" && recovery.deadline(isUsable: false) == now + .seconds(1))
    now = now + .seconds(1)
    #expect(attempt(tells: false) == "failed reopen tell")
    #expect(recovery.deadline(isUsable: true) == now + .seconds(1) && attempt() == "none")
    now = now + .seconds(1)
    #expect(attempt(tells: false) == "failed tell")
    // It fails again before its core was told: both are to be done once more.
    isUsable = false
    now = now + .seconds(1)
    #expect(attempt() == "recovered reopen tell")
    now = now + .seconds(9)
    #expect(recovery.deadline(isUsable: true) == nil && attempt() == "none")
  }

  @Test("4.2: a fetch that waits is answered by the message that comes, also one of the same transaction")
  func patience() async throws {
    let rig = try LoopRig()
    let (anna, ben, group, message) = try await rig.pair()
    try await rig.empty(ben)
    let gate = Gate()
    rig.store.willCommit = { () throws(BackendFailure) in gate.pass() }
    let fetch = BackendRequest.fetchQueue(after: .start, limit: 10, connection: nil)
    let result = await withCheckedContinuation { continuation in
      rig.loop.ask(BackendCall(.commsPrefs, from: anna)) { _ in }
      gate.waitUntilReached()
      rig.loop.ask(BackendCall(fetch, from: ben), patience: LoopPatience(atMost: .seconds(600))) {
        continuation.resume(returning: $0)
      }
      rig.loop.ask(BackendCall(.send(group, message), from: anna)) { _ in }
      gate.open()
    }
    guard case .success(.queue(let rows, false)) = result else {
      Issue.record("\(result)")
      return
    }
    #expect(rows.count == 1)

    try await rig.empty(ben)
    async let later = rig.ask(fetch, ben, wait: .seconds(600))
    // Sent when the fetch waits, or before: it is answered either way.
    var second = message
    second.id = ClientMessageID(bytes: [UInt8](repeating: 7, count: 16))!
    _ = await rig.ask(.send(group, second), anna)
    guard case .success(.queue(let more, false)) = await later else {
      Issue.record("nothing came")
      return
    }
    #expect(more.count == 1)
  }

  @Test(
    "4.2: a fetch that waited long enough is answered with nothing; a newer one ends it; so does the removal of its device"
  )
  func endsOfPatience() async throws {
    let rig = try LoopRig()
    let caller = try await rig.enrol()
    let fetch = BackendRequest.fetchQueue(after: .start, limit: 10, connection: nil)
    #expect(await rig.ask(fetch, caller, wait: .milliseconds(20)) == .success(.queue([], hasMore: false)))

    let (older, newer): (Result<BackendResponse, BackendFailure>, Result<BackendResponse, BackendFailure>)
    async let first = rig.ask(fetch, caller, wait: .seconds(600))
    // The first may come second; one of them is superseded, and the other ends with the device.
    async let second = rig.ask(fetch, caller, wait: .seconds(600))
    let other = try await rig.enrol(caller.user)
    while rig.loop.statistics.requestCount < 5 { await Task.yield() }
    #expect(await rig.ask(.revokeDevice(caller.device!), other) == .success(.done))
    (older, newer) = await (first, second)
    let expected: [Result<BackendResponse, BackendFailure>] = [
      .failure(.superseded), .failure(.deviceRevoked),
    ]
    #expect([older, newer] == expected || [newer, older] == expected)
  }

  @Test("what waits at the end is answered, and what comes later is refused")
  func stop() async throws {
    let rig = try LoopRig()
    let caller = try await rig.enrol()
    async let waiting = rig.ask(
      .fetchQueue(after: .start, limit: 10, connection: nil), caller, wait: .seconds(600))
    while rig.loop.statistics.requestCount < 2 { await Task.yield() }
    rig.loop.stop()
    #expect(await waiting == .success(.queue([], hasMore: false)))
    #expect(await rig.ask(.commsPrefs, caller) == .failure(.unavailable(.overloaded)))
  }

  @Test("4.3: requests and the end of a connection keep their order; nobody hears for one that closed")
  func closedConnections() async throws {
    let rig = try LoopRig()
    let (anna, ben, group, message) = try await rig.pair()
    let gate = Gate()
    rig.store.willCommit = { () throws(BackendFailure) in gate.pass() }
    await withCheckedContinuation { continuation in
      rig.loop.ask(BackendCall(.commsPrefs, from: anna)) { _ in }
      gate.waitUntilReached()
      rig.loop.ask(BackendCall(.subscribe(ConnectionID(1), .device(ben.device!)), from: ben)) { _ in }
      rig.loop.connectionClosed(ConnectionID(1))
      rig.loop.ask(BackendCall(.heartbeat(ConnectionID(2)), from: ben)) { _ in continuation.resume() }
      gate.open()
    }
    _ = await rig.ask(.send(group, message), anna)
    #expect(!rig.delivered.all.contains { $0.1.contains(ConnectionID(1)) })
  }

  @Test("the data folder is one server's alone, keys are made once and kept closed")
  func folder() throws {
    let temporary = try TemporaryFolder()
    let path = temporary.path("deep/er")
    let key: [UInt8]
    do {
      let folder = try DataFolder(path + "/")
      key = try folder.key(.deviceTokens)
      #expect(key.count == 32)
      #expect(try folder.key(.blobAddresses) != key)
      #expect(throws: DataFolder.Failure.self) { try DataFolder(path) }
    }
    let folder = try DataFolder(path)
    #expect(throws: DataFolder.Failure.self) { try folder.key(.refreshTokens, mayBeNew: false) }
    #expect(try folder.key(.deviceTokens) == key)
  }
}
