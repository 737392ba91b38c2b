import PalbeMLSMessages
import PalbeProtobuf
import PalbeUnits

/// What a group is and who may do what in it: the group context's extension 0xF0A1, which every commit authenticates.
///
/// The server keeps roles too, and refuses what they do not allow; but a member believes only this (S0-106).
package struct GroupShape: Equatable, Sendable {
  /// The extension's type, from the range for private use (RFC 9420 §17.3).
  package static let extensionType = ExtensionType(rawValue: 0xf0a1)

  /// A user of the group.
  package struct Entry: Hashable, Sendable {
    package var role: ChatRole
    /// The epoch that brought the user in: who is older inherits.
    package var joinedEpoch: UInt64
  }

  package var isDirect: Bool
  package var members: [UserID: Entry]

  /// A group that its founder makes.
  init(isDirect: Bool, founder: UserID, others: [UserID]) {
    self.isDirect = isDirect
    members = [founder: Entry(role: .owner, joinedEpoch: 0)]
    for user in others where user != founder { members[user] = Entry(role: .member, joinedEpoch: 1) }
  }

  /// The users, in the order of their ids.
  package var users: [UserID] { members.keys.sorted() }

  /// What a user may do; nil for who is no member. Without an owner the oldest admin counts as one, else the oldest
  /// member (2.9e): everybody finds the same without a commit.
  package func role(of user: UserID) -> ChatRole? {
    guard let entry = members[user] else { return nil }
    return user == heir ? .owner : entry.role
  }

  /// True for who may do what takes an admin: an owner too.
  func isAdmin(_ user: UserID) -> Bool { (role(of: user) ?? .member) >= .admin }

  /// The other user of a direct chat; oneself in a chat with oneself. Nil for a group.
  func peer(of me: UserID) -> UserID? { isDirect ? users.first { $0 != me } ?? me : nil }

  /// Who counts as the owner where there is none.
  private var heir: UserID? {
    guard !members.values.contains(where: { $0.role == .owner }) else { return nil }
    return members.min { left, right in
      (right.value.role.rawValue, left.value.joinedEpoch, left.key)
        < (left.value.role.rawValue, right.value.joinedEpoch, right.key)
    }?.key
  }

  /// True when somebody with one role may remove somebody with another.
  static func mayRemove(_ role: ChatRole, _ other: ChatRole) -> Bool {
    role == .owner || role == .admin && other < role
  }

  // MARK: Wire

  private struct Member: ProtobufMessage {
    var user: [UInt8] = []
    var role: UInt32 = 0
    var joinedEpoch: UInt64 = 0
    mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "user", &user)
      try f.field(2, "role", &role)
      try f.field(3, "joined_epoch", &joinedEpoch)
    }
  }

  private struct Message: ProtobufMessage {
    var kind: UInt32 = 0
    var members: [Member] = []
    mutating func fields(_ f: inout ProtobufFields) throws(ProtobufError) {
      try f.field(1, "kind", &kind)
      try f.field(2, "members", &members)
    }
  }

  /// The extension's data.
  package var encoded: [UInt8] {
    var message = Message()
    message.kind = isDirect ? 1 : 2
    message.members = users.map { user in
      Member.with {
        $0.user = user.bytes
        $0.role = UInt32(members[user]?.role.rawValue ?? 1)
        $0.joinedEpoch = members[user]?.joinedEpoch ?? 0
      }
    }
    return message.serialized()
  }

  /// The extension.
  var asExtension: Extension { Extension(type: Self.extensionType, data: encoded) }

  /// From the extension's data; nil for what is none, names a user twice, or holds more than a group may have.
  package init?(decoding data: [UInt8]) {
    var limits = ProtobufLimits()
    limits.messages = 10_000
    guard let message = try? Message(serialized: data, limits: limits), (1...2).contains(message.kind) else {
      return nil
    }
    isDirect = message.kind == 1
    members = [:]
    for member in message.members {
      guard let user = UserID(bytes: member.user), member.role <= 3,
        let role = ChatRole(rawValue: UInt8(member.role)),
        members.updateValue(Entry(role: role, joinedEpoch: member.joinedEpoch), forKey: user) == nil
      else { return nil }
    }
  }

  /// Of a group's context; nil when it has none.
  init?(_ context: GroupContext) {
    guard let data = context.extensions.data(of: Self.extensionType) else { return nil }
    self.init(decoding: data)
  }
}
