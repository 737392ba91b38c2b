import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages

extension History {
  private var allKeys: [PreSharedKey] {
    preSharedKeys.map { PreSharedKey(id: $0.id, key: SymmetricKey(copying: $0.key)) }
  }

  /// A Welcome arrives.
  func join(_ member: SimulatedMember, by invitation: Invitation) throws(SimulationFailure) {
    member.invitation = nil
    if let membership = member.membership, membership.isActive, membership.epoch >= invitation.epoch,
      member.state == .inside
    {
      return note("\(member.number) came in another way before its Welcome")
    }
    let bundles = member.bundles
    let keys = allKeys
    if chance(10) { try joinByChangedWelcome(member, invitation) }
    let group: MLSGroup
    do throws(MLSError) {
      group = try MLSGroup.join(
        try decoded(invitation.welcome), keyPackages: bundles, client: member.client,
        ratchetTree: invitation.ratchetTree, preSharedKeys: keys)
    } catch { throw failure("join of \(member.number): \(error)") }
    let membership = try store(group, of: member)
    let reference = membership.read { group in group.keyPackageReference }
    member.bundles.removeAll { $0.reference == reference && !$0.isLastResort }
    let kept = try? member.disk.loadKeyPackages().map(\.reference)
    try expect(
      Set(kept ?? []) == Set(member.bundles.map(\.reference)),
      "\(member.number) keeps other key packages on disk than in memory")
    report.joins += 1
    member.waiting = []
    try start(member, membership)
    guard bundles.count != member.bundles.count else { return }
    // The used keys are gone, so the same Welcome is an orphan now.
    let left = member.bundles
    var refusal: MLSError?
    do throws(MLSError) {
      _ = try MLSGroup.join(
        invitation.welcome, keyPackages: left, client: member.client, ratchetTree: invitation.ratchetTree,
        preSharedKeys: keys)
    } catch { refusal = error }
    try expect(
      refusal == .welcome(.noKeyPackage),
      "a Welcome came to \(member.number) again: \(String(describing: refusal))")
  }

  private func decoded(_ message: MLSMessage) throws(MLSError) -> MLSMessage {
    do { return try MLSMessage(decoding: message.encoded()) } catch { throw .malformed(error) }
  }

  private func joinByChangedWelcome(
    _ member: SimulatedMember, _ invitation: Invitation
  ) throws(SimulationFailure) {
    var bytes = invitation.welcome.encoded()
    bytes[(bytes.count - 1) * pick(0...9_999) / 9_999] ^= UInt8(1 << pick(0...7))
    guard let message = try? MLSMessage(decoding: bytes) else { return }
    let joined = try? MLSGroup.join(
      message, keyPackages: member.bundles, client: member.client, ratchetTree: invitation.ratchetTree,
      preSharedKeys: allKeys)
    // A Welcome holds other members' secrets too, which are none of this member's business.
    if let joined {
      try expect(
        joined.epochAuthenticator == epochs[Int(invitation.epoch)].agreed?.authenticator
          || epochs[Int(invitation.epoch)].agreed == nil,
        "\(member.number) joins another group by a changed Welcome")
    }
  }

  func publishGroupInfo(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership, member.state == .inside else { return }
    if let known = server.groupInfo, known.epoch > membership.epoch { return }
    let isInside = chance(60)
    let (message, tree) = try must("a GroupInfo of \(member.number)") { () throws(MLSError) in
      try membership.read { group throws(MLSError) in
        (try group.groupInfo(ratchetTree: isInside), isInside ? nil : group.ratchetTree)
      }
    }
    server.groupInfo = (membership.epoch, message, tree)
  }

  /// Joins by an external commit, in place of its own leaf if it has one.
  @discardableResult
  func joinExternally(
    _ member: SimulatedMember, isCertain: Bool = false
  ) throws(SimulationFailure) -> Bool {
    guard let info = server.groupInfo else { return false }
    let keys = chance(30) ? Array(allKeys.prefix(1)) : []
    let join: ExternalJoin
    do throws(MLSError) {
      join = try MLSGroup.joinExternally(
        try decoded(info.message), client: member.client, ratchetTree: info.ratchetTree,
        preSharedKeys: keys, using: &self.keys)
    } catch { throw failure("an external join of \(member.number): \(error)") }
    let record = SentMessage(
      number: sent.count, kind: .commit, message: join.commit, sender: member.number, life: member.life + 1,
      leaf: join.effect.committer, epoch: info.epoch, effect: join.effect)
    sent.append(record)
    note("\(member.number) asks to come in, commit \(record.number) of epoch \(info.epoch)")
    guard try submit(record, nil, nil) == .accepted else {
      report.refusedCommits += 1
      return false
    }
    if !isCertain, chance(10) {
      // It never hears that it was accepted, and what it had is void.
      member.state = .lost
      count(member.membership)
      member.membership = nil
      note("\(member.number) gets no answer")
      return false
    }
    report.externalJoins += 1
    member.waiting = []
    member.invitation = nil
    try start(member, try store(join.accepted(), of: member))
    return true
  }

