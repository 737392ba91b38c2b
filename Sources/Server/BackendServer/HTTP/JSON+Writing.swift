import PalbeBackendCore
import PalbeUnits
import PalbeWire

/// Answers as JSON.
extension JSONWriter {
  mutating func member(_ name: String, _ text: String) {
    key(name)
    string(text)
  }
  mutating func member(_ name: String, _ value: some FixedWidthInteger) {
    key(name)
    integer(value)
  }
  mutating func member(_ name: String, _ value: Bool) {
    key(name)
    bool(value)
  }
  mutating func member<Kind>(_ name: String, _ id: Identifier<Kind>) {
    key(name)
    raw("\"\(id.text)\"")
  }
  mutating func member(_ name: String, _ bytes: [UInt8]) {
    key(name)
    // Nothing in it needs an escape.
    raw("\"\(Base64.encode(bytes, alphabet: .url, padded: false))\"")
  }
  mutating func member(_ name: String, _ time: WallTime) { member(name, max(0, time.microseconds / 1_000)) }
  mutating func member<Element>(
    _ name: String, each list: [Element], _ write: (inout JSONWriter, Element) -> Void
  ) {
    key(name)
    beginArray()
    for element in list { write(&self, element) }
    endArray()
  }
  mutating func member<Kind>(_ name: String, ids: [Identifier<Kind>]) {
    member(name, each: ids) { $0.raw("\"\($1.text)\"") }
  }

  /// One object.
  static func object(_ write: (inout JSONWriter) -> Void) -> JSONText {
    var json = JSONWriter()
    json.object(write)
    return JSONText(bytes: json.bytes)
  }
  mutating func object(_ write: (inout JSONWriter) -> Void) {
    beginObject()
    write(&self)
    endObject()
  }
}

extension BackendResponse {
  /// Its members; nil for an answer without any. `subscribed` and `blob` are written by who knows more of them.
  func write(into json: inout JSONWriter) {
    switch self {
    case .done, .enrolled, .blob: break
    case .devices(let devices): json.member("devices", each: devices) { $1.write(into: &$0) }
    case .commsPrefs(let prefs):
      json.member("share_presence", prefs.sharePresence)
      json.member("share_receipts", prefs.shareReceipts)
    case .keyPackageCount(let count):
      json.member("count", count.count)
      json.member("has_last_resort", count.hasLastResort)
    case .keyPackages(let packages, let missing):
      json.member("key_packages", each: packages) { json, package in
        json.object {
          $0.member("device_id", package.device)
          $0.member("key_package", package.blob)
          $0.member("is_last_resort", package.isLastResort)
        }
      }
      json.member("missing", ids: missing)
    case .founded(let group):
      json.member("group_id", group.id)
      json.member("rfc_group_id", group.mlsID.bytes)
      json.member("epoch", group.epoch)
      json.member("head_seq", group.headSequence)
      json.member("is_existing", group.isExisting)
    case .groups(let groups, let hasMore):
      json.member("groups", each: groups) { json, group in json.object { group.write(into: &$0) } }
      json.member("has_more", hasMore)
    case .group(let view): view.write(into: &json)
    case .committed(let sequence, let epoch):
      json.member("seq", sequence)
      json.member("epoch", epoch)
    case .commits(let rows):
      json.member("commits", each: rows) { json, row in json.object { row.write(into: &$0) } }
    case .accepted(let sequence, let epoch, let isRepeated):
      json.member("seq", sequence)
      json.member("epoch", epoch)
      json.member("is_repeated", isRepeated)
    case .queue(let rows, let hasMore):
      json.member("rows", each: rows) { json, row in json.object { row.write(into: &$0) } }
      json.member("has_more", hasMore)
    case .acknowledged(let count): json.member("count", count)
    case .notifyScope(let scope): json.member("scope", scope.word)
    case .unread(let view):
      json.member("group_max_seq", view.groupMaxSequence)
      json.member("last_read_seq", view.lastReadSequence)
      json.member("delivered_seq", view.deliveredSequence)
      json.member("unread_count", view.unreadCount)
    case .subscribed(let group, let online, let typing):
      if let group { json.member("group_id", group) }
      json.member("online", ids: online)
      json.member("typing", ids: typing)
    }
  }
}

extension DeviceView {
  func write(into json: inout JSONWriter) {
    json.object {
      $0.member("device_id", id)
      $0.member("platform", platform.word)
      $0.member("signature_key", signatureKey)
      $0.member("created_at_ms", createdAt)
      if let revokedAt { $0.member("revoked_at_ms", revokedAt) }
    }
  }
}

extension GroupSummary {
  fileprivate func write(into json: inout JSONWriter) {
    json.member("group_id", id)
    json.member("rfc_group_id", mlsID.bytes)
    json.member("kind", kind == .direct ? "direct" : "group")
    json.member("epoch", epoch)
    json.member("generation", generation)
    json.member("head_seq", headSequence)
    json.member("role", role.word)
  }
}

extension GroupView {
  fileprivate func write(into json: inout JSONWriter) {
    summary.write(into: &json)
    json.member("members", each: members) { json, member in
      json.object {
        $0.member("user_id", member.user)
        $0.member("role", member.role.word)
        $0.member("joined_seq", member.joinedSequence)
      }
    }
    json.member("leaves", each: leaves) { json, leaf in
      json.object {
        $0.member("device_id", leaf.device)
        $0.member("user_id", leaf.user)
        $0.member("index", leaf.index)
        $0.member("is_live", leaf.isLive)
      }
    }
    json.member("missing_devices", ids: missingDevices)
    json.member("group_info", groupInfo)
    if let ratchetTree { json.member("ratchet_tree", ratchetTree) }
    if let sealedName { json.member("sealed_name", sealedName) }
    if let nameEpoch { json.member("name_epoch", nameEpoch) }
  }
}

extension LogView {
  fileprivate func write(into json: inout JSONWriter) {
    json.member("seq", sequence)
    json.member("epoch", epoch)
    json.member("generation", generation)
    switch kind {
    case .application: json.member("content", "application")
    case .proposal: json.member("content", "proposal")
    case .commit: json.member("content", "commit")
    }
    json.member("sender", sender)
    if let clientID { json.member("client_msg_id", clientID) }
    json.member("blob", blob)
    json.member("at_ms", at)
  }
}

extension QueueRow {
  fileprivate func write(into json: inout JSONWriter) {
    json.member("id", id.rawValue)
    switch content {
    case .message(let group, let row):
      json.member("kind", "message")
      json.member("group_id", group)
      row.write(into: &json)
    case .welcome(let group, let blob):
      json.member("kind", "welcome")
      json.member("group_id", group)
      json.member("welcome", blob)
    case .control(let control):
      json.member("kind", "control")
      if let group = control.group { json.member("group_id", group) }
      switch control {
      case .devicesChanged(let user):
        json.member("control", "devices_changed")
        json.member("user_id", user)
      case .memberLeft(_, let user):
        json.member("control", "member_left")
        json.member("user_id", user)
      case .roleChanged(_, let user, let role):
        json.member("control", "role_changed")
        json.member("user_id", user)
        json.member("role", role.word)
      case .groupReset(_, let generation):
        json.member("control", "group_reset")
        json.member("generation", generation)
      case .historyGap: json.member("control", "history_gap")
      }
    }
  }
}
