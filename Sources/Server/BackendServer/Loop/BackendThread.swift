import PalbeBackendCore
import PalbeEventLoop
import PalbeSQLStore
import PalbeServerObservation
import PalbeUnits

/// The state of the loop's thread.
final class BackendThread {
  private var backend: Backend<SQLiteBackendStore>
  private let store: SQLiteBackendStore
  private let inbox: LoopInbox
  private let settings: BackendLoop.Settings
  private let counts: LoopCounts
  private let deliver: BackendLoop.Deliver
  /// Fetches that wait for rows, one of a device.
  private var parked: [DeviceID: Parked] = [:]
  /// Not after the end of any of them; one that was answered earlier costs a turn.
  private var nextPatience = Instant.distantFuture
  private var isDraining = false
  /// A copy of the store that is being made, and those that wait for it.
  private var copy: (copy: SQLBackup, request: LoopInbox.Copy)?
  private var waitingCopies: [LoopInbox.Copy] = []
  /// About a mebibyte at a time, so that requests wait for a few milliseconds at most.
  private static let copiedPageCount = 256
  private let tick: @Sendable (ServerTime) -> Void
  private var nextTick = MonotonicClock.now()
  private var recovery: StoreRecovery
  private var wasGone = false

  private struct Parked {
    let item: LoopInbox.Item
    let until: Instant
  }

  init(
    backend: consuming Backend<SQLiteBackendStore>, store: SQLiteBackendStore, inbox: LoopInbox,
    settings: BackendLoop.Settings, counts: LoopCounts, tick: @escaping @Sendable (ServerTime) -> Void,
    deliver: @escaping BackendLoop.Deliver
  ) {
    self.tick = tick
    self.backend = backend
    self.store = store
    self.inbox = inbox
    self.settings = settings
    self.counts = counts
    self.deliver = deliver
    recovery = StoreRecovery(interval: settings.reopenInterval)
  }

  /// The thread's body.
  func run(_ poller: inout Poller) {
    while true {
      // A wait that the kernel refuses is a turn without news.
      _ = try? poller.wait(until: nextDeadline)
      let contents = inbox.take()
      turn(contents)
      if contents.isStopping { break }
    }
    turn(inbox.take())
    answerParked()
    for request in waitingCopies + (copy.map { [$0.request] } ?? []) { request.done(.failed) }
  }

  private var nextDeadline: Instant {
    if copy != nil || !waitingCopies.isEmpty { return Instant(nanoseconds: .min) }
    var next = min(nextTick, nextPatience)
    if store.isUsable { next = min(next, backend.nextDeadline) }
    if let attempt = recovery.deadline(isUsable: store.isUsable) { next = min(next, attempt) }
    return next
  }

  private func turn(_ contents: LoopInbox.Contents) {
    reopenIfNeeded()
    if let limits = contents.limits { backend.limits = limits }
    let items = contents.items
    for start in stride(from: 0, to: items.count, by: settings.batchCount) {
      carryOut(Array(items[start..<min(items.count, start + settings.batchCount)]))
    }
    let now = ServerTime.now
    if store.isUsable, backend.nextDeadline <= now.instant { backend.handleTimeout(at: now) }
    // A connection's requests came before its end, so they were carried out above.
    for connection in contents.closed { backend.connectionClosed(connection) }
    deliverEvents()
    if nextTick <= now.instant {
      nextTick = now.instant + settings.tickInterval
      tick(now)
      lookForFile()
    }
    if nextPatience <= now.instant { answerThoseOutOfPatience(at: now.instant) }
    if contents.isDraining {
      isDraining = true
      answerParked()
    }
    waitingCopies += contents.copies
    goOnCopying()
    countQueueRows()
  }

  /// Tells once that the file is gone, also when nobody asks for anything.
  private func lookForFile() {
    let isGone = !store.isInPlace
    if isGone, !wasGone { deliver(.storeFault(.displaced), []) }
    wasGone = isGone
  }

  private func countQueueRows() {
    let rows = store.queueRowCount
    counts.add { $0.queueRowCount = rows }
  }

  private func answerThoseOutOfPatience(at now: Instant) {
    let due = parked.filter { $0.value.until <= now }.keys
    nextPatience = parked.values.map(\.until).filter { $0 > now }.min() ?? .distantFuture
    askAgain(due.sorted())
  }

