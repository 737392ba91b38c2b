import PalbeUnits

/// Cursors, unread counts, scopes, blobs.
extension Backend {
  mutating func setScope(
    _ scope: NotifyScope, in id: GroupID, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    var member = try membership(of: device, in: id).member
    member.scope = scope
    try store.put(member, of: id)
    return .notifyScope(scope)
  }

  mutating func unread(in id: GroupID, by device: DeviceRow) throws(BackendFailure) -> BackendResponse {
    let (group, member) = try membership(of: device, in: id)
    return .unread(
      UnreadView(
        groupMaxSequence: group.headSequence, lastReadSequence: member.readSequence,
        deliveredSequence: try store.delivered(to: device.user, of: id),
        unreadCount: max(0, group.countedMessages - member.readCounted)))
  }

  /// Raises the cursor, never lowers it. Others hear of it only when the user shares receipts (S0-102).
  mutating func markRead(
    _ sequence: LogSequence, in id: GroupID, by device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    guard sequence >= 0 else { throw .invalidRequest(.range) }
    var (group, member) = try membership(of: device, in: id)
    let reached = min(sequence, group.headSequence)
    guard reached > member.readSequence else { return .done }
    member.readSequence = reached
    if let counted = try store.countedMessages(of: id, upTo: reached) {
      member.readCounted = max(member.readCounted, counted)
    }
    try store.put(member, of: id)
    if try prefs(of: device.user).shareReceipts {
      effects.append(.publish(.conversation(id), .read(device.user, reached)))
    }
    for own in try store.devices(of: device.user) where own.revokedAt == nil && own.id != device.id {
      effects.append(.publish(.device(own.id), .ownRead(id, reached)))
    }
    return .done
  }

  // MARK: Blobs

  mutating func createBlob(
    _ count: Int64, in id: GroupID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    _ = try membership(of: device, in: id)
    guard count > 0 else { throw .invalidRequest(.range) }
    guard count <= limits.blobByteCount else { throw .attachmentTooLarge(limit: limits.blobByteCount) }
    let row = BlobRow(
      id: BlobID(at: now.wall, using: &random), group: id, uploader: device.id, byteCount: count,
      state: .pending, expiresAt: now.wall + limits.uploadTime)
    try store.put(row)
    return .blob(view(row))
  }

  mutating func completeBlob(
    _ id: BlobID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    var row = try blob(id, for: device)
    guard row.uploader == device.id else { throw .forbidden }
    guard row.expiresAt > expiryTime(now) else { throw .blobExpired }
    if row.state == .pending {
      row.state = .ready
      row.expiresAt = now.wall + limits.blobRetention
      try store.put(row)
    }
    return .blob(view(row))
  }

  mutating func view(
    of id: BlobID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    let row = try blob(id, for: device)
    guard row.expiresAt > expiryTime(now) else { throw .blobExpired }
    guard row.state == .ready || row.uploader == device.id else { throw .blobNotFound }
    return .blob(view(row))
  }

  private mutating func blob(_ id: BlobID, for device: DeviceRow) throws(BackendFailure) -> BlobRow {
    guard let row = try store.blob(id), let member = try store.member(device.user, of: row.group) else {
      throw .blobNotFound
    }
    guard member.isCurrent else { throw .notAMember }
    return row
  }

  private func view(_ row: BlobRow) -> BlobView {
    BlobView(
      id: row.id, group: row.group, byteCount: row.byteCount, state: row.state, expiresAt: row.expiresAt)
  }
}
