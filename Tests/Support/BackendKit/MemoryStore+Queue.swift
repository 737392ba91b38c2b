public import PalbeBackendCore
import PalbeUnits

extension MemoryStore {
  public mutating func nextQueueID(at time: WallTime) -> QueueID {
    tables.lastQueueID = QueueID(max(tables.lastQueueID.rawValue + 1, time.microseconds))
    return tables.lastQueueID
  }

  public mutating func insertWelcome(_ blob: [UInt8], of group: GroupID, readers: Int) -> WelcomeID {
    tables.lastWelcome += 1
    tables.welcomes[WelcomeID(tables.lastWelcome)] = (blob, readers)
    return WelcomeID(tables.lastWelcome)
  }

  public mutating func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, to devices: [DeviceID]
  ) throws(BackendFailure) {
    for device in devices {
      guard tables.queues[device]?[id] == nil else { throw .unavailable(.corrupted) }
      tables.queues[device, default: [:]][id] = Entry(item: item, wakes: wakes)
    }
  }

  public mutating func enqueue(
    _ item: QueueItem, id: QueueID, wakes: Bool, toLeavesOf group: GroupID, except device: DeviceID?
  ) throws(BackendFailure) -> [DeviceID] {
    let devices = leaves(of: group).filter { $0.isLive && $0.device != device }.map(\.device)
    try enqueue(item, id: id, wakes: wakes, to: devices)
    return devices
  }

  public mutating func queue(
    of device: DeviceID, after: QueueID, limit: Int, byteLimit: Int
  ) -> (rows: [QueueRow], hasMore: Bool) {
    let waiting = (tables.queues[device] ?? [:]).filter { $0.key > after }.sorted { $0.key < $1.key }
    var rows: [QueueRow] = []
    var count = 0
    for (id, entry) in waiting {
      guard rows.count < limit, count < byteLimit else { return (rows, true) }
      let content: QueueContent
      switch entry.item {
      case .message(let group, let sequence):
        if let row = tables.groups[group]?.log[sequence]?.row {
          content = .message(group, row)
        } else {
          content = .control(.historyGap(group))
        }
      case .welcome(let group, let welcome):
        content = .welcome(group, tables.welcomes[welcome]?.blob ?? [])
      case .control(let control): content = .control(control)
      }
      count += content.byteCount
      rows.append(QueueRow(id: id, content: content))
    }
    return (rows, false)
  }

  mutating func remove(_ id: QueueID, _ device: DeviceID) {
    if case .welcome(_, let welcome) = tables.queues[device]?[id]?.item {
      tables.welcomes[welcome]?.readers -= 1
      if tables.welcomes[welcome]?.readers == 0 { tables.welcomes[welcome] = nil }
    }
    tables.queues[device]?[id] = nil
  }

  public mutating func acknowledge(_ rows: Acknowledgement, of device: DeviceID) -> RemovedRows {
    var removed = RemovedRows()
    for (id, entry) in tables.queues[device] ?? [:] {
      switch rows {
      case .upTo(let last): guard id <= last else { continue }
      case .listed(let ids): guard ids.contains(id) else { continue }
      }
      if case .message(let group, let sequence) = entry.item {
        removed.delivered[group] = max(removed.delivered[group] ?? 0, sequence)
      }
      removed.count += 1
      remove(id, device)
    }
    return removed
  }

  public mutating func raiseDelivered(
    _ device: DeviceID, of group: GroupID, to sequence: LogSequence
  ) -> Bool {
    guard sequence > tables.groups[group]?.delivered[device] ?? 0 else { return false }
    tables.groups[group]?.delivered[device] = sequence
    return true
  }

  public mutating func delivered(to user: UserID, of group: GroupID) -> LogSequence {
    (tables.groups[group]?.delivered ?? [:]).filter { tables.devices[$0.key]?.user == user }.values.max() ?? 0
  }

  private func group(of item: QueueItem) -> GroupID? {
    switch item {
    case .message(let group, _), .welcome(let group, _): group
    case .control(let control): control.group
    }
  }

  public mutating func isUnacknowledged(_ span: WakeSpan) -> Bool {
    (tables.queues[span.device] ?? [:]).contains { id, entry in
      entry.wakes && id >= span.first && id <= span.last && group(of: entry.item) == span.group
    }
  }

  public mutating func unwoken() -> [WakeSpan] {
    var spans: [WakeSpan] = []
    for (device, rows) in tables.queues {
      guard let known = tables.devices[device], known.revokedAt == nil else { continue }
      var byGroup: [GroupID: WakeSpan] = [:]
      for (id, entry) in rows where entry.wakes && id > known.wokenThrough {
        guard let group = group(of: entry.item) else { continue }
        let kind: WakeKind = if case .welcome = entry.item { .welcome } else { .message }
        var span = byGroup[group] ?? WakeSpan(device: device, group: group, first: id, last: id, kind: kind)
        span.first = min(span.first, id)
        span.last = max(span.last, id)
        span.kind = max(span.kind, kind)
        byGroup[group] = span
      }
      spans += byGroup.values
    }
    return spans.sorted { ($0.device, $0.group) < ($1.device, $1.group) }
  }

  // MARK: Sweeps

  public mutating func dropQueueRows(
    before id: QueueID, limit: Int, at time: WallTime
  ) throws(BackendFailure) -> Bool {
    let devices = tables.queues.filter { $0.value.contains { $0.key < id } }.keys.sorted().prefix(limit)
    for device in devices {
      var lost: Set<GroupID> = []
      for (old, entry) in tables.queues[device] ?? [:] where old < id {
        switch entry.item {
        case .message(let group, _), .welcome(let group, _), .control(.historyGap(let group)):
          lost.insert(group)
        case .control: break
        }
        remove(old, device)
      }
      for group in lost.sorted() {
        let gap = nextQueueID(at: time)
        try enqueue(.control(.historyGap(group)), id: gap, wakes: false, to: [device])
      }
    }
    return devices.count == limit
  }

  public mutating func dropLogRows(before time: WallTime, limit: Int) -> Bool {
    var count = 0
    for (id, group) in tables.groups where count < limit {
      let kept = group.log.values.filter { $0.row.at >= time }.map(\.row.sequence).min() ?? .max
      let old = group.log.keys.filter { $0 < kept }
      for sequence in old { tables.groups[id]?.log[sequence] = nil }
      if !old.isEmpty { count += 1 }
    }
    return count == limit
  }

  public mutating func dropKeyPackages(expiredAt time: WallTime, limit: Int) -> Bool {
    let before = tables.packages.count
    tables.packages.removeAll { $0.row.expiresAt <= time }
    return before - tables.packages.count >= limit
  }

  public mutating func dropIdempotency(expiredAt time: WallTime, limit: Int) -> Bool {
    tables.idempotency = tables.idempotency.filter { $0.value.expiresAt > time }
    return false
  }

  public mutating func dropBlobs(expiredAt time: WallTime, limit: Int) -> [BlobID] {
    let expired = tables.blobs.values.filter { $0.expiresAt <= time }
      .sorted { ($0.expiresAt, $0.id) < ($1.expiresAt, $1.id) }.prefix(limit).map(\.id)
    for id in expired { tables.blobs[id] = nil }
    return expired
  }
}
