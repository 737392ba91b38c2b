import PalbeBackendCore
import PalbeUnits
import PalbeWire

/// What a client says on the socket.
struct RealtimeFrame: Equatable {
  /// What it wants.
  enum Wish: Equatable {
    case subscribe(TopicName)
    case unsubscribe(TopicName)
    case heartbeat
    case typing(GroupID, Bool)
    case renew(token: String)
    case acknowledge(Acknowledgement)
    case fetch(after: QueueID, limit: Int)
  }

  /// Comes back with the answer; nil for a heartbeat without one.
  var id: Int64?
  var wish: Wish

  /// The longest text that is read.
  static let byteLimit = 64 << 10

  private static let record = Shape.Record([
    .required("type", .text(upTo: 32), "what is wanted"), .optional("id", .natural, "comes back"),
    .optional("topic", .text(upTo: 200), ""), .optional("group", .group, ""), .optional("on", .boolean, ""),
    .optional("access_token", .text(upTo: 8_192), ""), .optional("up_to", .natural, ""),
    .optional("ids", .list(.natural, upTo: 1_000), ""), .optional("after", .natural, ""), Shape.pageLimit,
  ])

  private static let identity = Shape.Record([.required("id", .natural, "comes back")])

  /// Why a frame is not taken, and which one it was as far as that could be read.
  struct Refusal: Error {
    let id: Int64?
    let error: APIError
  }

  /// Reads a frame.
  init(_ text: String) throws(Refusal) {
    let object: JSONObject
    let bytes = Array(text.utf8)
    do throws(APIError) { object = try Self.record.read(bytes, limit: Self.byteLimit) } catch {
      // Whoever waits for an answer is to get one.
      let readable = try? Self.identity.read(bytes, limit: Self.byteLimit)
      throw Refusal(id: readable?.integer("id"), error: error)
    }
    id = object.integer("id")
    do throws(APIError) { wish = try Self.wish(object) } catch { throw Refusal(id: id, error: error) }
    guard id != nil || wish == .heartbeat else {
      throw Refusal(id: nil, error: .invalid("id", "a frame that is answered needs an id"))
    }
  }

  private static func wish(_ object: JSONObject) throws(APIError) -> Wish {
    switch object.text("type") {
    case "subscribe": return .subscribe(try topic(object))
    case "unsubscribe": return .unsubscribe(try topic(object))
    case "heartbeat": return .heartbeat
    case "typing":
      guard let group: GroupID = object.id("group"), let isOn = object.boolean("on") else {
        throw .invalid("group", "typing needs group and on")
      }
      return .typing(group, isOn)
    case "renew":
      guard let token = object.text("access_token") else { throw .invalid("access_token", "renew needs one") }
      return .renew(token: token)
    case "ack": return .acknowledge(try RouteTable.rows(object))
    case "fetch":
      return .fetch(
        after: QueueID(object.integer("after") ?? 0), limit: Int(object.integer("limit") ?? 100))
    default: throw .invalid("type", "there is no frame of this type")
    }
  }

  private static func topic(_ object: JSONObject) throws(APIError) -> TopicName {
    guard let text = object.text("topic"), let topic = TopicName(text: text) else {
      throw .invalid("topic", "topics are messaging:device:mdv_… and messaging:conv:<rfc_group_id>")
    }
    return topic
  }
}

extension TopicName {
  private static let devicePrefix = "messaging:device:"
  private static let conversationPrefix = "messaging:conv:"

  /// From its text; nil for another one.
  init?(text: String) {
    if text.hasPrefix(Self.devicePrefix), let device = DeviceID(text.dropFirst(Self.devicePrefix.count)) {
      self = .device(device)
    } else if text.hasPrefix(Self.conversationPrefix),
      case .bytes(let id)? = Shape.mlsID.value(of: String(text.dropFirst(Self.conversationPrefix.count)))
    {
      self = .conversation(MLSGroupID(id))
    } else {
      return nil
    }
  }

  var text: String {
    switch self {
    case .device(let device): Self.devicePrefix + device.text
    case .conversation(let id):
      Self.conversationPrefix + Base64.encode(id.bytes, alphabet: .url, padded: false)
    }
  }
}

/// What the server says on the socket.
enum RealtimeText {
  static func reply(_ id: Int64, _ write: (inout JSONWriter) -> Void = { _ in }) -> String {
    frame("reply") { json in
      json.member("id", id)
      write(&json)
    }
  }

  static func error(_ id: Int64?, _ error: APIError) -> String {
    frame("error") { json in
      if let id { json.member("id", id) }
      json.key("error")
      error.write(into: &json, requestID: nil)
    }
  }

  static let heartbeat = frame("heartbeat") { _ in }

  static func ended(_ topic: String, _ reason: SubscriptionEnd) -> String {
    frame("subscription_ended") { json in
      json.member("topic", topic)
      switch reason {
      case .superseded: json.member("reason", "superseded")
      case .notAMember: json.member("reason", "not_a_member")
      case .deviceRevoked: json.member("reason", "device_revoked")
      case .groupReset: json.member("reason", "group_reset")
      }
    }
  }

  static func event(_ topic: String, _ event: RealtimeEvent) -> String {
    frame("event") { json in
      json.member("topic", topic)
      switch event {
      case .queueChanged: json.member("event", "queue_changed")
      case .ephemeral(let sender, let epoch, let blob):
        json.member("event", "ephemeral")
        json.member("sender", sender)
        json.member("epoch", epoch)
        json.member("blob", blob)
      case .typing(let user, let device, let isOn):
        json.member("event", "typing")
        json.member("user_id", user)
        json.member("device_id", device)
        json.member("on", isOn)
      case .presence(let user, let isOnline):
        json.member("event", "presence")
        json.member("user_id", user)
        json.member("online", isOnline)
      case .delivered(let user, let device, let sequence):
        json.member("event", "delivered")
        json.member("user_id", user)
        json.member("device_id", device)
        json.member("seq", sequence)
      case .read(let user, let sequence):
        json.member("event", "read")
        json.member("user_id", user)
        json.member("seq", sequence)
      case .ownRead(let group, let sequence):
        json.member("event", "own_read")
        json.member("group_id", group)
        json.member("seq", sequence)
      }
    }
  }

  private static func frame(_ type: String, _ write: (inout JSONWriter) -> Void) -> String {
    var json = JSONWriter()
    json.object { json in
      json.member("type", type)
      write(&json)
    }
    return json.text
  }
}
