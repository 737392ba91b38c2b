import PalbeAccountsCore
import PalbeBackendCore
import PalbeUnits
import PalbeWebServer
import PalbeWire

/// Requirements 4.2, each route mapped onto a request of the backend.
extension RouteTable {
  /// - Parameter others: routes of other parts of the server.
  init(devices tokens: DeviceTokens, others: [Route] = []) {
    routes =
      Self.deviceRoutes(tokens) + Self.keyPackageRoutes + Self.groupRoutes + Self.messageRoutes
      + Self.queueRoutes + Self.readingRoutes + others
  }

  /// A route of the backend whose answer is what the backend answers.
  static func ask(
    _ request: @escaping @Sendable (RouteInput) throws(APIError) -> BackendRequest
  ) -> Route.Service {
    .backend(request) { response, _ in
      if case .done = response { return nil }
      return JSONWriter.object { response.write(into: &$0) }
    }
  }

  private static func deviceRoutes(_ tokens: DeviceTokens) -> [Route] {
    [
      Route(
        "POST", "/v1/devices", "enrolDevice", "Enrols a device of the session's user", access: .session,
        idempotency: .required, body: .json(.enrolment), bodyByteCount: 6 << 20, answer: .enrolled,
        codes: ["message_too_large", "device_revoked"],
        service: .backend(
          { (input) throws(APIError) in .enrolDevice(try enrolment(input.body)) },
          { response, input in
            guard case .enrolled(let device) = response, let user = input.caller?.user else { return nil }
            return JSONWriter.object {
              $0.member("device_id", device)
              $0.member("device_token", tokens.token(user: user, device: device))
            }
          })),
      Route(
        "GET", "/v1/devices", "devices", "All devices of the user", answer: .devices,
        service: ask { _ in .devices }),
      Route(
        "GET", "/v1/devices/{device}", "device", "One device of the user", answer: .deviceView,
        codes: ["forbidden"],
        service: .backend(
          { _ in .devices },
          { (response, input) throws(APIError) in
            let id: DeviceID = try input.id("device")
            guard case .devices(let all) = response, let device = all.first(where: { $0.id == id }) else {
              throw APIError(.forbidden)
            }
            var json = JSONWriter()
            device.write(into: &json)
            return JSONText(bytes: json.bytes)
          })),
      Route(
        "DELETE", "/v1/devices/{device}", "revokeDevice", "Removes a device of the user for ever",
        codes: ["forbidden"],
        service: ask { (input) throws(APIError) in .revokeDevice(try input.id("device")) }),
      Route(
        "PUT", "/v1/devices/{device}/push-token", "setPushToken",
        "Sets the calling device's token for pushes",
        body: .json(.pushToken), codes: ["forbidden"],
        service: ask { (input) throws(APIError) in
          guard input.path.id("device") == input.caller?.device else { throw APIError(.forbidden) }
          let word = input.body.text("platform")
          guard let platform = PushPlatform.allCases.first(where: { $0.word == word }) else {
            throw .invalid("platform", "no such platform")
          }
          return .setPushToken(PushToken(platform: platform, bytes: input.body.bytes("token") ?? []))
        }),
      Route(
        "GET", "/v1/me/comms-prefs", "commsPrefs", "What the user lets others see", answer: .prefs,
        service: ask { _ in .commsPrefs }),
      Route(
        "PATCH", "/v1/me/comms-prefs", "setCommsPrefs", "Changes what the user lets others see",
        body: .json(.prefsChange), answer: .prefs,
        service: ask { input in
          .setCommsPrefs(
            sharePresence: input.body.boolean("share_presence"),
            shareReceipts: input.body.boolean("share_receipts"))
        }),
    ]
  }

  private static let keyPackageRoutes = [
    Route(
      "POST", "/v1/key-packages", "publishKeyPackages", "Adds to the key packages that others can claim",
      idempotency: .required, body: .json(.keyPackages), bodyByteCount: 6 << 20, answer: .keyPackageCount,
      codes: ["message_too_large"],
      service: ask { input in
        .publishKeyPackages(input.body.byteLists("key_packages"), lastResort: input.body.bytes("last_resort"))
      }),
    Route(
      "GET", "/v1/key-packages/count", "keyPackageCount", "How many key packages are left",
      answer: .keyPackageCount, service: ask { _ in .keyPackageCount }),
    Route(
      "POST", "/v1/users/{user}/key-packages/claim", "claimKeyPackages",
      "Takes one key package of each device of a user", idempotency: .required, answer: .claimed,
      codes: ["user_not_found", "no_key_package"],
      service: ask { (input) throws(APIError) in .claimKeyPackages(of: try input.id("user")) }),
  ]

