import PalbeBackendCore
import PalbeUnits

/// The shapes of the API's objects.
extension Shape {
  static let user = Shape.id(UserIdentifierKind.prefix)
  static let device = Shape.id(DeviceIdentifierKind.prefix)
  static let group = Shape.id(GroupIdentifierKind.prefix)
  static let blob = Shape.id(BlobIdentifierKind.prefix)
  static let message = Shape.id(MessageIdentifierKind.prefix)
  static let mlsID = Shape.bytes(16...64)
  static let role = Shape.choice(ChatRole.allCases.map(\.word))
  static let scope = Shape.choice(["all", "none"])
  static let keyPackage = Shape.bytes(1...16 << 10)
  static let handshake = Shape.bytes(1...1 << 20)
  static let messageBlob = Shape.bytes(1...256 << 10)
  static let sealedName = Shape.bytes(1...4 << 10)
  /// Of one answer.
  static let pageLimit = Field.optional(
    "limit", .integer(1...100), "rows of the answer at most; 100 by default")
}

extension Shape.Record {
  static let error = Shape.Record(
    "Error",
    [
      .required("code", .text(upTo: 64), "the word that programs compare"),
      .required("status", .integer(400...599), "the HTTP status"),
      .required("message", .text(upTo: 1_000), "a sentence for developers, not for users"),
      .required("request_id", .text(upTo: 64), "as in the header Request-Id"),
      .optional("retry_after", .number, "seconds after which to try again"),
      .optional("details", .object(.init([])), "what belongs to the code, such as head_epoch"),
    ])

  static let enrolment = Shape.Record(
    "Enrolment",
    [
      .optional("device_id", .device, "the id that the device chose; without it the server makes one"),
      .required("signature_key", .bytes(1...1_024), "its MLS signature key"),
      .required("platform", .choice(DevicePlatform.words.map(\.1)), "what the device runs"),
      .required("key_packages", .list(.keyPackage, upTo: 200), "MLS key packages, for one use each"),
      .optional("last_resort", .keyPackage, "the MLS key package for when there is no other"),
    ])

  static let enrolled = Shape.Record(
    "Enrolled",
    [
      .required("device_id", .device, "the device"),
      .required("device_token", .text(upTo: 200), "for the header Palbe-Device; it ends with the device"),
    ])

  static let deviceView = Shape.Record(
    "Device",
    [
      .required("device_id", .device, "the device"),
      .required("platform", .choice(DevicePlatform.words.map(\.1)), "what it runs"),
      .required("signature_key", .bytes(1...1_024), "its MLS signature key"),
      .required("created_at_ms", .natural, "when it was enrolled"),
      .optional("revoked_at_ms", .natural, "when it was removed"),
    ])

  static let devices = Shape.Record(
    "Devices", [.required("devices", .list(.object(.deviceView), upTo: 10_000), "all of the user")])

  static let pushToken = Shape.Record(
    "PushToken",
    [
      .required("platform", .choice(PushPlatform.allCases.map(\.word)), "what the token is for"),
      .required("token", .hex(1...256), "the token of the push service"),
    ])

  static let keyPackages = Shape.Record(
    "KeyPackages",
    [
      .required("key_packages", .list(.keyPackage, upTo: 200), "MLS key packages, for one use each"),
      .optional("last_resort", .keyPackage, "replaces the one before"),
    ])

  static let keyPackageCount = Shape.Record(
    "KeyPackageCount",
    [
      .required("count", .natural, "how many others can still claim"),
      .required("has_last_resort", .boolean, "whether there is one for when there is no other"),
    ])

  static let claimed = Shape.Record(
    "ClaimedKeyPackages",
    [
      .required(
        "key_packages",
        .list(
          .object(
            .init(
              "ClaimedKeyPackage",
              [
                .required("device_id", .device, "whose"),
                .required("key_package", .keyPackage, "it is nobody else's"),
                .required("is_last_resort", .boolean, "it was not consumed; others may get it too"),
              ])), upTo: 1_000), "one for each device"),
      .required("missing", .list(.device, upTo: 1_000), "devices that have none"),
    ])

