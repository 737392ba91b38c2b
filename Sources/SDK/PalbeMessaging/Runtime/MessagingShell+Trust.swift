import Palbase
package import PalbeChatCore
import PalbeCrypto
import PalbeMLS
package import PalbeUnits
import PalbeWire

/// Who was compared with (S0-107 to S0-111). A user's devices are those of all chats with them taken together, so that a
/// device that comes into one chat after the other is one change.
extension MessagingShell {
  /// A member's devices as the group authenticates them, also the user's own.
  package func safetyDevices(of user: UserID, in chat: ChatID) async throws -> [PalbeChatCore.DeviceMaterial]
  {
    try await perform { (shell, box) throws in try shell.devices(of: user, in: chat, box) }
  }

  private func devices(of user: UserID, in chat: ChatID, _ box: EngineBox) throws -> [PalbeChatCore
    .DeviceMaterial]
  {
    try engine { (now) throws(EngineError) in try box.engine.devices(of: user, in: chat, at: now) }
  }

  /// Remembers that the user compared the safety number (S0-109). Throws `integrity_failed` when the member's devices are
  /// not, or no longer, those of the hash.
  package func verify(_ user: UserID, deviceSetHash: [UInt8], in chat: ChatID) async throws {
    try await perform(isShown: true) { (shell, box) throws in
      let devices = try shell.devices(of: user, in: chat, box)
      guard !devices.isEmpty else { throw BackendError.client(.notAMember) }
      let hash = PalbeChatCore.SafetyNumber.deviceSetHash(
        PalbeChatCore.SafetyNumber.identityMaterial(devices))
      guard ConstantTime.equal(hash.span, deviceSetHash.span) else { throw BackendError.integrity }
      let record = TrustRecord(known: devices, trust: .verified(deviceSetHash: hash))
      try shell.store(record, of: user)
      shell.pending.append(.trustChanged(user, record.trust))
      // What other chats know of this user may be more.
      try shell.lookAtDevices(of: user, box)
    }
  }

  /// Whether somebody's devices are those that were compared.
  package func trust(of user: UserID) async throws -> StoredTrust {
    try await perform { (shell, _) throws in try shell.trustRecord(of: user)?.trust ?? .unverified }
  }

  private func trustRecord(of user: UserID) throws -> TrustRecord? {
    guard let storage else { throw endError }
    return try Self.stored { () throws(MLSStorageError) in
      guard let record = try storage.read(ShellRecords.trust(user)) else { return nil }
      return try TrustRecord(record)
    }
  }

  private func store(_ record: TrustRecord, of user: UserID) throws {
    var transaction = MLSTransaction()
    transaction.write(record.record, ShellRecords.trust(user))
    try apply(transaction)
  }

  func apply(_ transaction: MLSTransaction) throws {
    guard let storage else { throw endError }
    try Self.stored { () throws(MLSStorageError) in try storage.apply(transaction) }
  }

  /// The engine saw devices come or go.
  func devicesChanged(of user: UserID) {
    post(
      .call(
        ShellCall(
          run: { shell in
            // A record that cannot be read says nothing, and nobody is verified by it.
            if let box = shell.box { try? shell.lookAtDevices(of: user, box) }
            return nil
          }, refuse: { _ in })))
  }

  /// Of everybody who was compared with, as the shell opens: what happened between a commit and the note of it.
  func lookAtTrust(_ box: EngineBox) throws {
    guard let storage else { return }
    let keys = try Self.stored { () throws(MLSStorageError) in try storage.keys(under: ShellRecords.trust) }
    for key in keys {
      // Behind the byte of records of the application and the two of the name.
      guard let user = UserID(bytes: Array(key.name.dropFirst(3))) else { continue }
      try? lookAtDevices(of: user, box)
    }
  }

  /// Compares what was known with what is: a change drops `verified`, and is told once.
  private func lookAtDevices(of user: UserID, _ box: EngineBox) throws {
    guard var record = try trustRecord(of: user) else { return }
    var current: Set<PalbeChatCore.DeviceMaterial> = []
    var isAnywhere = false
    for chat in box.engine.allChats {
      guard let head = box.engine.head(of: chat), head.standing == .active, head.shape.members[user] != nil
      else { continue }
      let devices = try devices(of: user, in: chat, box)
      isAnywhere = isAnywhere || !devices.isEmpty
      current.formUnion(devices)
    }
    // Nothing is known of somebody with whom there is no chat.
    guard isAnywhere else { return }
    let known = Set(record.known)
    guard current != known else { return }
    let (old, new) = (Self.hash(record.known), Self.hash(Array(current)))
    let change = DeviceSetChange(
      user: user, added: current.subtracting(known).map(\.device).sorted(),
      removed: known.subtracting(current).map(\.device).sorted(), oldHash: old, newHash: new, at: now().wall)
    record.known = current.sorted { $0.device < $1.device }
    record.trust = .changed(change)
    try store(record, of: user)
    pending.append(.trustChanged(user, record.trust))
  }

  private static func hash(_ devices: [PalbeChatCore.DeviceMaterial]) -> [UInt8] {
    PalbeChatCore.SafetyNumber.deviceSetHash(PalbeChatCore.SafetyNumber.identityMaterial(devices))
  }

  // MARK: What others see

  /// What the user lets others see, asked of the server.
  package func commsPrefs() async throws -> StoredCommsPrefs {
    try await prefs(BackendCall("GET", "/v1/me/comms-prefs", access: .device))
  }

  /// Changes what is not nil.
  package func setCommsPrefs(
    sharePresence: Bool? = nil, shareReceipts: Bool? = nil
  ) async throws -> StoredCommsPrefs {
    var call = BackendCall("PATCH", "/v1/me/comms-prefs", access: .device)
    var json = JSONWriter()
    json.beginObject()
    if let sharePresence {
      json.key("share_presence")
      json.bool(sharePresence)
    }
    if let shareReceipts {
      json.key("share_receipts")
      json.bool(shareReceipts)
    }
    json.endObject()
    call.body = json.bytes
    // The same change twice is one change.
    call.isHarmlessTwice = true
    return try await prefs(call)
  }

  private func prefs(_ call: BackendCall) async throws -> StoredCommsPrefs {
    guard phase == .open else { throw endError }
    var call = call
    call.userId = user.text
    let answer = try await runtime.client.send(call)
    guard let prefs = WireAnswers.commsPrefs(answer.body) else {
      throw BackendError.unexpectedAnswer(requestId: answer.headers["request-id"])
    }
    try await perform { (shell, _) throws in
      shell.sharesPresence = prefs.sharePresence
      var transaction = MLSTransaction()
      transaction.write(prefs.record, ShellRecords.prefs)
      try shell.apply(transaction)
    }
    return prefs
  }

  /// As the server said last; both are true where it was never asked (S0-100).
  func loadPrefs() {
    guard let storage, let record = try? storage.read(ShellRecords.prefs) else { return }
    sharesPresence = (try? StoredCommsPrefs(record).sharePresence) ?? true
  }
}
