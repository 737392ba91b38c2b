public import PalbeUnits

/// The blind delivery server without its sockets: it orders, queues and wakes, and never looks into what it carries.
///
///     var backend = try Backend(store: store, random: random, at: now)
///     let response = try backend.handle(.send(group, message), from: caller, at: now)
///     while let event = backend.pollEvent() { … }
///
/// A request is one transaction of the store: what was answered is durable, what was refused left nothing. A batch of
/// requests shares one durable transaction with a savepoint for each, and their answers and events come out only after it.
/// What lives in memory (connections, leases, wakes that are due) changes after the transaction too.
public struct Backend<Store: BackendStore> {
  /// What it takes and how long it keeps it. May change between two calls; what is there already stays.
  public var limits: BackendLimits
  var store: Store
  var random: RandomSource
  var live = LiveState()
  /// What the requests of the open transaction will do to `live`, in order.
  var effects: [Effect] = []
  var events: [BackendEvent] = []
  private var taken = 0
  let start: ServerTime
  var nextSweep: Instant

  /// Begins to serve a store. Rows that nobody was woken for are due after the wake delay.
  public init(
    store: Store, random: RandomSource, limits: BackendLimits = BackendLimits(), at now: ServerTime
  ) throws(BackendFailure) {
    self.store = store
    self.random = random
    self.limits = limits
    start = now
    nextSweep = now.instant + limits.wakeDelay
    try readWakes(at: now)
  }

  private mutating func readWakes(at now: ServerTime) throws(BackendFailure) {
    try store.begin()
    let unwoken: [WakeSpan]
    do throws(BackendFailure) {
      unwoken = try store.unwoken()
      try store.commit()
    } catch {
      store.rollBack()
      throw error
    }
    for span in unwoken { live.wake(span, at: now.instant + limits.wakeDelay) }
  }

  /// The store was opened again after a failure that left open whether the last transaction is there: whoever consumes a
  /// queue is told to look, and wakes are read anew.
  public mutating func storeReopened(at now: ServerTime) throws(BackendFailure) {
    try readWakes(at: now)
    let devices = Set(live.consumers.keys).union(live.watched)
    for device in devices.sorted() { events.append(.publish(.device(device), .queueChanged)) }
  }

  /// From now on, or no longer, `queueChanged` comes for a device without a connection too.
  public mutating func watch(_ device: DeviceID, _ isOn: Bool) {
    if isOn { live.watched.insert(device) } else { live.watched.remove(device) }
  }

  /// Gives the store back, as when the server ends.
  public consuming func finish() -> Store { store }

  // MARK: Requests

  /// Carries out one request.
  public mutating func handle(
    _ request: BackendRequest, from caller: Caller, idempotencyKey: IdempotencyKey? = nil,
    at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    try handle([BackendCall(request, from: caller, idempotencyKey: idempotencyKey)], at: now)[0].get()
  }

  /// Carries out requests in order, in one durable transaction. When the store fails in it, each is tried alone, so that
  /// the others do not suffer.
  public mutating func handle(
    _ calls: [BackendCall], at now: ServerTime
  ) -> [Result<BackendResponse, BackendFailure>] {
    guard !calls.isEmpty else { return [] }
    do throws(BackendFailure) { return try transact(calls, at: now) } catch {
      guard calls.count > 1 else { return [.failure(error)] }
      return calls.flatMap { handle([$0], at: now) }
    }
  }

  /// Throws only `unavailable`, and then there is nothing of the batch.
  private mutating func transact(
    _ calls: [BackendCall], at now: ServerTime
  ) throws(BackendFailure) -> [Result<BackendResponse, BackendFailure>] {
    effects.removeAll(keepingCapacity: true)
    var results: [Result<BackendResponse, BackendFailure>] = []
    try store.begin()
    do throws(BackendFailure) {
      for call in calls {
        let kept = effects.count
        try store.setSavepoint()
        do throws(BackendFailure) {
          results.append(.success(try answer(call, at: now)))
          try store.releaseSavepoint()
        } catch {
          if case .unavailable = error { throw error }
          effects.removeSubrange(kept...)
          try store.rollBackToSavepoint()
          results.append(.failure(error))
        }
      }
      try store.commit()
    } catch {
      store.rollBack()
      effects.removeAll()
      throw error
    }
    for effect in effects { apply(effect, at: now) }
    effects.removeAll(keepingCapacity: true)
    return results
  }

