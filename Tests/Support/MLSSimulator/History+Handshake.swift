import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeUnits

extension History {
  private func identities(_ membership: Membership) -> [Credential] {
    membership.read { group in group.members.map(\.credential) }
  }

  /// Clients that a member does not see in the group; new ones where none is left.
  private func candidates(
    _ count: Int, for membership: Membership
  ) throws(SimulationFailure) -> [SimulatedMember] {
    let inside = identities(membership)
    var result = Array(
      shuffled(members.filter { $0.state != .inside && !inside.contains($0.client.credential) })
        .prefix(chance(50) ? count : count / 2))
    while result.count < count, members.count < 2 * targetSize + 4 { result.append(try newMember()) }
    return result
  }

  private func keyPackage(of member: SimulatedMember) throws(SimulationFailure) -> KeyPackage {
    let lifetime = lifetime(for: member)
    let isLast = chance(10)
    let bundle = try must("a key package") { () throws(MLSError) in
      try member.client.makeKeyPackage(lifetime: lifetime, lastResort: isLast, using: &keys)
    }
    member.bundles.append(bundle)
    var transaction = MLSTransaction()
    transaction.write(bundle)
    do { try member.disk.apply(transaction) } catch { throw failure("storing a key package: \(error)") }
    keyPackageOwners[bundle.reference] = member.number
    return bundle.keyPackage
  }

  private func others(_ membership: Membership) -> [LeafIndex] {
    membership.read { group in group.members.map(\.leaf).filter { $0 != group.ownLeaf } }
  }

  private func makeExtensions() -> [Extension] {
    var result: [Extension] = []
    if chance(50) {
      let required = RequiredCapabilities(credentials: chance(50) ? [.basic] : [.basic, .x509])
      result.append(Extension(type: .requiredCapabilities, data: required.encoded()))
    }
    if chance(50) {
      let sender = ExternalSender(signatureKey: keys.bytes(32), credential: .basic(identity: [1, 2, 3]))
      result.append(Extension(type: .externalSenders, data: ExternalSenderList([sender]).encoded()))
    }
    return result
  }

  // MARK: Proposals

  func propose(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership, member.handshakes < 8 else { return }
    let kind = pick(0...9)
    var added: KeyPackage?
    if kind < 3, roster.count < targetSize, let other = try candidates(1, for: membership).first {
      added = try keyPackage(of: other)
    }
    let victim = pick(from: others(membership))
    let isLarge = chance(membership.read { group in group.members.count } > targetSize / 3 ? 60 : 10)
    let key = preSharedKeys[pick(0...preSharedKeys.count - 1)]
    let leaf = membership.ownLeaf
    if kind == 7 { try registerKeys(member) }
    let (message, what) = try must("a proposal of \(member.number)") { () throws(MLSError) in
      try membership.change { group throws(MLSError) -> (MLSMessage, String) in
        if let added { return (try group.proposeAdd(added, using: &keys), "an add") }
        switch kind {
        case 3, 4:
          if let victim, isLarge {
            return (try group.proposeRemove(victim, using: &keys), "to remove \(victim.value)")
          }
        case 5:
          if victim != nil, isLarge {
            return (try group.proposeRemove(leaf, using: &keys), "its own removal")
          }
        case 7:
          return (try group.proposePreSharedKey(id: key.id, using: &keys), "a key")
        default: break
        }
        return (try group.proposeUpdate(using: &keys), "an update")
      }
    }
    member.handshakes += 1
    report.proposals += 1
    let record = SentMessage(
      number: sent.count, kind: .proposal, message: message, sender: member.number, life: member.life,
      leaf: leaf, epoch: membership.epoch, meaning: what.contains("remov") ? what : "")
    sent.append(record)
    note("\(member.number) proposes \(what) in epoch \(record.epoch), proposal \(record.number)")
    member.unsent.append(record.number)
    if !chance(10) { flush(member) }
  }

  /// Sends the proposals that wait: no commit of ours may name one that nobody has.
  private func flush(_ member: SimulatedMember) {
    for number in member.unsent where server.submit(proposal: sent[number]) { push(sent[number]) }
    member.unsent = []
  }

  // MARK: Commits

  /// Makes a commit, which then waits at its sender. False when there is no reason for one.
  func makeCommit(_ member: SimulatedMember) throws(SimulationFailure) -> Bool {
    guard let membership = member.membership, member.handshakes < 8 else { return false }
    var list: [Proposal] = []
    var path = true
    let kind = pick(0...11)
    let size = membership.read { group in group.members.count }
    let isFirst = size == 1 && targetSize > 1
    if kind < 4 || kind == 11 || isFirst, size < targetSize {
      let room = targetSize - size
      let count = isFirst ? pick(max(1, room / 2)...max(1, room)) : min(room, pick(1...3))
      for other in try candidates(count, for: membership) { list.append(.add(try keyPackage(of: other))) }
      path = chance(60)
    }
    if size > targetSize / 3 || chance(10), kind == 4 || kind == 11 || (size >= targetSize && chance(40)) {
      for leaf in shuffled(others(membership)).prefix(chance(90) ? 1 : pick(1...max(1, size / 2))) {
        list.append(.remove(leaf))
      }
    }
    if kind == 5 || kind == 11 {
      try registerKeys(member)
      let id = preSharedKeys[pick(0...preSharedKeys.count - 1)].id
      let proposal = try must("a key's proposal") { () throws(MLSError) in
        try membership.read { group throws(MLSError) in try group.preSharedKeyProposal(id: id, using: &keys) }
      }
      list.append(proposal)
      path = path && chance(60)
    }
    if kind == 6 { list.append(.groupContextExtensions(makeExtensions())) }
    if kind == 7, !isFirst, canResume(membership) {
      let id = PreSharedKeyID(
        source: .resumption(usage: .application, groupID: groupID, epoch: membership.epoch),
        nonce: keys.bytes([4, 5, 6].contains(suite.rawValue) ? 64 : suite.rawValue == 7 ? 48 : 32))
      list.append(.preSharedKey(id))
      path = chance(50)
    }
    try commit(member, list, path: path)
    return true
  }

