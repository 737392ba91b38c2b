import PalbeChatCore
import PalbeUnits
import PalbeWire

/// Groups, logs and the queue.
extension WireAnswers {
  /// What a list of groups and the view of one have in common.
  private struct Summary {
    var (group, groupID, isDirect): (GroupID?, [UInt8]?, Bool?)
    var (epoch, generation, head): (UInt64?, Int64?, Int64?)

    /// False for a member that is none of it.
    mutating func take(_ key: String, _ json: inout JSONReader) throws(JSONError) -> Bool {
      switch key {
      case "group_id": group = try id(&json)
      case "rfc_group_id": groupID = try json.base64URL()
      case "kind": isDirect = try json.string() == "direct"
      case "epoch": epoch = try WireAnswers.epoch(&json)
      case "generation": generation = try number(&json)
      case "head_seq": head = try number(&json)
      default: return false
      }
      return true
    }

    func value() throws(JSONError) -> ServerGroup {
      ServerGroup(
        id: try need(group), groupID: try need(groupID), isDirect: try need(isDirect), epoch: try need(epoch),
        generation: try need(generation), headSeq: try need(head))
    }
  }

  static func groups(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var (groups, hasMore): ([ServerGroup]?, Bool?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "groups":
          groups = try list(&json) { (json) throws(JSONError) in
            var summary = Summary()
            try object(&json) { (key, json) throws(JSONError) in
              if try !summary.take(key, &json) { try json.skipValue() }
            }
            return try summary.value()
          }
        case "has_more": hasMore = try json.bool()
        default: try json.skipValue()
        }
      }
      return .groups(try need(groups), hasMore: try need(hasMore))
    }
  }

  static func group(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var summary = Summary()
      var (members, leaves, missing): ([UserID]?, [ServerLeafView]?, [DeviceID]?)
      var (groupInfo, sealedName, nameEpoch): ([UInt8]?, [UInt8]?, UInt64?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "members": members = try list(&json) { (json) throws(JSONError) in try member(&json) }
        case "leaves": leaves = try list(&json) { (json) throws(JSONError) in try leaf(&json) }
        case "missing_devices": missing = try list(&json) { (json) throws(JSONError) in try id(&json) }
        case "group_info": groupInfo = try json.base64URL()
        case "sealed_name": sealedName = try json.base64URL()
        case "name_epoch": nameEpoch = try epoch(&json)
        default: if try !summary.take(key, &json) { try json.skipValue() }
        }
      }
      return .group(
        ServerGroupView(
          group: try summary.value(), members: try need(members), leaves: try need(leaves),
          missingDevices: try need(missing), groupInfo: try need(groupInfo), sealedName: sealedName,
          nameEpoch: nameEpoch))
    }
  }

  private static func member(_ json: inout JSONReader) throws(JSONError) -> UserID {
    var user: UserID?
    try object(&json) { (key, json) throws(JSONError) in
      if key == "user_id" { user = try id(&json) } else { try json.skipValue() }
    }
    return try need(user)
  }

  private static func leaf(_ json: inout JSONReader) throws(JSONError) -> ServerLeafView {
    var (device, user, isLive): (DeviceID?, UserID?, Bool?)
    try object(&json) { (key, json) throws(JSONError) in
      switch key {
      case "device_id": device = try id(&json)
      case "user_id": user = try id(&json)
      case "is_live": isLive = try json.bool()
      default: try json.skipValue()
      }
    }
    return ServerLeafView(device: try need(device), user: try need(user), isLive: try need(isLive))
  }

  // MARK: Logs

  /// The members of a row of a log, alone or in a row of the queue.
  private struct LogRow {
    var (seq, epoch, generation): (Int64?, UInt64?, Int64?)
    var (kind, sender): (ServerLogRow.Kind?, DeviceID?)
    var (blob, at): ([UInt8]?, WallTime?)

    mutating func take(_ key: String, _ json: inout JSONReader) throws(JSONError) -> Bool {
      switch key {
      case "seq": seq = try number(&json)
      case "epoch": epoch = try WireAnswers.epoch(&json)
      case "generation": generation = try number(&json)
      case "content":
        let start = json.offset
        switch try json.string() {
        case "application": kind = .application
        case "proposal": kind = .proposal
        case "commit": kind = .commit
        default: throw .unexpected(at: start)
        }
      case "sender": sender = try id(&json)
      case "blob": blob = try json.base64URL()
      case "at_ms": at = try time(&json)
      default: return false
      }
      return true
    }

    func value() throws(JSONError) -> ServerLogRow {
      ServerLogRow(
        seq: try need(seq), epoch: try need(epoch), generation: try need(generation), kind: try need(kind),
        sender: try need(sender), blob: try need(blob), at: try need(at))
    }
  }

  static func commits(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var commits: [ServerLogRow]?
      try object(&json) { (key, json) throws(JSONError) in
        guard key == "commits" else { return try json.skipValue() }
        commits = try list(&json) { (json) throws(JSONError) in
          var row = LogRow()
          try object(&json) { (key, json) throws(JSONError) in
            if try !row.take(key, &json) { try json.skipValue() }
          }
          return try row.value()
        }
      }
      return .commits(try need(commits))
    }
  }

  // MARK: The queue

  /// Over HTTP, or as the reply to a frame. A row that cannot be understood is `malformed`, and the others are read.
  static func queue(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var (rows, hasMore): ([QueueRow]?, Bool?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "rows": rows = try list(&json) { (json) throws(JSONError) in try row(&json) }
        case "has_more": hasMore = try json.bool()
        default: try json.skipValue()
        }
      }
      return .queue(try need(rows), hasMore: try need(hasMore))
    }
  }

  private static func row(_ json: inout JSONReader) throws(JSONError) -> QueueRow {
    let start = json
    do throws(JSONError) { return try readableRow(&json) } catch {
      // Its number at least, so that it does not come again for ever.
      json = start
      var number: Int64?
      try object(&json) { (key, json) throws(JSONError) in
        if key == "id" { number = try self.number(&json) } else { try json.skipValue() }
      }
      return QueueRow(id: try need(number), content: .malformed)
    }
  }

  private static func readableRow(_ json: inout JSONReader) throws(JSONError) -> QueueRow {
    var (number, kind, control): (Int64?, String?, String?)
    var (group, user, role): (GroupID?, UserID?, PalbeChatCore.ChatRole?)
    var welcome: [UInt8]?
    var log = LogRow()
    try object(&json) { (key, json) throws(JSONError) in
      switch key {
      case "id": number = try self.number(&json)
      case "kind": kind = try json.string()
      case "group_id": group = try id(&json)
      case "welcome": welcome = try json.base64URL()
      case "control": control = try json.string()
      case "user_id": user = try id(&json)
      case "role": role = try self.role(&json)
      default: if try !log.take(key, &json) { try json.skipValue() }
      }
    }
    let content: QueueRow.Content =
      switch (kind, control) {
      case ("message", _): .message(try need(group), try log.value())
      case ("welcome", _): .welcome(try need(group), try need(welcome))
      case ("control", "devices_changed"): .devicesChanged(try need(user))
      case ("control", "member_left"): .memberLeft(try need(group), try need(user))
      case ("control", "role_changed"): .roleChanged(try need(group), try need(user), try need(role))
      case ("control", "group_reset"): .groupReset(try need(group), generation: try need(log.generation))
      case ("control", "history_gap"): .historyGap(try need(group))
      // A newer server's word: there is nothing to be done about it here.
      default: .malformed
      }
    return QueueRow(id: try need(number), content: content)
  }

  // MARK: Events

  /// What happened on a topic; nil for what this version does not know.
  /// - Parameter group: of a conversation's topic.
  static func event(_ name: String, _ bytes: [UInt8], in group: GroupID?) -> LiveEvent? {
    if name == "queue_changed" { return .queueChanged }
    return read(bytes) { (json) throws(JSONError) in
      var (user, device, named): (UserID?, DeviceID?, GroupID?)
      var (seq, flag): (Int64?, Bool?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "user_id": user = try id(&json)
        case "device_id": device = try id(&json)
        case "group_id": named = try id(&json)
        case "seq": seq = try number(&json)
        case "on", "online": flag = try json.bool()
        default: try json.skipValue()
        }
      }
      switch name {
      case "own_read": return .ownRead(try need(named), try need(seq))
      case "typing":
        return .typing(try need(group), try need(user), try need(device), try need(flag))
      case "presence": return .presence(try need(group), try need(user), isOnline: try need(flag))
      case "delivered":
        return .delivered(try need(group), try need(user), try need(device), try need(seq))
      case "read": return .read(try need(group), try need(user), try need(seq))
      default: throw .missing
      }
    }
  }
}
