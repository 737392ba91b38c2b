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
        throw .invalidRequest(.because(.deviceTaken))
      }
      guard known.revokedAt == nil else { throw .deviceRevoked }
      // Its first answer was lost, or it does not know what is left here: what it brings is taken as at the first time.
      try add(enrolment.keyPackages, lastResort: enrolment.lastResort, of: known, again: true, at: now)
      return .enrolled(id)
    }
    _ = try registerUser(user)
    let others = try store.devices(of: user).filter { $0.revokedAt == nil }
    guard others.count < limits.devicesPerUser else {
      throw .invalidRequest(.because(.deviceCount))
    }
    guard enrolment.device != nil || (enrolment.keyPackages.isEmpty && enrolment.lastResort == nil) else {
      throw .invalidRequest(.because(.keyPackageWithoutDevice))
    }
    let device = DeviceRow(
      id: enrolment.device ?? DeviceID(at: now.wall, using: &random), user: user,
      signatureKey: enrolment.signatureKey, platform: enrolment.platform, createdAt: now.wall)
    try store.insert(device)
    try add(enrolment.keyPackages, lastResort: enrolment.lastResort, of: device, again: false, at: now)
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
    try add(packages, lastResort: lastResort, of: device, again: false, at: now)
    return .keyPackageCount(try keyPackageCount(of: device, at: now))
  }

  /// Checks and stores key packages, the same way for enrolment and publishing.
  ///
  /// - Parameter again: some may be here already: the device's own known ones are passed over, and so are those for
  ///   which there is no room; none is refused for it.
  private mutating func add(
    _ packages: [[UInt8]], lastResort: [UInt8]?, of device: DeviceRow, again: Bool, at now: ServerTime
  ) throws(BackendFailure) {
    var room = limits.keyPackageCount - (try store.keyPackageCount(of: device.id, at: expiryTime(now)))
    guard again ? packages.count <= limits.keyPackageCount : packages.count <= room else {
      throw .invalidRequest(.because(.packageCount))
    }
    for package in packages {
      let row = try keyPackage(package, isLastResort: false, of: device, at: now)
      if again, room <= 0 { continue }
      if try insert(row, again: again) { room -= 1 }
    }
    if let lastResort {
      _ = try insert(try keyPackage(lastResort, isLastResort: true, of: device, at: now), again: again)
    }
  }

  /// False when the device itself brought it before, and `again` allows that.
  private mutating func insert(_ row: KeyPackageRow, again: Bool) throws(BackendFailure) -> Bool {
    if try store.insert(row) { return true }
    guard again, try store.keyPackageOwner(row.reference) == row.device else {
      throw .invalidRequest(.because(.keyPackageKnown))
    }
    return false
  }

  /// Checks what others will rely on: it is this device's by key and by credential, of the suite that all use, valid now, and
  /// for what it is published for. Whether its signatures hold is verified by those who use it.
  private func keyPackage(
    _ blob: [UInt8], isLastResort: Bool, of device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> KeyPackageRow {
    guard blob.count <= limits.keyPackageByteCount else {
      throw .messageTooLarge(limit: limits.keyPackageByteCount)
    }
    let message: MLSMessage
    do throws(WireError) { message = try MLSMessage(decoding: blob) } catch {
      throw .invalidRequest(.because(.keyPackageForm))
    }
    guard case .keyPackage(let package) = message, case .keyPackage(let lifetime) = package.leafNode.source,
      package.version == .mls10, !package.initKey.isEmpty
    else { throw .invalidRequest(.because(.keyPackageForm)) }
    let leaf = package.leafNode
    guard package.cipherSuite == .x25519AES128GCM else { throw .invalidRequest(.because(.keyPackageSuite)) }
    guard leaf.signatureKey == device.signatureKey else {
      throw .invalidRequest(.because(.keyPackageSignatureKey))
    }
    guard leaf.credential == .basic(identity: device.user.bytes + device.id.bytes) else {
      throw .invalidRequest(.because(.keyPackageCredential))
    }
    guard package.isLastResort == isLastResort else { throw .invalidRequest(.because(.keyPackageLastResort)) }
    guard lifetime.notAfter > UInt64(clamping: expiryTime(now).seconds),
      lifetime.notBefore <= lifetime.notAfter
    else { throw .invalidRequest(.because(.keyPackageLifetime)) }
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