  /// A new member does not know the resumption key of the epoch before it came.
  private func canResume(_ membership: Membership) -> Bool {
    membership.read { group in
      !group.pendingProposals.contains { if case .add = $0 { true } else { false } }
    }
  }

  func commit(_ member: SimulatedMember, _ list: [Proposal], path: Bool = true) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    let time = clock(member)
    let leaf = membership.ownLeaf
    let bundle = try must("a commit of \(member.number) with \(list.map(\.type.rawValue))") {
      () throws(MLSError) in
      try membership.change { group throws(MLSError) in
        try group.commit(list, path: path, authenticatedData: [9], at: time, using: &keys)
      }
    }
    member.handshakes += 1
    let record = SentMessage(
      number: sent.count, kind: .commit, message: bundle.commit, sender: member.number, life: member.life,
      leaf: leaf, epoch: membership.epoch, effect: bundle.effect)
    sent.append(record)
    member.pending = PendingCommit(
      number: record.number, welcome: bundle.welcome, ratchetTree: bundle.ratchetTree)
    note(
      "\(member.number) commits \(list.map(\.type.rawValue)) in epoch \(record.epoch), commit "
        + "\(record.number): added \(bundle.effect.added.map(\.value)), removed "
        + "\(bundle.effect.removed.map(\.value)), updated \(bundle.effect.updated.map(\.value))")
  }

  /// Sends the pending commit. Any of the ways there and back may be lost.
  func send(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let pending = member.pending, !chance(8) else { return }
    flush(member)
    let answer = try submit(sent[pending.number], pending.welcome, pending.ratchetTree)
    if chance(12) { return note("\(member.number) gets no answer") }
    switch answer {
    case .accepted, .acceptedBefore: try merge(member)
    case .refused: try clear(member)
    }
  }

  /// An answer did not come: ask again, wait for the echo, or give up.
  func resolve(_ member: SimulatedMember) throws(SimulationFailure) {
    switch pick(0...9) {
    case 0..<5: try send(member)
    case 5..<8: try catchUp(member)
    case 8:
      // A client that forgets before it knows: it may have won.
      try clearPending(member)
      note("\(member.number) gives its commit up")
    default: break
    }
  }

  /// Settles a pending commit for certain.
  func resolveFully(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let pending = member.pending else { return }
    flush(member)
    switch try submit(sent[pending.number], pending.welcome, pending.ratchetTree) {
    case .accepted, .acceptedBefore: try merge(member)
    case .refused: try clear(member)
    }
  }

  private func merge(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership, let pending = member.pending else { return }
    let time = clock(member)
    let effect = try must("merge by \(member.number)") { () throws(MLSError) in
      try membership.change { group throws(MLSError) in try group.mergePendingCommit(at: time) }
    }
    try expect(effect == sent[pending.number].effect, "\(member.number) merges another commit than it sent")
    try enter(member)
    let waiting = member.waiting
    member.waiting = []
    for number in waiting { try receive(member, Delivery(due: step, number: number, tampered: nil)) }
  }

  private func clearPending(_ member: SimulatedMember) throws(SimulationFailure) {
    try must("clearing") { () throws(MLSError) in
      try member.membership?.change { group in group.clearPendingCommit() }
    }
    member.pending = nil
  }

  private func clear(_ member: SimulatedMember) throws(SimulationFailure) {
    note("\(member.number)'s commit is refused")
    report.refusedCommits += 1
    // Another's commit clears it as well.
    if chance(50) { try clearPending(member) }
    try catchUp(member)
  }

  /// Hands a commit to the server, and if it is the first tells everybody.
  func submit(
    _ commit: SentMessage, _ welcome: MLSMessage?, _ ratchetTree: RatchetTreeExtension?
  ) throws(SimulationFailure) -> SimulatedServer.Answer {
    let answer = server.submit(commit)
    guard answer == .accepted, let effect = commit.effect else { return answer }
    report.commits += 1
    note("the server takes commit \(commit.number)")
    var next = roster.filter { !effect.removed.contains($0.leaf) }
    if case .welcome(let welcome)? = welcome {
      try expect(
        welcome.secrets.count == effect.added.count, "a Welcome for \(welcome.secrets.count) members")
      for (leaf, secrets) in zip(effect.added, welcome.secrets) {
        guard let owner = keyPackageOwners[secrets.newMember] else { throw failure("a strange key package") }
        next.append(RosterEntry(leaf: leaf, member: owner))
        let guest = members[owner]
        if guest.state != .inside { guest.state = .invited }
        // A few never come: their clients must come in from outside.
        guest.invitation =
          chance(4)
          ? nil
          : Invitation(
            due: step + (chance(70) ? 0 : pick(1...30)), welcome: .welcome(welcome), ratchetTree: ratchetTree,
            epoch: effect.epoch)
      }
    }
    if !roster.contains(where: { $0.leaf == commit.leaf && $0.member == commit.sender })
      || effect.removed.contains(commit.leaf)
    {
      next.append(RosterEntry(leaf: commit.leaf, member: commit.sender))
    }
    next.sort { $0.leaf < $1.leaf }
    epochs.append(EpochRecord(roster: next))
    report.largestGroup = max(report.largestGroup, next.count)
    push(commit)
    return answer
  }
}