  private mutating func answer(_ call: BackendCall, at now: ServerTime) throws(BackendFailure)
    -> BackendResponse
  {
    var device: DeviceRow?
    switch call.request {
    case .registerUser, .enrolDevice: break
    default:
      let known = try authenticate(call.caller)
      device = known
      let interval = TimeDelta.seconds(1) / limits.requestsPerSecond
      if let wait = live.rates.spend(
        known.id, at: now.instant, interval: interval, burst: limits.requestBurst)
      {
        throw .rateLimited(retryAfter: wait)
      }
    }
    guard let key = call.idempotencyKey else {
      return try dispatch(call.request, of: call.caller.user, by: device, at: now)
    }
    guard (1...64).contains(key.key.count), key.digest.count <= 64 else { throw .invalidRequest(.range) }
    let owner = call.caller.device?.bytes ?? call.caller.user.bytes
    if let first = try store.idempotency(owner: owner, key: key.key), first.expiresAt > expiryTime(now) {
      guard first.digest == key.digest else { throw .idempotencyMismatch }
      guard let response = BackendResponse(stored: first.response) else { throw .unavailable(.corrupted) }
      return response
    }
    let response = try dispatch(call.request, of: call.caller.user, by: device, at: now)
    if let stored = response.stored {
      let expires = now.wall + limits.idempotencyTime
      try store.put(
        IdempotencyRow(digest: key.digest, response: stored, expiresAt: expires), owner: owner, key: key.key)
    }
    return response
  }

  /// - Parameter device: the caller's, authenticated; nil for a request that needs none.
  private mutating func dispatch(
    _ request: BackendRequest, of user: UserID, by device: DeviceRow?, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    switch request {
    case .registerUser: return try registerUser(user)
    case .enrolDevice(let enrolment): return try enrol(enrolment, of: user, at: now)
    default: break
    }
    guard let device else { throw .deviceNotEnrolled }
    switch request {
    case .registerUser, .enrolDevice: throw .invalidRequest(.range)
    case .devices: return try devices(of: device.user)
    case .revokeDevice(let target): return try revoke(target, by: device, at: now)
    case .setPushToken(let token): return try setPushToken(token, of: device)
    case .commsPrefs: return .commsPrefs(try prefs(of: device.user))
    case .setCommsPrefs(let presence, let receipts):
      return try setPrefs(sharePresence: presence, shareReceipts: receipts, of: device)
    case .publishKeyPackages(let packages, let last):
      return try publish(packages, lastResort: last, of: device, at: now)
    case .keyPackageCount: return .keyPackageCount(try keyPackageCount(of: device, at: now))
    case .claimKeyPackages(let user): return try claimKeyPackages(of: user, by: device, at: now)
    case .createGroup(let founding): return try createGroup(founding, by: device, at: now)
    case .groups(let after, let limit): return try groups(of: device, after: after, limit: limit)
    case .group(let group): return try view(of: group, by: device)
    case .commit(let group, let bundle): return try commit(bundle, to: group, by: device, at: now)
    case .commits(let group, let epoch, let limit):
      return try commits(of: group, from: epoch, limit: limit, by: device)
    case .send(let group, let message): return try send(message, to: group, by: device, at: now)
    case .setRole(let group, let user, let role):
      return try setRole(role, of: user, in: group, by: device, at: now)
    case .leave(let group): return try leave(group, by: device, at: now)
    case .reset(let group, let generation, let founding):
      return try reset(group, generation: generation, founding, by: device, at: now)
    case .fetchQueue(let after, let limit, let connection):
      return try fetchQueue(of: device, after: after, limit: limit, connection: connection)
    case .acknowledge(let rows, let connection):
      return try acknowledge(rows, of: device, connection: connection)
    case .notifyScope(let group): return .notifyScope(try membership(of: device, in: group).member.scope)
    case .setNotifyScope(let group, let scope): return try setScope(scope, in: group, by: device)
    case .unread(let group): return try unread(in: group, by: device)
    case .markRead(let group, let sequence): return try markRead(sequence, in: group, by: device)
    case .createBlob(let group, let count): return try createBlob(count, in: group, by: device, at: now)
    case .completeBlob(let blob): return try completeBlob(blob, by: device, at: now)
    case .blob(let blob): return try view(of: blob, by: device, at: now)
    case .subscribe(let connection, let topic): return try subscribe(connection, to: topic, by: device)
    case .unsubscribe(let connection, let topic): return try unsubscribe(connection, from: topic, by: device)
    case .heartbeat(let connection): return try heartbeat(connection, by: device)
    case .setTyping(let connection, let group, let isOn):
      return try setTyping(isOn, connection, in: group, by: device)
    }
  }

  // MARK: Events

  /// What the shell has to do next; to be asked until nil after every call that takes a time.
  public mutating func pollEvent() -> BackendEvent? {
    guard taken < events.count else {
      events.removeAll(keepingCapacity: true)
      taken = 0
      return nil
    }
    defer { taken += 1 }
    return events[taken]
  }

  /// See `ServerTime.expiryTime(since:)`.
  func expiryTime(_ now: ServerTime) -> WallTime { now.expiryTime(since: start) }
}
