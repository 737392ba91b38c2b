import PalbeChatCore
import PalbeUnits
import PalbeWire

/// The server's answers, read member by member. What a peer can send is bounded: `limit` bytes, eight levels, and each
/// element of a list takes bytes of the text. Nil for anything that is not what was asked for.
enum WireAnswers {
  /// As long as an answer may be.
  static let limit = 8 << 20
  /// Sequences, epochs and ids are below it.
  private static let numberLimit = Int64(1) << 53

  typealias Body<Value> = (inout JSONReader) throws(JSONError) -> Value

  /// Reads one text to its end.
  static func read<Value>(_ bytes: [UInt8], _ body: Body<Value>) -> Value? {
    do throws(JSONError) {
      var json = try JSONReader(bytes, limit: limit)
      let value = try body(&json)
      try json.finish()
      return value
    } catch { return nil }
  }

  /// Reads an object, a member at a time; `member` must read exactly one value.
  static func object(
    _ json: inout JSONReader, _ member: (String, inout JSONReader) throws(JSONError) -> Void
  ) throws(JSONError) {
    try json.enterObject()
    while let key = try json.nextKey() { try member(key, &json) }
  }

  static func list<Value>(
    _ json: inout JSONReader, _ element: Body<Value>
  ) throws(JSONError) -> [Value] {
    var values: [Value] = []
    try json.enterArray()
    while try json.nextElement() { values.append(try element(&json)) }
    return values
  }

  static func need<Value>(_ value: Value?) throws(JSONError) -> Value {
    guard let value else { throw .missing }
    return value
  }

  // MARK: Values

  static func number(_ json: inout JSONReader) throws(JSONError) -> Int64 {
    let number: Int64 = try json.integer()
    guard (0..<numberLimit).contains(number) else { throw .outOfRange(at: json.offset) }
    return number
  }

  static func epoch(_ json: inout JSONReader) throws(JSONError) -> UInt64 { UInt64(try number(&json)) }

  static func id<Kind>(
    _ json: inout JSONReader, _ kind: Identifier<Kind>.Type = Identifier<Kind>.self
  ) throws(JSONError) -> Identifier<Kind> {
    let start = json.offset
    guard let id = Identifier<Kind>(try json.string()) else { throw .unexpected(at: start) }
    return id
  }

  static func time(_ json: inout JSONReader) throws(JSONError) -> WallTime {
    WallTime(microseconds: try number(&json) * 1_000)
  }

  static func role(_ json: inout JSONReader) throws(JSONError) -> PalbeChatCore.ChatRole {
    let start = json.offset
    switch try json.string() {
    case "member": return .member
    case "admin": return .admin
    case "owner": return .owner
    default: throw .unexpected(at: start)
    }
  }

  // MARK: Small answers

  static func enrolled(_ bytes: [UInt8]) -> (device: DeviceID, token: String)? {
    read(bytes) { (json) throws(JSONError) in
      var (device, token): (DeviceID?, String?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "device_id": device = try id(&json)
        case "device_token": token = try json.string()
        default: try json.skipValue()
        }
      }
      let text = try need(token)
      // It goes into headers.
      guard (1...200).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) else {
        throw .missing
      }
      return (try need(device), text)
    }
  }

  static func keyPackageCount(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var (count, hasLastResort): (Int64?, Bool?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "count": count = try number(&json)
        case "has_last_resort": hasLastResort = try json.bool()
        default: try json.skipValue()
        }
      }
      return .keyPackageCount(Int(try need(count)), hasLastResort: try need(hasLastResort))
    }
  }

  static func keyPackages(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var (packages, missing): ([ServerKeyPackage]?, [DeviceID]?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "key_packages":
          packages = try list(&json) { (json) throws(JSONError) in
            var (device, blob): (DeviceID?, [UInt8]?)
            try object(&json) { (key, json) throws(JSONError) in
              switch key {
              case "device_id": device = try id(&json)
              case "key_package": blob = try json.base64URL()
              default: try json.skipValue()
              }
            }
            return ServerKeyPackage(device: try need(device), blob: try need(blob))
          }
        case "missing": missing = try list(&json) { (json) throws(JSONError) in try id(&json) }
        default: try json.skipValue()
        }
      }
      return .keyPackages(try need(packages), missing: missing ?? [])
    }
  }

  static func founded(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var (group, groupID, epoch, head): (GroupID?, [UInt8]?, UInt64?, Int64?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "group_id": group = try id(&json)
        case "rfc_group_id": groupID = try json.base64URL()
        case "epoch": epoch = try self.epoch(&json)
        case "head_seq": head = try number(&json)
        default: try json.skipValue()
        }
      }
      return .founded(
        ServerFounded(
          id: try need(group), groupID: try need(groupID), epoch: try need(epoch), headSeq: try need(head)))
    }
  }

  /// `committed` and `accepted` are the same on the wire.
  static func placed(_ bytes: [UInt8]) -> (seq: Int64, epoch: UInt64)? {
    read(bytes) { (json) throws(JSONError) in
      var (seq, epoch): (Int64?, UInt64?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "seq": seq = try number(&json)
        case "epoch": epoch = try self.epoch(&json)
        default: try json.skipValue()
        }
      }
      return (try need(seq), try need(epoch))
    }
  }

  static func notifyScope(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var scope: PalbeChatCore.NotifyScope?
      try object(&json) { (key, json) throws(JSONError) in
        if key == "scope" {
          scope = try json.string() == "none" ? PalbeChatCore.NotifyScope.none : .all
        } else {
          try json.skipValue()
        }
      }
      return .notifyScope(try need(scope))
    }
  }

  static func unread(_ bytes: [UInt8]) -> ServerAnswer? {
    read(bytes) { (json) throws(JSONError) in
      var values: [String: Int64] = [:]
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "group_max_seq", "last_read_seq", "delivered_seq", "unread_count":
          values[key] = try number(&json)
        default: try json.skipValue()
        }
      }
      return .unread(
        PalbeChatCore.ServerUnread(
          groupMaxSeq: try need(values["group_max_seq"]), lastReadSeq: try need(values["last_read_seq"]),
          deliveredSeq: try need(values["delivered_seq"]), unreadCount: try need(values["unread_count"])))
    }
  }

  static func commsPrefs(_ bytes: [UInt8]) -> StoredCommsPrefs? {
    read(bytes) { (json) throws(JSONError) in
      var (presence, receipts): (Bool?, Bool?)
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "share_presence": presence = try json.bool()
        case "share_receipts": receipts = try json.bool()
        default: try json.skipValue()
        }
      }
      return StoredCommsPrefs(sharePresence: try need(presence), shareReceipts: try need(receipts))
    }
  }

  /// A topic's reply: who is there.
  static func subscribed(_ bytes: [UInt8]) -> (group: GroupID?, online: [UserID], typing: [DeviceID])? {
    read(bytes) { (json) throws(JSONError) in
      var result: (group: GroupID?, online: [UserID], typing: [DeviceID]) = (nil, [], [])
      try object(&json) { (key, json) throws(JSONError) in
        switch key {
        case "group_id": result.group = try id(&json)
        case "online": result.online = try list(&json) { (json) throws(JSONError) in try id(&json) }
        case "typing": result.typing = try list(&json) { (json) throws(JSONError) in try id(&json) }
        default: try json.skipValue()
        }
      }
      return result
    }
  }
}
