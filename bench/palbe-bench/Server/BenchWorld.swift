import Glibc
import PalbeAccountsCore
import PalbeBackendCore
import PalbeBackendKit
import PalbeBackendServer
import PalbeEventLoop
import PalbeUnits
import PalbeWire
import Synchronization

/// What went wrong with a measurement.
struct ServerBenchFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A folder that is gone with its last user.
final class BenchFolder: Sendable {
  let path: String

  init() throws {
    var template = Array("/var/tmp/palbe-bench-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw ServerBenchFailure("no folder below /var/tmp") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { Self.remove(path) }

  func file(_ name: String) -> String { path + "/" + name }

  private static func remove(_ path: String) {
    if let folder = opendir(path) {
      while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != "." && name != ".." { remove(path + "/" + name) }
      }
      closedir(folder)
      rmdir(path)
    } else {
      unlink(path)
    }
  }

  /// Copies a database that nobody has open.
  func copy(_ name: String, to copy: String) throws {
    for end in ["", "-wal"] {
      let input = open(file(name + end), O_RDONLY)
      guard input >= 0 else { continue }
      defer { close(input) }
      let output = open(file(copy + end), O_WRONLY | O_CREAT | O_TRUNC, 0o600)
      defer { close(output) }
      var buffer = [UInt8](repeating: 0, count: 1 << 20)
      while true {
        let count = read(input, &buffer, buffer.count)
        guard count > 0 else { break }
        guard write(output, buffer, count) == count else { throw ServerBenchFailure("the disk is full") }
      }
      fsync(output)
    }
  }
}

/// Devices and groups at a backend's loop.
final class BenchWorld {
  let loop: BackendLoop
  private var random = RandomSource(seed: 7)
  private(set) var devices: [Caller] = []
  private(set) var groups: [(id: GroupID, mlsID: MLSGroupID, members: [Caller])] = []

  /// No device of a bench asks too much.
  static var settings: BackendLoop.Settings {
    var settings = BackendLoop.Settings()
    settings.limits.requestsPerSecond = 1_000_000
    settings.limits.requestBurst = 1_000_000_000
    settings.waitingCount = 100_000
    return settings
  }

  init(path: String) throws {
    loop = try BackendLoop(store: SQLiteBackendStore(path: path), settings: Self.settings) { _, _ in }
  }

  /// Over a loop that runs already.
  init(loop: BackendLoop) { self.loop = loop }

  /// Goes on with the devices and groups of another one, over a store that has them.
  init(path: String, after other: BenchWorld) throws {
    loop = try BackendLoop(store: SQLiteBackendStore(path: path), settings: Self.settings) { _, _ in }
    devices = other.devices
    groups = other.groups
    random = other.random
  }

  /// Asks for all at once, and waits for the answers, in order.
  func ask(_ calls: [BackendCall]) throws -> [BackendResponse] {
    let results = Mutex<[Int: Result<BackendResponse, BackendFailure>]>([:])
    let done = DoneSignal()
    for (index, call) in calls.enumerated() {
      loop.ask(call) { result in
        let count = results.withLock { results in
          results[index] = result
          return results.count
        }
        if count == calls.count { done.signal() }
      }
    }
    if !calls.isEmpty { done.wait() }
    let all = results.withLock { $0 }
    return try calls.indices.map { try all[$0]?.get() ?? .done }
  }

  private var now: WallTime { WallTime(microseconds: WallClock.unixNanoseconds() / 1_000) }

  /// New users with a device each.
  func enrol(_ count: Int) throws {
    for start in stride(from: 0, to: count, by: 500) {
      let calls = (start..<min(count, start + 500)).map { _ in
        let key = random.bytes(32)
        let (user, device) = (UserID(at: now, using: &random), DeviceID(at: now, using: &random))
        let package = Wire.keyPackage(
          initKey: random.bytes(32), signatureKey: key, user: user, device: device,
          notAfter: UInt64(now.seconds + 90 * 86_400), isLastResort: true)
        return BackendCall(
          .enrolDevice(
            DeviceEnrolment(
              device: device, signatureKey: key, platform: .linux, keyPackages: [], lastResort: package)),
          from: Caller(user: user, device: nil))
      }
      for (call, answer) in zip(calls, try ask(calls)) {
        guard case .enrolled(let device) = answer else { throw ServerBenchFailure("no enrolment") }
        devices.append(Caller(user: call.caller.user, device: device))
      }
    }
  }

