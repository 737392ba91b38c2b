import PalbeBackendCore
import PalbeChatCore
import PalbeMLS
import PalbeUnits

/// What must hold once everything is quiet. Each returns what does not.
extension ChatWorld {
  /// A device in a group.
  struct Member {
    let phone: Phone
    let chat: ChatID
    let head: ChatHead
  }

  /// All of it.
  package func violations() -> [String] {
    ledger.problems + pending() + groups.sorted().flatMap { agreement($0) + transcripts(of: $0) }
      + phones.flatMap { keeping($0) + lost($0) }
  }

  private var groups: Set<GroupID> {
    Set(phones.flatMap { phone in (phone.engine?.allChats ?? []).compactMap { head(phone, $0)?.group } })
  }

  /// Who is in a group, as their devices see it.
  func members(of group: GroupID) -> [Member] {
    phones.compactMap { phone in
      guard let chat = phone.engine?.chat(group), let head = head(phone, chat), head.standing == .active,
        isEnrolled(phone)
      else { return nil }
      return Member(phone: phone, chat: chat, head: head)
    }
  }

  /// Nothing waits.
  private func pending() -> [String] {
    phones.flatMap { phone in
      (phone.isRevoked ? [] : phone.engine?.unfinished ?? []).map { "\(phone.name): \($0)" }
    }
  }

  /// All members of a group are in the server's epoch and agree on it and on who is in it.
  private func agreement(_ group: GroupID) -> [String] {
    let members = members(of: group)
    guard let first = members.first else { return [] }
    var problems: [String] = []
    problems += differences("epochs", members, in: group) { $0.head.epoch }
    problems += differences("authenticators", members, in: group) {
      $0.phone.engine?.authenticator(of: $0.chat)
    }
    problems += differences("members", members, in: group) { $0.head.shape }
    if let epoch = epoch(of: group, for: first.phone), epoch != first.head.epoch {
      problems.append("\(group): the server is in epoch \(epoch), the members in \(first.head.epoch)")
    }
    return problems
  }

  /// Whatever somebody meant to say is with the server, or waits for its user's word.
  private func lost(_ phone: Phone) -> [String] {
    guard !phone.isRevoked else { return [] }
    var problems: [String] = []
    let said = ledger.said.values.filter { $0.phone === phone && !$0.isCancelled }
    for (chat, messages) in Dictionary(grouping: said, by: \.chat).sorted(by: { $0.key < $1.key }) {
      let waiting = Set(phone.unconfirmed(chat).map(\.id))
      for message in messages.sorted(by: { $0.number < $1.number }) {
        let id = message.envelope.id
        if !ledger.isTaken(id), !waiting.contains(id) {
          problems.append("\(phone.name): lost \(message.envelope.content)")
        }
      }
      // In the order they were made, but for what was refused in between.
      for (group, seqs) in ledger.seqs(
        of: messages.filter { !$0.isFile && !phone.failed.contains($0.envelope.id) })
      where seqs != seqs.sorted() {
        problems.append("\(phone.name): sent in another order to \(group): \(seqs)")
      }
    }
    return problems
  }

  /// What a device keeps, and what it counts and told.
  private func keeping(_ phone: Phone) -> [String] {
    var problems: [String] = []
    let uploads = phone.engine?.pendingUploads() ?? []
    if phone.isRunning, phone.spools != Set(uploads.map(\.spool)) {
      problems.append("\(phone.name): keeps \(phone.spools.sorted()) for \(uploads.map(\.spool))")
    }
    for chat in phone.engine?.allChats ?? [] {
      guard let summary = summary(phone, chat) else { continue }
      let rows = rows(phone, chat)
      let unread = rows.count {
        $0.kind.isBubble && !$0.isDeleted && $0.sender?.user != phone.user && ($0.seq ?? 0) > summary.readSeq
      }
      if unread != summary.unreadCount {
        problems.append("\(phone.name): \(summary.unreadCount) unread, \(unread) counted")
      }
      if let preview = rows.last(where: \.kind.isBubble)?.id, preview != summary.lastMessage?.id {
        problems.append("\(phone.name): the list shows another message than the last")
      }
      problems += phone.strayed(from: rows, in: chat).map { "\(phone.name): \($0)" }
    }
    return problems
  }

  /// What must hold too when nobody tampers with anything, and a minute after the last commit: nobody ever lost the others,
  /// and no secrets of an epoch that ended are kept.
  package func leftovers() -> [String] {
    phones.flatMap { phone in
      var problems: [String] = []
      for chat in phone.engine?.allChats ?? [] {
        if head(phone, chat)?.wantsView == false, phone.storage.keepsSecrets(of: chat) {
          problems.append("\(phone.name): keeps secrets of an epoch that ended")
        }
      }
      for case .diverged(let chat) in phone.events {
        problems.append("\(phone.name): a commit in \(chat) could not be followed")
      }
      return problems
    }
  }

  /// Members who show another name or timer than the others. Known to happen to who comes in while it changes, in about two
  /// of a thousand histories; so it is asked for on its own.
  package func differingProfiles() -> [String] {
    groups.sorted().flatMap { group in
      let members = members(of: group)
      // A direct chat that began again counts otherwise at each device, and so do versions.
      guard members.allSatisfy({ $0.head.seqBase == 0 }) else { return [String]() }
      return differences("names", members, in: group) { summary($0.phone, $0.chat)?.profile.name }
        + differences("timers", members, in: group) { summary($0.phone, $0.chat)?.profile.timer }
    }
  }

  private func differences<Value: Equatable>(
    _ what: String, _ members: [Member], in group: GroupID, _ value: (Member) -> Value
  ) -> [String] {
    let values = members.map(value)
    guard let first = values.first, !values.allSatisfy({ $0 == first }) else { return [] }
    let list = zip(members, values).map { "\($0.phone.name) \($1)" }
    return ["\(group): \(what) differ: \(list.joined(separator: ", "))"]
  }
}
