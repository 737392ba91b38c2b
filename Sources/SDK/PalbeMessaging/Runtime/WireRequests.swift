import Palbase
import PalbeChatCore
import PalbeUnits
import PalbeWire

/// The engine's questions as calls to the server's routes. Each is tried once: the engine decides about the next time.
enum WireRequests {
  /// Nil for what goes over the socket alone.
  static func call(_ request: ServerRequest, key: [UInt8]?, freshKey: () -> String) -> BackendCall? {
    var call: BackendCall
    func path(_ group: GroupID, _ rest: String = "") -> String { "/v1/groups/\(group.text)\(rest)" }
    func post(_ path: String, needsKey: Bool, _ body: (inout JSONWriter) -> Void) -> BackendCall {
      var call = BackendCall("POST", path, access: .device)
      var json = JSONWriter()
      json.beginObject()
      body(&json)
      json.endObject()
      call.body = json.bytes
      call.idempotencyKey =
        key.map { String(decoding: $0, as: UTF8.self) } ?? (needsKey ? freshKey() : nil)
      return call
    }
    switch request {
    case .enrol(let enrolment):
      call = post("/v1/devices", needsKey: true) { json in
        json.member("device_id", enrolment.device)
        json.member("platform", text: platform)
        json.member("signature_key", enrolment.signatureKey)
        json.members("key_packages", enrolment.keyPackages)
        if let last = enrolment.lastResort { json.member("last_resort", last) }
      }
      call.access = .session
      call.timeout = .seconds(60)
    case .keyPackageCount: call = BackendCall("GET", "/v1/key-packages/count", access: .device)
    case .publishKeyPackages(let packages, let last):
      call = post("/v1/key-packages", needsKey: true) { json in
        json.members("key_packages", packages)
        if let last { json.member("last_resort", last) }
      }
      call.timeout = .seconds(60)
    case .claimKeyPackages(let user):
      call = post("/v1/users/\(user.text)/key-packages/claim", needsKey: true) { _ in }
      call.body = nil
    case .createGroup(let founding):
      call = post("/v1/groups", needsKey: false) { json in
        json.member("kind", text: founding.peer == nil ? "group" : "direct")
        if let peer = founding.peer { json.member("peer", peer) }
        json.founding(founding)
      }
      call.timeout = .seconds(60)
    case .groups(let after):
      call = BackendCall("GET", "/v1/groups", access: .device)
      call.query = [("limit", "100")] + (after.map { [("after", $0.text)] } ?? [])
    case .group(let group): call = BackendCall("GET", path(group), access: .device)
    case .commit(let group, let commit):
      call = post(path(group, "/commits"), needsKey: true) { $0.commit(commit) }
      call.timeout = .seconds(60)
    case .commits(let group, let epoch):
      call = BackendCall("GET", path(group, "/commits"), access: .device)
      call.query = [("from_epoch", "\(epoch)"), ("limit", "100")]
    case .send(let group, let message):
      call = BackendCall("POST", path(group, "/messages"), access: .device)
      call.query = [("client_msg_id", message.id.text), ("epoch", "\(message.epoch)")]
      if !message.wakes { call.query.append(("wake", "false")) }
      call.body = message.blob
      call.contentType = "application/octet-stream"
      call.idempotencyKey = key.map { String(decoding: $0, as: UTF8.self) }
    case .setRole(let group, let user, let role):
      call = post(path(group, "/members/\(user.text)/role"), needsKey: false) {
        $0.member("role", text: word(role))
      }
      call.method = "PUT"
      call.idempotencyKey = nil
    case .leave(let group):
      call = post(path(group, "/leave"), needsKey: false) { _ in }
      call.body = nil
    case .reset(let group, let generation, let founding):
      call = post(path(group, "/reset"), needsKey: true) { json in
        json.member("generation", generation)
        json.founding(founding)
      }
      call.timeout = .seconds(60)
    case .fetchQueue(let after, let limit):
      call = BackendCall("GET", "/v1/queue", access: .device)
      call.query = [("after", "\(after)"), ("limit", "\(limit)")]
    case .acknowledge(let id):
      call = post("/v1/queue/ack", needsKey: false) { $0.member("up_to", id) }
    case .setNotifyScope(let group, let scope):
      call = post(path(group, "/notify-scope"), needsKey: false) {
        $0.member("scope", text: scope == .all ? "all" : "none")
      }
      call.method = "PUT"
      call.idempotencyKey = nil
    case .notifyScope(let group): call = BackendCall("GET", path(group, "/notify-scope"), access: .device)
    case .unread(let group): call = BackendCall("GET", path(group, "/unread"), access: .device)
    case .markRead(let group, let seq):
      call = post(path(group, "/read"), needsKey: false) { $0.member("seq", seq) }
    case .subscribeDevice, .subscribe, .unsubscribe, .setTyping: return nil
    }
    call.schedule.attemptLimit = 1
    call.enrols = false
    return call
  }

  #if os(iOS)
    private static let platform = "ios"
  #elseif canImport(Darwin)
    private static let platform = "macos"
  #else
    private static let platform = "linux"
  #endif

  static func word(_ role: PalbeChatCore.ChatRole) -> String {
    switch role {
    case .member: "member"
    case .admin: "admin"
    case .owner: "owner"
    }
  }