  /// A group of these devices, the first of them its founder.
  func found(_ members: [Caller]) throws {
    let id = MLSGroupID(random.bytes(32))
    var delta = MemberDelta()
    delta.addedUsers = members.dropFirst().map(\.user)
    delta.addedLeaves = members.dropFirst().enumerated().compactMap { index, member in
      member.device.map { NewLeaf(device: $0, index: UInt32(index + 1)) }
    }
    let bundle = CommitBundle(
      epoch: 0, commit: Wire.commit(id, 0, [1]), welcome: Wire.welcome([1]), groupInfo: Wire.groupInfo(id, 1),
      delta: delta)
    let founding = GroupFounding(mlsID: id, kind: .group, commit: bundle)
    guard case .founded(let group) = try ask([BackendCall(.createGroup(founding), from: members[0])])[0]
    else {
      throw ServerBenchFailure("no group")
    }
    groups.append((group.id, id, members))
  }

  /// Bytes of a message's content: a short text, sealed.
  static let contentByteCount = 400

  /// A message of a group's founder.
  func message(_ index: Int) -> BackendCall {
    let group = groups[index % groups.count]
    let message = OutgoingMessage(
      epoch: 1, id: ClientMessageID(at: now, using: &random),
      blob: Wire.application(group.mlsID, 1, random.bytes(Self.contentByteCount)))
    return BackendCall(.send(group.id, message), from: group.members[0])
  }

  /// Seconds for all calls, of which `width` wait at any time.
  func seconds(_ calls: [BackendCall], width: Int) throws -> Double {
    let runner = Runner(loop: loop, calls: calls)
    let start = nanoseconds()
    for _ in 0..<min(width, calls.count) { runner.next() }
    runner.done.wait()
    let time = Double(nanoseconds() - start) / 1e9
    guard runner.failureCount.withLock({ $0 }) == 0 else { throw ServerBenchFailure("a request was refused") }
    return time
  }

  private final class Runner: Sendable {
    let loop: BackendLoop
    let calls: [BackendCall]
    let done = DoneSignal()
    let failureCount = Mutex(0)
    private let taken = Atomic<Int>(0)
    private let answered = Atomic<Int>(0)

    init(loop: BackendLoop, calls: [BackendCall]) {
      self.loop = loop
      self.calls = calls
    }

    func next() {
      let index = taken.wrappingAdd(1, ordering: .relaxed).oldValue
      guard index < calls.count else { return }
      loop.ask(calls[index]) { [self] result in
        if case .failure = result { failureCount.withLock { $0 += 1 } }
        if answered.wrappingAdd(1, ordering: .relaxed).newValue == calls.count { done.signal() }
        next()
      }
    }
  }
}

/// Something that is awaited once.
final class DoneSignal: Sendable {
  private let wakeUp: WakeUp?
  init() { wakeUp = try? WakeUp() }
  func signal() { wakeUp?.wake() }
  func wait() {
    guard let wakeUp else { return }
    var ready = pollfd(fd: wakeUp.fileDescriptor, events: Int16(POLLIN), revents: 0)
    while poll(&ready, 1, -1) != 1 {}
    wakeUp.drain()
  }
}

/// Sessions whose token is the user's id.
struct BenchSessions: SessionVerifier {
  func session(token: String) throws(BackendFailure) -> VerifiedSession {
    guard let user = UserID(token), let session = SessionID(bytes: user.bytes) else { throw .notSignedIn }
    return VerifiedSession(
      user: user, session: session, expiresAt: WallTime(microseconds: .max), deadline: .distantFuture)
  }
}
