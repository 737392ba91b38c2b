import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

extension History {
  /// Sends to every member that the server knows of, the sender included.
  func push(_ message: SentMessage) {
    let recipients: [RosterEntry]
    if message.kind == .commit {
      // Those that it removes get it too.
      recipients = epochs[Int(message.epoch)].roster
    } else {
      recipients = roster
    }
    for entry in recipients { push(message, to: members[entry.member]) }
  }

  private func push(_ message: SentMessage, to member: SimulatedMember) {
    if chance(8) {
      member.inbox.append(
        Delivery(
          due: step + pick(0...2), number: message.number, tampered: tamper(message.bytes)))
    }
    // A lost handshake message is fetched from the server later.
    guard !chance(6) else { return }
    let copies = chance(5) ? 2 : 1
    for _ in 0..<copies {
      let delay = chance(70) ? pick(0...1) : chance(85) ? pick(1...8) : pick(10...80)
      member.inbox.append(Delivery(due: step + delay, number: message.number, tampered: nil))
    }
  }

  private func tamper(_ bytes: [UInt8]) -> [UInt8] {
    var result = bytes
    switch pick(0...9) {
    case 0: result.append(UInt8(pick(0...255)))
    case 1: result.removeLast(1 + (bytes.count - 1) * pick(0...99) / 100)
    case 2: result = keys.bytes(pick(0...200))
    default:
      for _ in 0..<pick(1...3) {
        // A fraction of the length, for signatures of some suites vary in length.
        result[(bytes.count - 1) * pick(0...9_999) / 9_999] ^= UInt8(1 << pick(0...7))
      }
    }
    return result
  }

  func deliverDue() throws(SimulationFailure) {
    for member in members where member.offlineUntil <= step {
      if let invitation = member.invitation, invitation.due <= step { try join(member, by: invitation) }
      guard member.state == .inside || member.state == .removed else {
        if member.state != .invited { member.inbox = [] }
        continue
      }
      guard member.inbox.contains(where: { $0.due <= step }) else { continue }
      var due = member.inbox.filter { $0.due <= step }
      member.inbox.removeAll { $0.due <= step }
      if chance(30) { due = shuffled(due) }
      for delivery in due { try receive(member, delivery) }
    }
  }

  /// Fetches the commits that a member has not seen, in their order.
  func catchUp(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership, member.state == .inside else { return }
    while membership.isActive, member.state == .inside, membership.epoch < server.epoch {
      let before = membership.epoch
      try receive(
        member, Delivery(due: step, number: server.commits[Int(before)], tampered: nil))
      let moved = !membership.isActive || membership.epoch > before || member.state == .lost
      try expect(moved, "\(member.number) cannot leave epoch \(before)")
    }
  }
}
