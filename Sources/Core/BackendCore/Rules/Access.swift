import PalbeUnits

/// Who may ask for what. Every request passes `authenticate`; every one about a group passes `membership`.
extension Backend {
  /// The caller's device; throws when it is not enrolled, another user's, or revoked.
  mutating func authenticate(_ caller: Caller) throws(BackendFailure) -> DeviceRow {
    guard let id = caller.device, let device = try store.device(id), device.user == caller.user else {
      throw .deviceNotEnrolled
    }
    guard device.revokedAt == nil else { throw .deviceRevoked }
    return device
  }

  /// The group and the caller's membership; a stranger learns nothing, not even that the group exists.
  mutating func membership(
    of device: DeviceRow, in id: GroupID
  ) throws(BackendFailure) -> (group: GroupRow, member: MemberRow) {
    guard let group = try store.group(id), let member = try store.member(device.user, of: id) else {
      throw .chatNotFound
    }
    guard member.isCurrent else { throw .notAMember }
    return (group, member)
  }

  /// Throws unless a device has a leaf that is served.
  mutating func liveLeaf(of device: DeviceID, in group: GroupID) throws(BackendFailure) -> LeafRow {
    guard let leaf = try store.leaf(device, of: group), leaf.isLive else { throw .forbidden }
    return leaf
  }

  /// Throws unless somebody with `role` may remove somebody with `other`.
  func checkMayRemove(_ role: ChatRole, _ other: ChatRole) throws(BackendFailure) {
    guard role == .owner || (role == .admin && other < role) else { throw .forbidden }
  }

  /// A page's size.
  func pageCount(_ limit: Int) throws(BackendFailure) -> Int {
    guard limit > 0 else { throw .invalidRequest(.range) }
    return min(limit, limits.pageCount)
  }
}
