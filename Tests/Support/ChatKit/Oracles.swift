import PalbeBackendCore
import PalbeChatCore
import PalbeUnits

/// What must hold once everything is quiet. Each returns what does not.
extension ChatWorld {
  /// All of it.
  package func violations() -> [String] {
    pending() + epochs() + messages() + unread()
  }

  private var groups: Set<GroupID> {
    var groups: Set<GroupID> = []
    for phone in phones {
      for chat in phone.engine?.allChats ?? [] {
        if let group = phone.engine?.head(of: chat)?.group { groups.insert(group) }
      }
    }
    return groups
  }

  /// Who is in a group, as their devices see it.
  private func members(of group: GroupID) -> [(phone: Phone, chat: ChatID, head: ChatHead)] {
    phones.compactMap { phone in
      guard let chat = phone.engine?.chat(group), let head = phone.engine?.head(of: chat),
        head.standing == .active,
        phone.engine?.isEnrolled == true
      else { return nil }
      return (phone, chat, head)
    }
  }

  /// Nothing waits.
  private func pending() -> [String] {
    phones.flatMap { phone in
      (phone.engine?.unfinished ?? []).map { "\(phone.name): \($0)" }
    }
  }

  /// All members of a group are in one epoch, and agree on it.
  private func epochs() -> [String] {
    groups.sorted().compactMap { group in
      let members = members(of: group)
      let states = Set(
        members.map { member in
          "\(member.head.epoch) \(member.phone.engine?.authenticator(of: member.chat) ?? [])"
        })
      guard states.count > 1 else { return nil }
      return "\(group): " + members.map { "\($0.phone.name) \($0.head.epoch)" }.joined(separator: ", ")
    }
  }

  /// Every message that the server took is at everybody who was in the group then, once, and in one order.
  private func messages() -> [String] {
    var problems: [String] = []
    for group in groups.sorted() {
      let members = members(of: group)
      var taken: [ClientMessageID: (seq: Int64, epoch: UInt64, groupID: [UInt8]?)] = [:]
      var rowsOf: [String: [Row]] = [:]
      for member in members {
        let rows = rows(member.phone, member.chat).filter(\.kind.isBubble)
        rowsOf[member.phone.name] = rows
        if Set(rows.map(\.id)).count != rows.count {
          problems.append("\(member.phone.name): a row stands twice")
        }
        let texts = rows.compactMap(\.text)
        if Set(texts).count != texts.count {
          problems.append("\(member.phone.name): a text stands twice: \(texts)")
        }
        for row in rows {
          // What was said in a group before this one is not compared.
          guard let seq = row.seq, row.sender?.device == member.phone.engine?.deviceName.device,
            seq > member.head.seqBase
          else { continue }
          taken[row.id] = (seq - member.head.seqBase, row.epoch, member.head.groupID)
        }
      }
      for member in members {
        let rows = rowsOf[member.phone.name] ?? []
        let seqs = rows.compactMap(\.seq)
        if seqs != seqs.sorted() { problems.append("\(member.phone.name): out of order") }
        for (id, message) in taken.sorted(by: { $0.value.seq < $1.value.seq }) {
          guard member.phone.epochs[member.head.groupID ?? []]?.contains(message.epoch) == true,
            !member.phone.wasOut.contains(member.chat)
          else { continue }
          let found = rows.filter { $0.id == id }
          if found.count != 1 || found[0].seq != message.seq + member.head.seqBase {
            let shown = rows.map { "\($0.seq ?? 0) \($0.text ?? "-")" }.joined(separator: ", ")
            problems.append(
              "\(member.phone.name): message \(message.seq) of epoch \(message.epoch) stands \(found.count) times among "
                + "\(shown); \(member.chat) base \(member.head.seqBase), epochs \(member.phone.epochs[member.head.groupID ?? []] ?? [])"
                + ", \(member.phone.events.count { if case .undecryptable = $0 { true } else { false } }) unreadable"
            )
          }
        }
      }
    }
    return problems
  }

  /// Unread is what others said behind the cursor and is still there.
  private func unread() -> [String] {
    var problems: [String] = []
    for phone in phones {
      for chat in phone.engine?.allChats ?? [] {
        guard let summary = summary(phone, chat) else { continue }
        let count = rows(phone, chat).count {
          $0.kind.isBubble && !$0.isDeleted && $0.sender?.user != phone.user
            && ($0.seq ?? 0) > summary.readSeq
        }
        if count != summary.unreadCount {
          problems.append("\(phone.name): \(summary.unreadCount) unread, \(count) counted")
        }
      }
    }
    return problems
  }
}
