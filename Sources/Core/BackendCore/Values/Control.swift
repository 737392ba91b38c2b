public import PalbeUnits
public import PalbeWire

/// A server's own word in a device's queue.
public enum Control: Hashable, Sendable {
  /// A user's set of devices changed: groups with them want a commit.
  case devicesChanged(UserID)
  /// A user left, and their leaves want removing.
  case memberLeft(GroupID, UserID)
  /// A user has another role now.
  case roleChanged(GroupID, UserID, ChatRole)
  /// The group was founded anew.
  case groupReset(GroupID, generation: Int64)
  /// Rows of this group were dropped because they were not fetched in time.
  case historyGap(GroupID)

  /// The group it is about.
  public var group: GroupID? {
    switch self {
    case .devicesChanged: nil
    case .memberLeft(let group, _), .roleChanged(let group, _, _), .groupReset(let group, _),
      .historyGap(let group):
      group
    }
  }

  /// Its form in a store.
  public var encoded: [UInt8] {
    var writer = ByteWriter(capacity: 40)
    switch self {
    case .devicesChanged(let user):
      writer.uint8(1)
      writer.id(user)
    case .memberLeft(let group, let user):
      writer.uint8(2)
      writer.id(group)
      writer.id(user)
    case .roleChanged(let group, let user, let role):
      writer.uint8(3)
      writer.id(group)
      writer.id(user)
      writer.uint8(role.rawValue)
    case .groupReset(let group, let generation):
      writer.uint8(4)
      writer.id(group)
      writer.int64(generation)
    case .historyGap(let group):
      writer.uint8(5)
      writer.id(group)
    }
    return writer.bytes
  }

  /// Reads one; throws for bytes that are not one.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = ByteReader(bytes.span)
    switch try reader.uint8() {
    case 1: self = .devicesChanged(try reader.id())
    case 2: self = .memberLeft(try reader.id(), try reader.id())
    case 3: self = .roleChanged(try reader.id(), try reader.id(), try reader.choice("role"))
    case 4: self = .groupReset(try reader.id(), generation: try reader.int64())
    case 5: self = .historyGap(try reader.id())
    case let kind: throw .invalid(field: "control", value: UInt64(kind))
    }
    try reader.finish()
  }
}
