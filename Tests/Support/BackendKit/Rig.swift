public import PalbeBackendCore
public import PalbeUnits

/// A server over one store in virtual time, and clients that do what an honest client does.
public final class Rig<Store: BackendStore> {
  public var backend: Backend<Store>
  public private(set) var now: ServerTime
  /// For what the clients make up.
  public var random: RandomSource

  public init(
    _ store: Store, seed: UInt64 = 1, limits: BackendLimits = BackendLimits(), at start: ServerTime? = nil
  ) throws {
    now =
      start
      ?? ServerTime(
        wall: WallTime(microseconds: 1_800_000_000_000_000), instant: Instant(nanoseconds: 1_000_000_000))
    random = RandomSource(seed: seed)
    backend = try Backend(store: store, random: RandomSource(seed: seed &+ 1), limits: limits, at: now)
  }

  // MARK: Time

  /// Lets time go by, with every timer on its instant.
  public func advance(by delta: TimeDelta) {
    let end = now.instant + delta
    while backend.nextDeadline <= end {
      move(to: max(now.instant, backend.nextDeadline))
      backend.handleTimeout(at: now)
    }
    move(to: end)
  }

  private func move(to instant: Instant) {
    now.wall = now.wall + (instant - now.instant)
    now.instant = instant
  }

  /// Sets the wall clock alone.
  public func jump(by delta: TimeDelta) { now.wall = now.wall + delta }

  // MARK: Requests

  @discardableResult
  public func ask(
    _ request: BackendRequest, _ caller: Caller, key: IdempotencyKey? = nil
  ) throws(BackendFailure) -> BackendResponse {
    move(to: now.instant + .milliseconds(1))
    return try backend.handle(request, from: caller, idempotencyKey: key, at: now)
  }

  /// Why a request is refused; nil when it is not.
  public func refusal(_ request: BackendRequest, _ caller: Caller) -> BackendFailure? {
    do throws(BackendFailure) { try ask(request, caller) } catch { return error }
    return nil
  }

  /// What has come out since the last time.
  public func events() -> [BackendEvent] {
    var events: [BackendEvent] = []
    while let event = backend.pollEvent() { events.append(event) }
    return events
  }

  /// The wake pushes that have come out; other events are lost.
  public func pushes() -> [WakePush] {
    events().compactMap { if case .wakePush(let push) = $0 { push } else { nil } }
  }

  // MARK: Clients

  public func newUser() -> UserID { UserID(at: now.wall, using: &random) }
  public func newMessageID() -> ClientMessageID { ClientMessageID(at: now.wall, using: &random) }
  public func newMLSID() -> MLSGroupID { MLSGroupID(random.bytes(32)) }

  public func enrolment(of user: UserID, packages: Int = 4, lastResort: Bool = true) -> DeviceEnrolment {
    let key = random.bytes(32)
    let device = DeviceID(at: now.wall, using: &random)
    let caller = Caller(user: user, device: device)
    return DeviceEnrolment(
      device: device, signatureKey: key, platform: .ios,
      keyPackages: (0..<packages).map { _ in package(key, of: caller) },
      lastResort: lastResort ? package(key, of: caller, isLastResort: true) : nil)
  }

  /// A key package of a device, which the caller must have.
  public func package(
    _ signatureKey: [UInt8], of caller: Caller, isLastResort: Bool = false, days: Int64 = 90
  ) -> [UInt8] {
    Wire.keyPackage(
      initKey: random.bytes(32), signatureKey: signatureKey, user: caller.user,
      device: caller.device ?? DeviceID(at: now.wall, using: &random),
      notAfter: UInt64(now.wall.seconds + days * 86_400), isLastResort: isLastResort)
  }

  /// A new device, of a new user without one.
  public func enrol(_ user: UserID? = nil, packages: Int = 4, lastResort: Bool = true) throws -> Caller {
    let user = user ?? newUser()
    let enrolment = enrolment(of: user, packages: packages, lastResort: lastResort)
    guard case .enrolled(let device) = try ask(.enrolDevice(enrolment), Caller(user: user, device: nil))
    else {
      throw Unexpected()
    }
    return Caller(user: user, device: device)
  }

  /// An answer of another kind than the request's.
  public struct Unexpected: Error {
    public init() {}
  }

  public func view(_ group: GroupID, _ caller: Caller) throws -> GroupView {
    guard case .group(let view) = try ask(.group(group), caller) else { throw Unexpected() }
    return view
  }

  /// Founds a group with other users, all their devices in it.
  public func found(
    by caller: Caller, with users: [UserID] = [], kind: GroupFounding.Kind = .group
  ) throws -> GroupID {
    guard
      case .founded(let group) = try ask(
        .createGroup(try founding(by: caller, with: users, kind: kind)), caller)
    else { throw Unexpected() }
    return group.id
  }

