public import PalbeUnits

/// What time brings: leases that end, wakes that are due, what is kept too long.
extension Backend {
  /// When `handleTimeout` wants to be called next.
  public var nextDeadline: Instant { min(live.timers.next ?? .distantFuture, nextSweep) }

  /// Does what is due. Work that the store refuses is tried again a second later.
  public mutating func handleTimeout(at now: ServerTime) {
    let due = runTimers(at: now.instant)
    if !due.isEmpty { send(due, at: now) }
    if nextSweep <= now.instant {
      live.rates.forget(at: now.instant)
      live.claims.forget(at: now.instant)
      sweep(at: now)
    }
  }

  /// Sends pushes for what is due, in one transaction. When rows are damaged each is tried alone, so that the others do not
  /// suffer, and these wait longer.
  private mutating func send(_ due: [WakeSpan], at now: ServerTime) {
    do throws(BackendFailure) {
      let pushes = try transact { (backend) throws(BackendFailure) in try backend.wake(due) }
      for span in due { live.removeWake(span.device, span.group) }
      events.append(contentsOf: pushes.map { .wakePush($0) })
    } catch {
      let isDamaged = error == .unavailable(.corrupted)
      if isDamaged, due.count > 1 { return due.forEach { send([$0], at: now) } }
      report(error)
      for span in due {
        live.removeWake(span.device, span.group)
        live.wake(span, at: now.instant + .seconds(isDamaged ? 60 : 1))
      }
    }
  }

  private mutating func report(_ error: BackendFailure) {
    if case .unavailable(let fault) = error { events.append(.storeFault(fault)) }
  }

  private mutating func transact<Result>(
    _ body: (inout Self) throws(BackendFailure) -> Result
  ) throws(BackendFailure) -> Result {
    try store.begin()
    do throws(BackendFailure) {
      let result = try body(&self)
      try store.commit()
      return result
    } catch {
      store.rollBack()
      throw error
    }
  }

  /// The pushes for rows that are still there, and remembers that they were sent.
  private mutating func wake(_ due: [WakeSpan]) throws(BackendFailure) -> [WakePush] {
    var pushes: [WakePush] = []
    var woken: [DeviceID: QueueID] = [:]
    let dueGroups = Dictionary(grouping: due, by: \.device).mapValues { Set($0.map(\.group)) }
    for span in due {
      guard let device = try store.device(span.device), device.revokedAt == nil else { continue }
      // Rows that came before another group's wake is sent are not to be forgotten with it.
      let waiting = live.wakes[span.device]?.filter { dueGroups[span.device]?.contains($0.key) != true }
      let rest = waiting?.values.map(\.span.first.rawValue).min() ?? .max
      woken[span.device] = max(
        woken[span.device] ?? .start, min(span.last, QueueID(rest == .max ? .max : rest - 1)))
      guard try store.isUnacknowledged(span) else { continue }
      let scope = try store.member(device.user, of: span.group)?.scope ?? .all
      if scope == .none && span.kind == .message { continue }
      let tokens = try store.pushTokens(of: span.device).filter { $0.platform == .ios }
      if !tokens.isEmpty {
        pushes.append(WakePush(device: span.device, group: span.group, kind: span.kind, tokens: tokens))
      }
    }
    for (device, id) in woken.sorted(by: { $0.key < $1.key }) { try store.setWoken(device, through: id) }
    return pushes
  }

  /// What expires, each kind in its own time.
  private enum Expiring: CaseIterable {
    case queueRows, logRows, keyPackages, idempotency, blobs
  }

  /// Removes a portion of what has expired, each kind in a transaction of its own: damage in one table keeps no other one full.
  private mutating func sweep(at now: ServerTime) {
    var wait = limits.sweepInterval
    for kind in Expiring.allCases {
      do throws(BackendFailure) {
        let dropped = try transact { (backend) throws(BackendFailure) in try backend.drop(kind, at: now) }
        if !dropped.blobs.isEmpty { events.append(.deleteBlobs(dropped.blobs)) }
        if dropped.hasMore { wait = min(wait, .seconds(1)) }
      } catch {
        report(error)
        wait = min(wait, .seconds(60))
        // Any other fault is the next kind's too.
        guard error == .unavailable(.corrupted) else { break }
      }
    }
    nextSweep = now.instant + wait
  }

  /// Removes a portion of one kind; tells the blobs among it, and whether there may be more.
  private mutating func drop(
    _ kind: Expiring, at now: ServerTime
  ) throws(BackendFailure) -> (blobs: [BlobID], hasMore: Bool) {
    let time = expiryTime(now)
    let count = limits.sweepCount
    let cutoff = time - limits.retention
    switch kind {
    case .queueRows:
      return ([], try store.dropQueueRows(before: QueueID(cutoff.microseconds), limit: count, at: now.wall))
    case .logRows:
      // A day later, so that no row of a queue is left without its message when the clock was set.
      return ([], try store.dropLogRows(before: cutoff - .days(1), limit: count))
    case .keyPackages: return ([], try store.dropKeyPackages(expiredAt: time, limit: count))
    case .idempotency: return ([], try store.dropIdempotency(expiredAt: time, limit: count))
    case .blobs:
      let blobs = try store.dropBlobs(expiredAt: time, limit: count)
      return (blobs, blobs.count == count)
    }
  }
}
