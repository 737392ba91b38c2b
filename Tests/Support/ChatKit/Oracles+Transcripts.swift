import PalbeChatCore
import PalbeUnits

/// Transcripts against what the server took.
extension ChatWorld {
  /// A message of a group and whoever must have it.
  private struct Expected {
    let taken: Ledger.Taken
    let said: Ledger.Said
    /// Its place among all that the server took.
    let place: Int

    var isRow: Bool {
      switch said.envelope.content {
      case .text, .attachment, .custom: true
      default: false
      }
    }
  }

  /// Every message that the server took stands at everybody who was in the group then, once, in one order, and as the model
  /// of the fold has it.
  func transcripts(of group: GroupID) -> [String] {
    let messages = ledger.taken.enumerated().compactMap { place, taken in
      taken.group == group
        ? ledger.said[taken.id].map { Expected(taken: taken, said: $0, place: place) } : nil
    }
    return members(of: group).flatMap { member in
      transcript(of: member, messages).map { "\(member.phone.name) in \(group): \($0)" }
    }
  }

  private func transcript(of member: Member, _ messages: [Expected]) -> [String] {
    let phone = member.phone
    guard let device = phone.device?.device else { return [] }
    var problems: [String] = []
    let rows = rows(phone, member.chat)
    if Set(rows.map(\.id)).count != rows.count { problems.append("a row stands twice") }
    let seqs = rows.compactMap(\.seq)
    if seqs != seqs.sorted() { problems.append("out of order: \(seqs)") }
    let base = member.head.seqBase
    let reset = member.head.group.flatMap { ledger.resets[device]?[$0] } ?? 0
    let since = max(phone.unsure[member.chat] ?? 0, reset)
    let isWhole = since == 0 && base == 0
    if isWhole {
      if rows.contains(where: { $0.kind == .unreadable }) { problems.append("a message could not be read") }
    }
    let expected = messages.filter {
      $0.place >= since && ($0.taken.sender == device || $0.taken.readers.contains(device))
    }
    for message in expected where message.isRow && !phone.hidden.contains(message.taken.id) {
      let found = rows.filter { $0.id == message.taken.id }
      if isGone(message, member) {
        if !found.isEmpty { problems.append("message \(message.taken.seq) has not disappeared") }
      } else if found.map(\.seq) != [message.taken.seq + base] {
        if message.said.envelope.expiry == nil || found.count > 1 {
          problems.append(
            "message \(message.taken.seq) stands at \(found.map { $0.seq ?? 0 }) among \(seqs), base \(base)")
        }
      }
    }
    if isWhole { problems += compare(rows, expected, phone, member) }
    return problems
  }

  /// Whether a message has had its time by now: a minute is longer than any.
  private func isGone(_ message: Expected, _ member: Member) -> Bool {
    guard let expiry = message.said.envelope.expiry else { return false }
    let isRead =
      message.said.phone.user == member.phone.user
      || message.taken.seq + member.head.seqBase <= (summary(member.phone, member.chat)?.readSeq ?? 0)
    return expiry.start == .send || isRead
  }

  /// Rows that stay, as they are and as they must be.
  private func compare(
    _ rows: [Row], _ expected: [Expected], _ phone: Phone, _ member: Member
  ) -> [String] {
    let passing = Set(expected.filter { $0.isRow && $0.said.envelope.expiry != nil }.map(\.taken.id))
    let plain = Set(expected.map(\.taken.id)).subtracting(passing).subtracting(phone.hidden)
    var log: [TranscriptModel.Input] = []
    for message in expected {
      if case .control = message.said.envelope.content { continue }
      guard let sender = message.said.phone.device else { continue }
      var envelope = message.said.envelope
      envelope.expiry = nil
      if passing.contains(envelope.id) { continue }
      if case .text(var body) = envelope.content, let parent = body.reply?.parent, !plain.contains(parent) {
        body.reply = nil
        envelope.content = .text(body)
      }
      log.append(
        .received(
          Incoming(
            seq: message.taken.seq, sender: sender, epoch: message.taken.epoch, receivedAt: now,
            serverAt: message.taken.at, envelope: envelope)))
      if phone.hidden.contains(envelope.id) { log.append(.hidden(envelope.id)) }
    }
    let model = TranscriptModel(log, me: phone.user, cap: 1_000).rows
    let shown = rows.filter { $0.kind.isBubble && $0.seq != nil && !passing.contains($0.id) }.map { row in
      var shown = TranscriptModel.Shown(row)
      if let parent = row.reply?.parent, !plain.contains(parent) { shown.quote = nil }
      return shown
    }
    guard shown != model else { return [] }
    let (place, pair) =
      zip(shown, model).enumerated().first { $1.0 != $1.1 } ?? (min(shown.count, model.count), nil)
    return [
      "row \(place) of \(shown.count) is \(pair.map { "\($0.0)" } ?? "-") and must be \(pair.map { "\($0.1)" } ?? "one of \(model.count)")"
    ]
  }
}
