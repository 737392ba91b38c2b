import PalbeUnits
import PalbeWire

/// What happened to a chat, shown as a row that nobody said (2.3). Who did it is the row's sender.
package enum SystemEvent: Hashable, Sendable {
  case memberAdded([UserID])
  case memberRemoved([UserID])
  case memberLeft(UserID)
  /// To this name; an empty one takes it away.
  case renamed(String)
  case roleChanged(UserID, ChatRole)
  /// To this; nil: messages stay.
  case timerChanged(Expiry?)
  /// A user's devices are not those that were verified.
  case keyChanged(UserID)
  /// Messages are missing here (2.9d, 2.9i).
  case historyGap
  /// The group was founded anew.
  case groupReset

  init(from reader: inout ByteReader) throws(WireError) {
    switch try reader.uint8() {
    case 1: self = .memberAdded(try reader.users())
    case 2: self = .memberRemoved(try reader.users())
    case 3: self = .memberLeft(try reader.id())
    case 4: self = .renamed(try reader.text())
    case 5: self = .roleChanged(try reader.id(), try reader.choice("role"))
    case 6: self = .timerChanged(try reader.flag() ? try reader.expiry() : nil)
    case 7: self = .keyChanged(try reader.id())
    case 8: self = .historyGap
    case 9: self = .groupReset
    case let value: throw .invalid(field: "system event", value: UInt64(value))
    }
  }

  func encode(into writer: inout ByteWriter) {
    switch self {
    case .memberAdded(let users):
      writer.uint8(1)
      writer.users(users)
    case .memberRemoved(let users):
      writer.uint8(2)
      writer.users(users)
    case .memberLeft(let user):
      writer.uint8(3)
      writer.id(user)
    case .renamed(let name):
      writer.uint8(4)
      writer.text(name)
    case .roleChanged(let user, let role):
      writer.uint8(5)
      writer.id(user)
      writer.uint8(role.rawValue)
    case .timerChanged(let expiry):
      writer.uint8(6)
      writer.optional(expiry) { $0.expiry($1) }
    case .keyChanged(let user):
      writer.uint8(7)
      writer.id(user)
    case .historyGap: writer.uint8(8)
    case .groupReset: writer.uint8(9)
    }
  }
}
