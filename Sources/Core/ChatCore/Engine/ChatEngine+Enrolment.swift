import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

/// This device with the server: enrolment and key packages.
extension ChatEngine {
  func storeDevice() throws(MLSStorageError) {
    var transaction = MLSTransaction()
    transaction.put(device, RecordKey.device)
    try storage.apply(transaction)
  }

  /// Asks to be enrolled. Key packages are stored first: after a crash the same ones are offered again, by the same device.
  mutating func enrol() throws(MLSStorageError) {
    guard !isEnrolling else { return }
    isEnrolling = true
    var bundles = try storage.loadKeyPackages()
    if hasEnrolledAgain || bundles.isEmpty {
      bundles = try makeKeyPackages(configuration.keyPackageCount, lastResort: true)
    }
    let ordinary = bundles.filter { !$0.isLastResort }.suffix(configuration.keyPackageCount)
    ask(
      .enrol(
        ServerEnrolment(
          device: device.name.device, signatureKey: client.signaturePublicKey,
          keyPackages: ordinary.map { $0.message.encoded() },
          lastResort: bundles.last { $0.isLastResort }?.message.encoded())),
      for: .enrol)
  }

  /// Makes and stores key packages.
  private mutating func makeKeyPackages(
    _ count: Int, lastResort: Bool
  ) throws(MLSStorageError) -> [KeyPackageBundle] {
    let lifetime = self.lifetime
    var bundles: [KeyPackageBundle] = []
    do throws(MLSError) {
      for _ in 0..<count { bundles.append(try client.makeKeyPackage(lifetime: lifetime, using: &random)) }
      if lastResort {
        bundles.append(try client.makeKeyPackage(lifetime: lifetime, lastResort: true, using: &random))
      }
    } catch { throw .inconsistent }
    var transaction = MLSTransaction()
    for bundle in bundles { transaction.write(bundle) }
    if lastResort {
      device.lastResortAt = now.wall
      transaction.put(device, RecordKey.device)
    }
    try storage.apply(transaction)
    return bundles
  }

  mutating func enrolled(_ result: Result<ServerAnswer, ServerRefusal>) throws(MLSStorageError) {
    isEnrolling = false
    guard case .success(.enrolled) = result else {
      if case .failure(let refusal) = result {
        // Nothing but another sign-in or another device helps.
        events.append(refusal == .deviceNotEnrolled ? .notSignedIn : .enrolmentRefused(code: refusal.code))
      }
      return
    }
    device.standing = .enrolled
    try storeDevice()
    events.append(.enrolled(device.name.device))
    askAllAgain()
    // Groups that the user is in already: others add this device, or it comes in by itself.
    ask(.groups(after: nil), for: .groups)
    try goOn()
    // A socket that was up before there was a device to subscribe.
    if isConnected { try connection(isUp: true) }
  }

  mutating func revoked() throws(MLSStorageError) {
    guard device.standing != .revoked else { return }
    device.standing = .revoked
    try storeDevice()
    // No timer comes for them any more.
    try dropAllSecrets()
    requests.removeAll()
    flights.removeAll()
    timers.removeAll()
    events.append(.deviceRevoked)
  }

  // MARK: Key packages

  /// Looks how many are left, and whether the last resort is due.
  mutating func checkKeyPackages() {
    guard isReady, !flights.values.contains(where: { $0.purpose == .keyPackageCount }) else { return }
    ask(.keyPackageCount, for: .keyPackageCount)
  }

  mutating func counted(_ result: Result<ServerAnswer, ServerRefusal>) throws(MLSStorageError) {
    guard case .success(.keyPackageCount(let count, let hasLastResort)) = result else { return }
    let isPublishing = flights.values.contains {
      if case .publish = $0.purpose { true } else { false }
    }
    guard !isPublishing else { return }
    let missing = count < configuration.keyPackageFloor ? configuration.keyPackageCount - count : 0
    let isLastResortDue =
      !hasLastResort || device.isLastResortUsed
      || now.wall > device.lastResortAt + configuration.lastResortLifetime
    guard missing > 0 || isLastResortDue else { return }
    let bundles = try makeKeyPackages(max(missing, 0), lastResort: isLastResortDue)
    ask(
      .publishKeyPackages(
        bundles.filter { !$0.isLastResort }.map { $0.message.encoded() },
        lastResort: bundles.last { $0.isLastResort }?.message.encoded()),
      for: .publish(isLastResort: isLastResortDue), key: makeKey())
  }

  mutating func published(
    _ result: Result<ServerAnswer, ServerRefusal>, isLastResort: Bool
  ) throws(MLSStorageError) {
    guard case .success = result else {
      // Refused for good: the count tells what is there, and new ones are made.
      timers[.keyPackages] = now.instant + configuration.longestWait * 10
      return
    }
    guard isLastResort, device.isLastResortUsed else { return }
    device.isLastResortUsed = false
    try storeDevice()
  }

  /// A welcome used one up.
  mutating func keyPackageUsed(isLastResort: Bool, _ transaction: inout MLSTransaction) {
    if isLastResort {
      device.isLastResortUsed = true
      transaction.put(device, RecordKey.device)
    }
    if timers[.keyPackages] == nil { timers[.keyPackages] = now.instant + .seconds(1) }
  }
}