  private func answerParked() {
    for waiting in parked.values { waiting.item.answer(.success(.queue([], hasMore: false))) }
    parked = [:]
  }

  private func goOnCopying() {
    do throws(BackendFailure) {
      if copy == nil, !waitingCopies.isEmpty {
        let request = waitingCopies.removeFirst()
        do throws(BackendFailure) { copy = (try store.copy(to: request.path), request) } catch {
          request.done(Self.fault(error))
        }
      }
      guard let (copy, request) = copy, try store.goOn(copy, pageCount: Self.copiedPageCount) else { return }
      self.copy = nil
      request.done(nil)
    } catch {
      let request = copy?.request
      copy = nil
      request?.done(Self.fault(error))
    }
  }

  private static func fault(_ failure: BackendFailure) -> StoreFault {
    if case .unavailable(let fault) = failure { fault } else { .failed }
  }

  private func carryOut(_ items: [LoopInbox.Item]) {
    // Watched from before on: rows may come with a request of the same transaction.
    for item in items where item.patience != nil { watch(item.call.caller.device, true) }
    let now = ServerTime.now
    let results = backend.handle(items.map(\.call), at: now)
    counts.batchSizes.observe(Double(items.count))
    counts.transactionTimes.observe((MonotonicClock.now() - now.instant).inSeconds)
    // Before the answers: who has one and asks for the metrics finds it counted.
    countQueueRows()
    var changed: [DeviceID] = []
    for (item, result) in zip(items, results) {
      switch result {
      case .success(.queue(let rows, _)) where rows.isEmpty && park(item): continue
      case _ where item.patience != nil: watch(item.call.caller.device, false)
      case .success: if case .revokeDevice(let device) = item.call.request { changed.append(device) }
      case .failure(.unavailable(let fault)): deliver(.storeFault(fault), [])
      case .failure: break
      }
      item.answer(result)
    }
    counts.add {
      $0.requestCount += UInt64(items.count)
      $0.batchCount += 1
    }
    askAgain(changed)
    deliverEvents()
  }

  // MARK: Events

  private func deliverEvents() {
    var changed: [DeviceID] = []
    while let event = backend.pollEvent() {
      guard case .publish(let topic, let news) = event else {
        deliver(event, [])
        continue
      }
      if case .device(let device) = topic, news == .queueChanged, parked[device] != nil {
        changed.append(device)
      }
      let subscribers = backend.subscribers(of: topic)
      if !subscribers.isEmpty { deliver(event, subscribers) }
    }
    askAgain(changed)
  }

  // MARK: Fetches that wait

  private func watch(_ device: DeviceID?, _ isOn: Bool) {
    if let device, isOn || parked[device] == nil { backend.watch(device, isOn) }
  }

  /// False when the fetch is to be answered as it is.
  private func park(_ item: LoopInbox.Item) -> Bool {
    guard !isDraining, let patience = item.patience, let device = item.call.caller.device,
      patience.until > MonotonicClock.now()
    else { return false }
    nextPatience = min(nextPatience, patience.until)
    let older = parked.updateValue(Parked(item: item, until: patience.until), forKey: device)
    older?.item.answer(.failure(.superseded))
    return true
  }

  /// Carries parked fetches out once more, and this time they are answered.
  private func askAgain(_ devices: [DeviceID]) {
    var items: [LoopInbox.Item] = []
    for device in devices {
      guard let waiting = parked.removeValue(forKey: device) else { continue }
      watch(device, false)
      items.append(.init(call: waiting.item.call, patience: nil, answer: waiting.item.answer))
    }
    if !items.isEmpty { carryOut(items) }
  }

  // MARK: A store that failed

  private func reopenIfNeeded() {
    let now = ServerTime.now
    let outcome = recovery.attempt(at: now.instant, isUsable: store.isUsable) {
      try store.reopen()
    } tell: {
      try backend.storeReopened(at: now)
    }
    switch outcome {
    case .none: break
    case .recovered: counts.add { $0.reopenCount += 1 }
    case .failed(let error):
      deliver(.storeFault(error as? SQLError == .displaced ? .displaced : .failed), [])
    }
  }
}