  static let commitBundle = Shape.Record(
    "Commit",
    [
      .required("epoch", .natural, "the epoch that it ends"),
      .required("commit", .handshake, "an MLSMessage"),
      .optional("welcome", .handshake, "an MLSMessage for the added devices"),
      .required("group_info", .handshake, "an MLSMessage of the new epoch"),
      .optional("ratchet_tree", .handshake, "the new epoch's public tree, where it is not in group_info"),
      .optional(
        "sealed_name", .sealedName, "the name sealed for the new epoch; without it the old one stays"),
      .optional("added_users", .list(.user, upTo: 1_000), "who comes"),
      .optional("removed_users", .list(.user, upTo: 1_000), "who goes"),
      .optional(
        "added_leaves",
        .list(
          .object(
            .init(
              "NewLeaf",
              [
                .required("device_id", .device, "whose"),
                .required("index", .integer(0...Int64(UInt32.max)), "its position in the tree"),
              ])), upTo: 1_000), "devices that come"),
      .optional("removed_leaves", .list(.device, upTo: 1_000), "devices that go"),
      .optional("proposals_up_to", .natural, "the last sequence up to which the sender knows the log"),
    ])

  static let founding = Shape.Record(
    "Founding",
    [
      .required("rfc_group_id", .mlsID, "the MLS group id"),
      .required("kind", .choice(["direct", "group"]), "for one other user, or for any number"),
      .optional("peer", .user, "with direct: the other user, or oneself"),
      .optional("initial_commit", .object(.commitBundle), "ends epoch 0 and adds the others"),
      .optional("group_info", .handshake, "of epoch 0, where there is no initial commit"),
    ])

  static let resetting = Shape.Record(
    "Reset",
    [
      .required("generation", .natural, "the generation that ends"),
      .required("rfc_group_id", .mlsID, "the new MLS group id"),
      .optional("initial_commit", .object(.commitBundle), "ends epoch 0 and adds the others"),
      .optional("group_info", .handshake, "of epoch 0, where there is no initial commit"),
    ])

  static let founded = Shape.Record(
    "Founded",
    [
      .required("group_id", .group, "the group"),
      .required("rfc_group_id", .mlsID, "its MLS group id"),
      .required("epoch", .natural, "its epoch"),
      .required("head_seq", .natural, "its newest sequence"),
      .required("is_existing", .boolean, "it was there before, and nothing of the request was taken"),
    ])

  private static let summaryFields: [Shape.Field] = [
    .required("group_id", .group, "the group"),
    .required("rfc_group_id", .mlsID, "its MLS group id"),
    .required("kind", .choice(["direct", "group"]), "what it is"),
    .required("epoch", .natural, "its epoch"),
    .required("generation", .natural, "how often it was founded anew"),
    .required("head_seq", .natural, "its newest sequence"),
    .required("role", .role, "the caller's role"),
  ]

  static let groups = Shape.Record(
    "Groups",
    [
      .required("groups", .list(.object(.init("GroupSummary", summaryFields)), upTo: 100), "by id"),
      .required("has_more", .boolean, "whether there are more after the last"),
    ])

  static let groupView = Shape.Record(
    "Group",
    summaryFields + [
      .required(
        "members",
        .list(
          .object(
            .init(
              "Member",
              [
                .required("user_id", .user, "who"), .required("role", .role, "what they may do"),
                .required("joined_seq", .natural, "the sequence of the commit that added them"),
              ])), upTo: 10_000), "the users"),
      .required(
        "leaves",
        .list(
          .object(
            .init(
              "Leaf",
              [
                .required("device_id", .device, "which"), .required("user_id", .user, "whose"),
                .required("index", .natural, "its position in the tree"),
                .required("is_live", .boolean, "false: the next commit must remove it"),
              ])), upTo: 10_000), "the devices"),
      .required("missing_devices", .list(.device, upTo: 10_000), "members' devices without a leaf"),
      .required("group_info", .bytes(0...1 << 20), "for who joins from outside"),
      .optional("ratchet_tree", .handshake, "the public tree, where it is not in group_info"),
      .optional("sealed_name", .sealedName, "the name, sealed"),
      .optional("name_epoch", .natural, "the epoch for which it was sealed"),
    ])

  private static let logFields: [Shape.Field] = [
    .required("seq", .natural, "the position in the group's log"),
    .required("epoch", .natural, "the epoch it was sent in"),
    .required("generation", .natural, "the group's generation"),
    .required("content", .choice(["application", "proposal", "commit"]), "what it is"),
    .required("sender", .device, "who sent it"),
    .optional("client_msg_id", .message, "the sender's name of it"),
    .required("blob", .handshake, "an MLSMessage"),
    .required("at_ms", .natural, "when it came"),
  ]