  /// What a successful answer says; nil for one that makes no sense.
  static func answer(to request: ServerRequest, _ body: [UInt8]) -> ServerAnswer? {
    switch request {
    case .enrol: WireAnswers.enrolled(body).map { .enrolled($0.device) }
    case .keyPackageCount: WireAnswers.keyPackageCount(body)
    case .claimKeyPackages: WireAnswers.keyPackages(body)
    case .createGroup, .reset: WireAnswers.founded(body)
    case .groups: WireAnswers.groups(body)
    case .group: WireAnswers.group(body)
    case .commit: WireAnswers.placed(body).map { .committed(seq: $0.seq, epoch: $0.epoch) }
    case .commits: WireAnswers.commits(body)
    case .send: WireAnswers.placed(body).map { .accepted(seq: $0.seq, epoch: $0.epoch) }
    case .fetchQueue: WireAnswers.queue(body)
    case .notifyScope, .setNotifyScope: WireAnswers.notifyScope(body)
    case .unread: WireAnswers.unread(body)
    case .publishKeyPackages, .setRole, .leave, .acknowledge, .markRead, .subscribeDevice, .subscribe,
      .unsubscribe, .setTyping:
      .done
    }
  }

  /// Why there is no answer.
  static func refusal(_ error: any Error) -> ServerRefusal {
    guard let error = error as? BackendError else { return .unreachable }
    guard case .server(let failure) = error else {
      // A vault or a lock of this device that does not do: the same request may do better later.
      return .unreachable
    }
    switch failure.code {
    case .notSignedIn, .sessionExpired, .refreshTokenReused: return .notSignedIn
    case .deviceNotEnrolled: return .deviceNotEnrolled
    case .deviceRevoked: return .deviceRevoked
    case .staleEpoch:
      return .staleEpoch(head: UInt64(clamping: failure.detail("head_epoch", as: Int64.self) ?? 0))
    case .commitIncomplete:
      let devices = failure.detail("devices", as: [String].self) ?? []
      return .commitIncomplete(devices.prefix(10_000).compactMap { DeviceID($0) })
    case .noKeyPackage:
      guard let user = failure.detail("user_id", as: String.self).flatMap({ UserID($0) }) else {
        return .other(failure.code.rawValue)
      }
      return .noKeyPackage(user)
    case .notAMember: return .notAMember
    case .forbidden: return .forbidden
    case .userNotFound: return .userNotFound
    case .chatNotFound: return .chatNotFound
    case .superseded: return .superseded
    case .idempotencyMismatch: return .idempotencyMismatch
    case .rateLimited:
      let wait = (failure.retryAfter ?? .seconds(1)).components
      return .rateLimited(retryAfter: .seconds(Double(wait.seconds) + Double(wait.attoseconds) * 1e-18))
    case .unavailable, .requestTimeout: return .unavailable
    default: return failure.status >= 500 ? .unavailable : .other(failure.code.rawValue)
    }
  }
}

extension JSONWriter {
  mutating func member(_ name: String, text: String) {
    key(name)
    string(text)
  }
  mutating func member(_ name: String, _ number: some FixedWidthInteger) {
    key(name)
    integer(number)
  }
  mutating func member<Kind>(_ name: String, _ id: Identifier<Kind>) {
    key(name)
    raw("\"\(id.text)\"")
  }
  mutating func member(_ name: String, _ bytes: [UInt8]) {
    key(name)
    raw("\"\(Base64.encode(bytes, alphabet: .url, padded: false))\"")
  }
  mutating func members(_ name: String, _ list: [[UInt8]]) {
    key(name)
    beginArray()
    for bytes in list { raw("\"\(Base64.encode(bytes, alphabet: .url, padded: false))\"") }
    endArray()
  }
  mutating func members<Kind>(_ name: String, _ list: [Identifier<Kind>]) {
    key(name)
    beginArray()
    for id in list { raw("\"\(id.text)\"") }
    endArray()
  }

  mutating func founding(_ founding: ServerFounding) {
    member("rfc_group_id", founding.groupID)
    if let commit = founding.commit {
      key("initial_commit")
      beginObject()
      self.commit(commit)
      endObject()
    } else {
      member("group_info", founding.groupInfo)
    }
  }

  mutating func commit(_ commit: ServerCommit) {
    member("epoch", commit.epoch)
    member("commit", commit.commit)
    if let welcome = commit.welcome { member("welcome", welcome) }
    member("group_info", commit.groupInfo)
    if let name = commit.sealedName { member("sealed_name", name) }
    if let head = commit.proposalsUpTo {
      key("proposals_up_to")
      integer(head)
    }
    let delta = commit.delta
    if !delta.addedUsers.isEmpty { members("added_users", delta.addedUsers) }
    if !delta.removedUsers.isEmpty { members("removed_users", delta.removedUsers) }
    if !delta.addedLeaves.isEmpty {
      key("added_leaves")
      beginArray()
      for leaf in delta.addedLeaves {
        beginObject()
        member("device_id", leaf.device)
        member("index", leaf.index)
        endObject()
      }
      endArray()
    }
    if !delta.removedLeaves.isEmpty { members("removed_leaves", delta.removedLeaves) }
  }
}