  private static let commitCodes = [
    "not_a_member", "chat_not_found", "forbidden", "stale_epoch", "commit_incomplete", "message_too_large",
    "group_full", "chat_is_direct", "user_not_found", "no_key_package",
  ]

  private static let groupRoutes = [
    Route(
      "POST", "/v1/groups", "createGroup", "Founds a group, or answers the one there is of a pair",
      idempotency: .optional, body: .json(.founding), bodyByteCount: 6 << 20, answer: .founded,
      codes: commitCodes,
      service: ask { (input) throws(APIError) in
        let kind: GroupFounding.Kind
        if input.body.text("kind") == "direct" {
          guard let peer: UserID = input.body.id("peer") else {
            throw .invalid("peer", "a direct chat needs the other user")
          }
          kind = .direct(peer)
        } else {
          kind = .group
        }
        return .createGroup(founding(input.body, kind))
      }),
    Route(
      "GET", "/v1/groups", "groups", "The user's groups by id",
      query: [.optional("after", .group, "the last id of the page before"), Shape.pageLimit], answer: .groups,
      service: ask { input in
        .groups(after: input.query.id("after"), limit: Int(input.query.integer("limit") ?? 100))
      }),
    Route(
      "GET", "/v1/groups/{group}", "group", "A group as its members see it", answer: .groupView,
      codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in .group(try input.id("group")) }),
    Route(
      "POST", "/v1/groups/{group}/commits", "commit", "Ends an epoch, or tells that somebody else did",
      idempotency: .required, body: .json(.commitBundle), bodyByteCount: 6 << 20, answer: .committed,
      codes: commitCodes,
      service: ask { (input) throws(APIError) in .commit(try input.id("group"), bundle(input.body)) }),
    Route(
      "GET", "/v1/groups/{group}/commits", "commits", "The commits from an epoch on",
      query: [.required("from_epoch", .natural, "the first epoch that is asked for"), Shape.pageLimit],
      answer: .commits, codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in
        .commits(
          try input.id("group"), from: Epoch(input.query.integer("from_epoch") ?? 0),
          limit: Int(input.query.integer("limit") ?? 100))
      }),
    Route(
      "PUT", "/v1/groups/{group}/members/{user}/role", "setRole", "Gives a member a role; owners only",
      body: .json(.role),
      codes: ["not_a_member", "chat_not_found", "forbidden", "chat_is_direct", "user_not_found"],
      service: ask { (input) throws(APIError) in
        guard let role = ChatRole(word: input.body.text("role")) else {
          throw .invalid("role", "no such role")
        }
        return .setRole(try input.id("group"), try input.id("user"), role)
      }),
    Route(
      "POST", "/v1/groups/{group}/leave", "leave", "Leaves a group", idempotency: .optional,
      codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in .leave(try input.id("group")) }),
    Route(
      "POST", "/v1/groups/{group}/reset", "reset", "Founds a group anew when its members lost its state",
      idempotency: .required, body: .json(.resetting), bodyByteCount: 6 << 20, answer: .founded,
      codes: commitCodes,
      service: ask { (input) throws(APIError) in
        .reset(
          try input.id("group"), generation: input.body.integer("generation") ?? 0,
          founding(input.body, .group))
      }),
  ]

  private static let messageRoutes = [
    Route(
      "POST", "/v1/groups/{group}/messages", "sendMessage", "Sends an encrypted message or a proposal",
      idempotency: .optional, body: .jsonOrBytes(.outgoing, member: "blob"), bodyByteCount: 512 << 10,
      answer: .accepted,
      codes: ["not_a_member", "chat_not_found", "forbidden", "stale_epoch", "message_too_large"],
      service: ask { (input) throws(APIError) in
        guard let id: ClientMessageID = input.body.id("client_msg_id"),
          let epoch = input.body.integer("epoch"), let blob = input.body.bytes("blob")
        else { throw .invalid("body", "a required member is missing") }
        return .send(
          try input.id("group"),
          OutgoingMessage(
            epoch: Epoch(epoch), id: id, blob: blob, wakes: input.body.boolean("wake") ?? true,
            isEphemeral: input.body.boolean("ephemeral") ?? false))
      })
  ]

  /// The longest wait of a fetch.
  static let patienceLimit: Int64 = 25

  private static let queueRoutes = [
    Route(
      "GET", "/v1/queue", "queue", "What waits for the calling device",
      query: [
        .optional("after", .natural, "rows after this id; 0 by default"), Shape.pageLimit,
        .optional(
          "wait", .integer(0...patienceLimit),
          "seconds to wait for rows while there are none; a newer wait ends an older one with superseded"),
      ], answer: .queue, codes: ["superseded"],
      service: ask { input in
        .fetchQueue(
          after: QueueID(input.query.integer("after") ?? 0), limit: Int(input.query.integer("limit") ?? 100),
          connection: nil)
      }),
    Route(
      "POST", "/v1/queue/ack", "acknowledge", "Removes rows that the device has stored",
      idempotency: .optional,
      body: .json(.acknowledgement), answer: .acknowledged,
      service: ask { (input) throws(APIError) in .acknowledge(try rows(input.body), connection: nil) }),
  ]

  private static let readingRoutes = [
    Route(
      "GET", "/v1/groups/{group}/notify-scope", "notifyScope", "Whether a group wakes the user's devices",
      answer: .notifyScope, codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in .notifyScope(try input.id("group")) }),
    Route(
      "PUT", "/v1/groups/{group}/notify-scope", "setNotifyScope", "Whether a group wakes the user's devices",
      body: .json(.notifyScope), answer: .notifyScope, codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in
        .setNotifyScope(try input.id("group"), input.body.text("scope") == "none" ? .none : .all)
      }),
    Route(
      "GET", "/v1/groups/{group}/unread", "unread", "What the user has read of a group", answer: .unread,
      codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in .unread(try input.id("group")) }),
    Route(
      "POST", "/v1/groups/{group}/read", "markRead", "Raises how far the user has read",
      idempotency: .optional,
      body: .json(.read), codes: ["not_a_member", "chat_not_found"],
      service: ask { (input) throws(APIError) in
        .markRead(try input.id("group"), input.body.integer("seq") ?? 0)
      }),
  ]

  // MARK: Bodies

  private static func enrolment(_ body: JSONObject) throws(APIError) -> DeviceEnrolment {
    let word = body.text("platform")
    guard let platform = DevicePlatform.words.first(where: { $0.1 == word })?.0 else {
      throw .invalid("platform", "no such platform")
    }
    return DeviceEnrolment(
      device: body.id("device_id"), signatureKey: body.bytes("signature_key") ?? [], platform: platform,
      keyPackages: body.byteLists("key_packages"), lastResort: body.bytes("last_resort"))
  }

  private static func founding(_ body: JSONObject, _ kind: GroupFounding.Kind) -> GroupFounding {
    GroupFounding(
      mlsID: MLSGroupID(body.bytes("rfc_group_id") ?? []), kind: kind,
      commit: body.object("initial_commit").map { bundle($0) }, groupInfo: body.bytes("group_info") ?? [])
  }

  private static func bundle(_ body: JSONObject) -> CommitBundle {
    var delta = MemberDelta()
    delta.addedUsers = body.ids("added_users")
    delta.removedUsers = body.ids("removed_users")
    delta.removedLeaves = body.ids("removed_leaves")
    for case .object(let leaf) in body.list("added_leaves") ?? [] {
      guard let device: DeviceID = leaf.id("device_id") else { continue }
      delta.addedLeaves.append(NewLeaf(device: device, index: UInt32(clamping: leaf.integer("index") ?? 0)))
    }
    return CommitBundle(
      epoch: Epoch(body.integer("epoch") ?? 0), commit: body.bytes("commit") ?? [],
      welcome: body.bytes("welcome"), groupInfo: body.bytes("group_info") ?? [],
      ratchetTree: body.bytes("ratchet_tree"), sealedName: body.bytes("sealed_name"), delta: delta,
      proposalsUpTo: body.integer("proposals_up_to"))
  }

  /// Of a body or a frame of the socket.
  static func rows(_ body: JSONObject) throws(APIError) -> Acknowledgement {
    switch (body.integer("up_to"), body.list("ids")) {
    case (let last?, nil): return .upTo(QueueID(last))
    case (nil, let list?):
      return .listed(
        list.compactMap { if case .integer(let id) = $0 { QueueID(id) } else { nil } })
    default: throw .invalid("up_to", "either up_to or ids is needed")
    }
  }
}

extension JSONObject {
  fileprivate func byteLists(_ name: String) -> [[UInt8]] {
    (list(name) ?? []).compactMap { if case .bytes(let bytes) = $0 { bytes } else { nil } }
  }
  fileprivate func ids<Kind>(_ name: String) -> [Identifier<Kind>] {
    (list(name) ?? []).compactMap { value in
      if case .text(let text) = value { Identifier<Kind>(text) } else { nil }
    }
  }
}
