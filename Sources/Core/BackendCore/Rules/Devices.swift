import PalbeMLSMessages
import PalbeUnits
import PalbeWire

/// Users, devices, key packages.
extension Backend {
  mutating func registerUser(_ user: UserID) throws(BackendFailure) -> BackendResponse {
    if try store.user(user) == nil { try store.put(UserRow(id: user, prefs: CommsPrefs())) }
    return .done
  }

  mutating func enrol(
    _ enrolment: DeviceEnrolment, of user: UserID, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    guard (1...1_024).contains(enrolment.signatureKey.count) else { throw .invalidRequest(.range) }
    if let id = enrolment.device, let known = try store.device(id) {
      guard known.user == user, known.signatureKey == enrolment.signatureKey else {
        throw .invalidRequest(.identifier)
      }
      guard known.revokedAt == nil else { throw .deviceRevoked }
      return .enrolled(id)
    }
    _ = try registerUser(user)
    let others = try store.devices(of: user).filter { $0.revokedAt == nil }
    guard others.count < limits.devicesPerUser else { throw .invalidRequest(.tooMany) }
    let device = DeviceRow(
      id: enrolment.device ?? DeviceID(at: now.wall, using: &random), user: user,
      signatureKey: enrolment.signatureKey, platform: enrolment.platform, createdAt: now.wall)
    try store.insert(device)
    _ = try publish(enrolment.keyPackages, lastResort: enrolment.lastResort, of: device, at: now)
    try announceDevices(of: user, at: now)
    return .enrolled(device.id)
  }

  mutating func devices(of user: UserID) throws(BackendFailure) -> BackendResponse {
    .devices(
      try store.devices(of: user).map {
        DeviceView(
          id: $0.id, platform: $0.platform, signatureKey: $0.signatureKey, createdAt: $0.createdAt,
          revokedAt: $0.revokedAt)
      })
  }

  mutating func revoke(
    _ id: DeviceID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    guard let target = try store.device(id), target.user == device.user else { throw .forbidden }
    guard target.revokedAt == nil else { return .done }
    _ = try store.revoke(id, at: now.wall)
    try announceDevices(of: device.user, at: now)
    effects.append(.deviceRevoked(id))
    return .done
  }

  /// Tells all who share a group with a user that its devices changed: one of them commits it (2.9h).
  private mutating func announceDevices(of user: UserID, at now: ServerTime) throws(BackendFailure) {
    let contacts = try store.contacts(of: user)
    guard !contacts.isEmpty else { return }
    let id = try store.nextQueueID(at: now.wall)
    try store.enqueue(.control(.devicesChanged(user)), id: id, wakes: false, to: contacts)
    effects.append(.queued(contacts, id, nil))
  }

  mutating func setPushToken(
    _ token: PushToken, of device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    guard (1...256).contains(token.bytes.count) else { throw .invalidRequest(.range) }
    try store.put(token, for: device.id)
    return .done
  }

  mutating func prefs(of user: UserID) throws(BackendFailure) -> CommsPrefs {
    guard let row = try store.user(user) else { throw .userNotFound }
    return row.prefs
  }

  mutating func setPrefs(
    sharePresence: Bool?, shareReceipts: Bool?, of device: DeviceRow
  ) throws(BackendFailure) -> BackendResponse {
    var prefs = try prefs(of: device.user)
    if let sharePresence {
      prefs.sharePresence = sharePresence
      effects.append(.sharesPresence(device.user, sharePresence))
    }
    if let shareReceipts { prefs.shareReceipts = shareReceipts }
    try store.put(UserRow(id: device.user, prefs: prefs))
    return .commsPrefs(prefs)
  }

  // MARK: Key packages

  mutating func publish(
    _ packages: [[UInt8]], lastResort: [UInt8]?, of device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    let present = try store.keyPackageCount(of: device.id, at: expiryTime(now))
    guard present + packages.count <= limits.keyPackageCount else { throw .invalidRequest(.tooMany) }
    for package in packages {
      let row = try keyPackage(package, isLastResort: false, of: device, at: now)
      guard try store.insert(row) else { throw .invalidRequest(.keyPackage) }
    }
    if let lastResort {
      let row = try keyPackage(lastResort, isLastResort: true, of: device, at: now)
      guard try store.insert(row) else { throw .invalidRequest(.keyPackage) }
    }
    return .keyPackageCount(try keyPackageCount(of: device, at: now))
  }

  /// Checks what others will rely on: it is this device's, valid now, and for what it is published for. Whether its
  /// signatures hold is verified by those who use it.
  private func keyPackage(
    _ blob: [UInt8], isLastResort: Bool, of device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> KeyPackageRow {
    guard blob.count <= limits.keyPackageByteCount else {
      throw .messageTooLarge(limit: limits.keyPackageByteCount)
    }
    let message: MLSMessage
    do throws(WireError) { message = try MLSMessage(decoding: blob) } catch {
      throw .invalidRequest(.keyPackage)
    }
    guard case .keyPackage(let package) = message, case .keyPackage(let lifetime) = package.leafNode.source,
      package.leafNode.signatureKey == device.signatureKey, !package.initKey.isEmpty,
      package.isLastResort == isLastResort, lifetime.notAfter > UInt64(clamping: expiryTime(now).seconds),
      lifetime.notBefore <= lifetime.notAfter
    else { throw .invalidRequest(.keyPackage) }
    let seconds = Int64(clamping: min(lifetime.notAfter, 1 << 40))
    return KeyPackageRow(
      device: device.id, reference: package.initKey, blob: blob,
      expiresAt: WallTime(microseconds: seconds * 1_000_000), isLastResort: isLastResort)
  }

  mutating func keyPackageCount(
    of device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> KeyPackageCount {
    KeyPackageCount(
      count: try store.keyPackageCount(of: device.id, at: expiryTime(now)),
      hasLastResort: try store.hasLastResort(device.id, at: expiryTime(now)))
  }

  mutating func claimKeyPackages(
    of user: UserID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    guard try store.user(user) != nil else { throw .userNotFound }
    // Nobody takes them all away from the others.
    let wait = live.claims.spend(
      Claim(asker: device.user, target: user), at: now.instant, interval: limits.claimInterval,
      burst: limits.claimBurst)
    var claimed: [ClaimedKeyPackage] = []
    var missing: [DeviceID] = []
    for other in try store.devices(of: user) where other.revokedAt == nil && other.id != device.id {
      if let package = try store.takeKeyPackage(
        of: other.id, at: expiryTime(now), isLastResort: wait != nil)
      {
        claimed.append(package)
      } else {
        missing.append(other.id)
      }
    }
    guard !claimed.isEmpty else {
      if let wait, !missing.isEmpty { throw .rateLimited(retryAfter: wait) }
      throw .noKeyPackage(user)
    }
    return .keyPackages(claimed, missing: missing)
  }

  /// The devices of a user that a commit which adds the user must add.
  mutating func addableDevices(of user: UserID, at now: ServerTime) throws(BackendFailure) -> [DeviceID] {
    var addable: [DeviceID] = []
    for device in try store.devices(of: user) where device.revokedAt == nil {
      let count = try keyPackageCount(of: device, at: now)
      if count.count > 0 || count.hasLastResort { addable.append(device.id) }
    }
    return addable
  }
}
