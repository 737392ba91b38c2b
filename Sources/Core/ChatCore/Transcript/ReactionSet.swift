import PalbeUnits
import PalbeWire

/// Who set which emoji on one message. The last word of a user about an emoji holds, by the server's order,
/// in whatever order they come (S0-65).
struct ReactionSet: Equatable, Sendable {
  /// Reactions of one message that are kept, also those taken off.
  static let limit = 4_096
  /// Emoji of one user on one message that are kept, also those taken off.
  static let limitPerUser = 64

  private struct Entry: Equatable {
    var user: UserID
    var emoji: String
    var seq: Int64
    var isRemoved: Bool
  }

  /// By when the emoji came to have its state.
  private var entries: [Entry] = []

  init() {}

  /// Sets an emoji or takes it off; `seq` is `Int64.max` for what the server has not taken yet.
  mutating func set(_ emoji: String, by user: UserID, isRemoved: Bool, seq: Int64) {
    let new = Entry(user: user, emoji: emoji, seq: seq, isRemoved: isRemoved)
    var own = 0
    for index in entries.indices where entries[index].user == user {
      own += 1
      guard entries[index].emoji == emoji else { continue }
      // An older word, or this one again.
      guard seq > entries[index].seq || seq == .max else { return }
      entries.remove(at: index)
      insert(new)
      return
    }
    guard own < Self.limitPerUser, entries.count < Self.limit else { return }
    insert(new)
  }

  private mutating func insert(_ new: Entry) {
    var index = entries.count
    while index > 0, entries[index - 1].seq > new.seq { index -= 1 }
    entries.insert(new, at: index)
  }

  /// What is shown: of each user the first twenty (2.9j).
  var tallies: [ReactionTally] {
    var tallies: [ReactionTally] = []
    var places: [String: Int] = [:]
    var counts: [UserID: Int] = [:]
    for entry in entries where !entry.isRemoved {
      guard counts[entry.user, default: 0] < ContentLimits.reactionsPerUser else { continue }
      counts[entry.user, default: 0] += 1
      if let place = places[entry.emoji] {
        tallies[place].users.append(entry.user)
      } else {
        places[entry.emoji] = tallies.count
        tallies.append(ReactionTally(emoji: entry.emoji, users: [entry.user]))
      }
    }
    return tallies
  }
}

extension ReactionSet {
  init(from reader: inout ByteReader) throws(WireError) {
    let count = Int(try reader.uint16())
    guard count <= Self.limit else { throw .tooLong(field: "reactions", length: count, limit: Self.limit) }
    for _ in 0..<count {
      entries.append(
        Entry(
          user: try reader.id(), emoji: try reader.text(), seq: try reader.int64(),
          isRemoved: try reader.flag()))
    }
  }

  func encode(into writer: inout ByteWriter) {
    writer.uint16(UInt16(entries.count))
    for entry in entries {
      writer.id(entry.user)
      writer.text(entry.emoji)
      writer.int64(entry.seq)
      writer.flag(entry.isRemoved)
    }
  }
}
