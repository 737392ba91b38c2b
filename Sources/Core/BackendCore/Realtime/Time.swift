public import PalbeUnits

/// What time brings: leases that end, wakes that are due, what is kept too long.
extension Backend {
  /// When `handleTimeout` wants to be called next.
  public var nextDeadline: Instant { min(live.timers.next ?? .distantFuture, nextSweep) }

  /// Does what is due. Work that the store refuses is tried again a second later.
  public mutating func handleTimeout(at now: ServerTime) {
    let due = runTimers(at: now.instant)
    if !due.isEmpty {
      do throws(BackendFailure) {
        let pushes = try transact { (backend) throws(BackendFailure) in try backend.wake(due) }
        for span in due { live.removeWake(span.device, span.group) }
        events.append(contentsOf: pushes.map { .wakePush($0) })
      } catch {
        report(error)
        for span in due {
          live.removeWake(span.device, span.group)
          live.wake(span, at: now.instant + .seconds(1))
        }
      }
    }
    if nextSweep <= now.instant {
      live.rates.forget(at: now.instant)
      live.claims.forget(at: now.instant)
      do throws(BackendFailure) {
        let swept = try transact { (backend) throws(BackendFailure) in try backend.sweep(at: now) }
        if !swept.blobs.isEmpty { events.append(.deleteBlobs(swept.blobs)) }
        nextSweep = now.instant + (swept.hasMore ? .seconds(1) : limits.sweepInterval)
      } catch {
        report(error)
        nextSweep = now.instant + .seconds(60)
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

  /// Removes a portion of what has expired.
  private mutating func sweep(at now: ServerTime) throws(BackendFailure) -> (blobs: [BlobID], hasMore: Bool) {
    let time = expiryTime(now)
    let count = limits.sweepCount
    let cutoff = time - limits.retention
    var hasMore = try store.dropQueueRows(
      before: QueueID(cutoff.microseconds), limit: count, at: now.wall)
    // A day later, so that no row of a queue is left without its message when the clock was set.
    if try store.dropLogRows(before: cutoff - .days(1), limit: count) { hasMore = true }
    if try store.dropKeyPackages(expiredAt: time, limit: count) { hasMore = true }
    if try store.dropIdempotency(expiredAt: time, limit: count) { hasMore = true }
    let blobs = try store.dropBlobs(expiredAt: time, limit: count)
    return (blobs, hasMore || blobs.count == count)
  }
}