  // MARK: Bringing all together

  /// Everything arrives, everybody is there: all must come to one epoch, and the group must go on.
  func settle() throws(SimulationFailure) {
    note("settle")
    for member in members { member.offlineUntil = 0 }
    step += 1_000
    defer { step -= 1_000 }
    guard let guide = try gather() else {
      note("nobody is left")
      isDead = true
      return
    }
    try commit(guide, [])
    try resolveFully(guide)
    guard try gather() != nil else { throw failure("nobody is left after a commit") }
    try hearEachOther()
    report.settlements += 1
  }

  /// Brings everybody in the tree to the server's epoch; nil when there is nobody to begin with.
  private func gather() throws(SimulationFailure) -> SimulatedMember? {
    try deliverDue()
    for member in members where member.state == .inside { try catchUp(member) }
    for member in members where member.state == .inside && member.pending != nil { try resolveFully(member) }
    try deliverDue()
    for member in members where member.state == .inside { try catchUp(member) }
    let guide = members.first { $0.state == .inside && $0.membership?.epoch == server.epoch }
    guard let guide else { return nil }
    // Ghosts: those whose Welcome was lost or who threw their own commit away.
    for entry in roster where members[entry.member].state != .inside {
      try catchUp(guide)
      server.groupInfo = nil
      try publishGroupInfo(guide)
      let isIn = try joinExternally(members[entry.member], isCertain: true)
      try expect(isIn, "\(entry.member) cannot come back")
    }
    for member in members where member.state == .inside { try catchUp(member) }
    try checkTogether()
    return guide
  }

  private func checkTogether() throws(SimulationFailure) {
    let inTree = roster.map(\.member).sorted()
    let inside = members.filter { $0.state == .inside }.map(\.number)
    try expect(inside == inTree, "inside are \(inside), in the tree \(inTree)")
    for member in members where member.state == .inside {
      try expect(
        member.membership?.epoch == server.epoch && member.pending == nil,
        "\(member.number) stays behind in epoch \(member.model.epoch) of \(server.epoch)")
    }
  }

  private func hearEachOther() throws(SimulationFailure) {
    guard let sender = pick(from: members.filter { $0.state == .inside }), let membership = sender.membership
    else { return }
    let message = try must("a last word") { () throws(MLSError) in
      try membership.change { group throws(MLSError) in
        try group.encrypt([1, 2, 3], authenticatedData: [7], using: &keys)
      }
    }
    let record = SentMessage(
      number: sent.count, kind: .application, message: message, sender: sender.number, life: sender.life,
      leaf: membership.ownLeaf, epoch: membership.epoch, generation: sender.generation, data: [1, 2, 3])
    sender.generation += 1
    sent.append(record)
    report.messages += 1
    for member in members where member.state == .inside {
      try receive(member, Delivery(due: step, number: record.number, tampered: nil))
      try expect(
        member === sender || member.read.contains(record.number), "\(member.number) did not hear")
    }
  }

  /// The group ends in favour of another.
  func close() throws(SimulationFailure) {
    guard let closer = pick(from: members.filter { $0.state == .inside }) else { return }
    let next = ReInit(groupID: groupID + [1], cipherSuite: suite)
    try commit(closer, [.reInit(next)], path: chance(50))
    try resolveFully(closer)
    for member in members where member.state == .inside { try catchUp(member) }
    for member in members where member.state == .inside {
      guard let membership = member.membership else { continue }
      let spoken = refusal { () throws(MLSError) in
        try membership.change { group throws(MLSError) in _ = try group.encrypt([1], using: &keys) }
      }
      try expect(spoken == .state(.reInitialised), "\(member.number) speaks in a closed group")
    }
    note("closed")
  }
}