  static let commits = Shape.Record(
    "Commits",
    [.required("commits", .list(.object(.init("LogRow", logFields)), upTo: 100), "by sequence")])

  static let committed = Shape.Record(
    "Committed",
    [.required("seq", .natural, "its sequence"), .required("epoch", .natural, "the epoch that began")])

  static let outgoing = Shape.Record(
    "Message",
    [
      .required("epoch", .natural, "the epoch it is sealed for"),
      .required("client_msg_id", .message, "the sender's name of it, under which a repetition is known"),
      .required("blob", .messageBlob, "a PrivateMessage, at most 256 KiB"),
      .optional("wake", .boolean, "whether it may wake devices, and counts as unread; true by default"),
      .optional("ephemeral", .boolean, "only to who is connected, and kept nowhere; false by default"),
    ])

  static let accepted = Shape.Record(
    "Accepted",
    [
      .required("seq", .natural, "its sequence; 0 for an ephemeral one"),
      .required("epoch", .natural, "the epoch it was accepted at"),
      .required("is_repeated", .boolean, "it was there before, and this is the first answer"),
    ])

  static let role = Shape.Record("Role", [.required("role", .role, "what a member may do")])
  static let notifyScope = Shape.Record(
    "NotifyScope", [.required("scope", .scope, "whether the group wakes the user's devices")])
  static let unread = Shape.Record(
    "Unread",
    [
      .required("group_max_seq", .natural, "the group's newest sequence"),
      .required("last_read_seq", .natural, "the user has read up to here"),
      .required("delivered_seq", .natural, "the furthest of the user's devices"),
      .required("unread_count", .natural, "at most so many messages are unread"),
    ])
  static let read = Shape.Record("Read", [.required("seq", .natural, "read up to here")])
  static let prefs = Shape.Record(
    "CommsPrefs",
    [
      .required("share_presence", .boolean, "whether others see the user online and typing"),
      .required("share_receipts", .boolean, "whether others see how far the user has read"),
    ])
  static let prefsChange = Shape.Record(
    "CommsPrefsChange",
    [
      .optional("share_presence", .boolean, "whether others see the user online and typing"),
      .optional("share_receipts", .boolean, "whether others see how far the user has read"),
    ])

  static let queue = Shape.Record(
    "Queue",
    [
      .required(
        "rows",
        .list(
          .object(
            .init(
              "QueueRow",
              [
                .required("id", .natural, "its position: ascending, with gaps"),
                .required("kind", .choice(["message", "welcome", "control"]), "what it brings"),
                .optional("group_id", .group, "the group it is about"),
                .optional("welcome", .handshake, "with welcome: an MLSMessage"),
                .optional("control", .choice(Control.words), "with control: what happened"),
                .optional("user_id", .user, "with control: to whom"),
                .optional("role", .role, "with role_changed: the new one"),
              ] + logFields.map { .optional($0.name, $0.shape, "with message: \($0.about)") })), upTo: 100),
        "by id"),
      .required("has_more", .boolean, "whether there are more after the last"),
    ])
  static let acknowledgement = Shape.Record(
    "Acknowledgement",
    [
      .optional("up_to", .natural, "all rows up to this id"),
      .optional("ids", .list(.natural, upTo: 1_000), "or these rows"),
    ])
  static let acknowledged = Shape.Record(
    "Acknowledged", [.required("count", .natural, "how many rows are gone by it")])
}

extension ChatRole {
  var word: String {
    switch self {
    case .member: "member"
    case .admin: "admin"
    case .owner: "owner"
    }
  }
  init?(word: String?) {
    guard let role = Self.allCases.first(where: { $0.word == word }) else { return nil }
    self = role
  }
}

extension DevicePlatform {
  static let words: [(DevicePlatform, String)] = [
    (.ios, "ios"), (.macos, "macos"), (.android, "android"), (.web, "web"), (.linux, "linux"),
  ]
  var word: String { Self.words.first { $0.0 == self }?.1 ?? "linux" }
}

extension PushPlatform {
  var word: String {
    switch self {
    case .ios: "ios"
    case .iosVoIP: "ios_voip"
    }
  }
}

extension NotifyScope {
  var word: String { self == .all ? "all" : "none" }
}

extension Control {
  static let words = ["devices_changed", "member_left", "role_changed", "group_reset", "history_gap"]
}