  public func founding(
    by caller: Caller, with users: [UserID], kind: GroupFounding.Kind = .group
  ) throws -> GroupFounding {
    let id = newMLSID()
    var delta = MemberDelta()
    delta.addedUsers = users.filter { $0 != caller.user }
    for user in delta.addedUsers { delta.addedLeaves += try claim(user, caller) }
    if try devices(of: caller).count > 1 { delta.addedLeaves += try claim(caller.user, caller) }
    for index in delta.addedLeaves.indices { delta.addedLeaves[index].index = UInt32(index + 1) }
    guard !delta.addedLeaves.isEmpty else {
      return GroupFounding(mlsID: id, kind: kind, commit: nil, groupInfo: Wire.groupInfo(id, 0))
    }
    return GroupFounding(mlsID: id, kind: kind, commit: bundle(id, 0, delta))
  }

  private func devices(of caller: Caller) throws -> [DeviceView] {
    guard case .devices(let devices) = try ask(.devices, caller) else { throw Unexpected() }
    return devices.filter { $0.revokedAt == nil }
  }

  private func claim(_ user: UserID, _ caller: Caller) throws -> [NewLeaf] {
    guard case .keyPackages(let packages, _) = try ask(.claimKeyPackages(of: user), caller) else {
      throw Unexpected()
    }
    return packages.map { NewLeaf(device: $0.device, index: 0) }
  }

  public func bundle(_ id: MLSGroupID, _ epoch: Epoch, _ delta: MemberDelta = MemberDelta()) -> CommitBundle {
    let others = delta.addedLeaves.count
    return CommitBundle(
      epoch: epoch, commit: Wire.commit(id, epoch, random.bytes(24)),
      welcome: others > 0 ? Wire.welcome(random.bytes(16)) : nil, groupInfo: Wire.groupInfo(id, epoch + 1),
      delta: delta)
  }

  /// What an honest member would commit: the wish, and the leaves that have to go.
  public func bundle(
    _ group: GroupID, by caller: Caller, adding users: [UserID] = [], addingDevices devices: [DeviceID] = [],
    removing removed: [UserID] = [], removingDevices removedDevices: [DeviceID] = []
  ) throws -> CommitBundle {
    let view = try view(group, caller)
    var delta = MemberDelta()
    delta.addedUsers = users
    delta.removedUsers = removed
    for user in users { delta.addedLeaves += try claim(user, caller) }
    delta.addedLeaves += devices.map { NewLeaf(device: $0, index: 0) }
    delta.removedLeaves = view.leaves.filter { leaf in
      !leaf.isLive || removed.contains(leaf.user) || removedDevices.contains(leaf.device)
    }.map(\.device)
    var taken = Set(view.leaves.filter { !delta.removedLeaves.contains($0.device) }.map(\.index))
    for index in delta.addedLeaves.indices {
      let free = (0...).first { !taken.contains($0) } ?? 0
      taken.insert(free)
      delta.addedLeaves[index].index = free
    }
    return bundle(view.summary.mlsID, view.summary.epoch, delta)
  }

  public func message(
    _ group: GroupID, _ caller: Caller, epoch: Epoch? = nil, wakes: Bool = true, isEphemeral: Bool = false
  ) throws -> OutgoingMessage {
    let summary = try view(group, caller).summary
    let epoch = epoch ?? summary.epoch
    return OutgoingMessage(
      epoch: epoch, id: newMessageID(), blob: Wire.application(summary.mlsID, epoch, random.bytes(40)),
      wakes: wakes, isEphemeral: isEphemeral)
  }

  /// Sends an application message; its position.
  @discardableResult
  public func send(_ group: GroupID, _ caller: Caller, wakes: Bool = true) throws -> LogSequence {
    guard
      case .accepted(let sequence, _, _) = try ask(
        .send(group, try message(group, caller, wakes: wakes)), caller)
    else { throw Unexpected() }
    return sequence
  }

  /// All that waits for a device, in pages.
  public func queue(_ caller: Caller, page: Int = 100) throws -> [QueueRow] {
    var rows: [QueueRow] = []
    while true {
      let last = rows.last?.id ?? .start
      guard
        case .queue(let more, let hasMore) = try ask(
          .fetchQueue(after: last, limit: page, connection: nil), caller)
      else { throw Unexpected() }
      rows += more
      if !hasMore { return rows }
    }
  }

  /// Takes all that waits for a device.
  @discardableResult
  public func drain(_ caller: Caller) throws -> [QueueRow] {
    let rows = try queue(caller)
    if let last = rows.last { try ask(.acknowledge(.upTo(last.id), connection: nil), caller) }
    return rows
  }
}

extension Rig where Store == MemoryStore {
  /// As if the process had ended and begun again over the same store; connections are gone.
  public func restart(seed: UInt64) throws {
    backend = try Backend(store: backend.finish(), random: RandomSource(seed: seed &+ 1), at: now)
  }
}
