import PalbeCrypto
import PalbeMLS
import PalbeMLSMessages
import PalbeWire

extension History {
  /// Hands a message to a member, and after it those that it kept for the epoch that this one started.
  func receive(_ member: SimulatedMember, _ delivery: Delivery) throws(SimulationFailure) {
    var queue = [delivery]
    while !queue.isEmpty {
      let next = queue.removeFirst()
      guard let membership = member.membership else { return }
      let before = membership.epoch
      if let changed = next.tampered {
        if changed != sent[next.number].bytes { try receiveTampered(member, sent[next.number], changed) }
        continue
      }
      let message = sent[next.number]
      switch message.kind {
      case .application: try receiveApplication(member, message)
      case .proposal: try receiveProposal(member, message)
      case .commit: try receiveCommit(member, message)
      }
      if membership.epoch != before, membership.isActive {
        queue = member.waiting.map { Delivery(due: step, number: $0, tampered: nil) } + queue
        member.waiting = []
      }
    }
  }

  func process(
    _ member: SimulatedMember, _ bytes: [UInt8]
  ) throws(SimulationFailure) -> Result<ProcessedMessage, MLSError> {
    guard let membership = member.membership else { throw failure("\(member.number) has no group") }
    let time = clock(member)
    do throws(MLSError) {
      return .success(
        try membership.change { group throws(MLSError) in try group.process(bytes, at: time) })
    } catch {
      return .failure(error)
    }
  }

  private func describe(_ result: Result<ProcessedMessage, MLSError>) -> String {
    switch result {
    case .success(let processed): "\(processed)"
    case .failure(let error): "\(error)"
    }
  }

  /// True when the engine recognises a message that it processed before.
  private func isRecognised(_ result: Result<ProcessedMessage, MLSError>) -> Bool {
    result == .success(.duplicate)
  }

  /// True when the member processed this message, or the same proposal of the same member in the same epoch: signatures
  /// are deterministic, so that both have one reference.
  private func hasProcessed(_ member: SimulatedMember, _ message: SentMessage) -> Bool {
    if member.processed.contains(message.number) { return true }
    guard !message.meaning.isEmpty else { return false }
    return member.processed.contains { number in
      let other = sent[number]
      return other.meaning == message.meaning && other.epoch == message.epoch
        && other.sender == message.sender && other.life == message.life
    }
  }

  /// After a removal every message meets the same answer.
  private func isPast(_ member: SimulatedMember, _ message: SentMessage) throws(SimulationFailure) -> Bool {
    guard member.state == .removed else { return false }
    let result = try process(member, message.bytes)
    try expect(
      result == .failure(.state(.removed)),
      "\(member.number) was removed and reads \(message.number): \(describe(result))")
    return true
  }

  private func receiveTampered(
    _ member: SimulatedMember, _ message: SentMessage, _ bytes: [UInt8]
  ) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    let before = Snapshot(membership)
    let result = try process(member, bytes)
    let isOwn = message.sender == member.number && result == .success(.own)
    if case .success = result, !isOwn {
      throw failure("\(member.number) accepts a changed copy of \(message.number): \(describe(result))")
    }
    try expect(
      before == Snapshot(membership),
      "a changed copy of \(message.number) changed \(member.number)'s group")
    report.tampered += 1
  }

  /// What must not change when a message is refused.
  private struct Snapshot: Equatable {
    let context: GroupContext
    let authenticator: [UInt8]
    let proposals: Int
    let hasPendingCommit: Bool

    init(_ membership: Membership) {
      (context, authenticator, proposals, hasPendingCommit) = membership.read { group in
        (group.context, group.epochAuthenticator, group.pendingProposals.count, group.hasPendingCommit)
      }
    }
  }

  // MARK: Application messages

  private func receiveApplication(
    _ member: SimulatedMember, _ message: SentMessage
  ) throws(SimulationFailure) {
    if try isPast(member, message) { return }
    let isOwn = message.sender == member.number && message.life == member.life
    let prediction = member.model.predict(message, isOwn: isOwn, at: clock(member))
    let result = try process(member, message.bytes)
    let matches: Bool
    switch (prediction, result) {
    case (.read, .success(.application(let data))):
      matches =
        data.data == message.data && data.sender == message.leaf && data.epoch == message.epoch
        && data.authenticatedData == [7]
      try expect(
        member.read.insert(message.number).inserted, "\(member.number) reads \(message.number) twice")
      member.model.read(message)
      report.messagesRead += 1
      if message.epoch < member.model.epoch { report.messagesReadLate += 1 }
    case (.own, .success(.own)): matches = true
    case (.future, .failure(.message(.futureEpoch(let epoch)))):
      matches = epoch == message.epoch
      member.waiting.append(message.number)
    case (.stale, .failure(.message(.staleMessage(let epoch)))): matches = epoch == message.epoch
    case (.used, .failure(.message(.generationUsed(let generation)))):
      matches = generation == message.generation
    case (.tooFarAhead, .failure(.message(.generationTooFarAhead(let generation)))):
      matches = generation == message.generation
    case (.used, .success), (.stale, .success):
      // What was read may be recognised, but nothing that was not.
      matches = isRecognised(result) && member.read.contains(message.number)
    default: matches = false
    }
    if prediction != .read { report.messagesRefused += 1 }
    note("\(member.number) gets message \(message.number): \(prediction)")
    try expect(
      matches,
      "\(member.number) in epoch \(member.model.epoch) gets message \(message.number) of epoch "
        + "\(message.epoch), generation \(message.generation): expected \(prediction), got \(describe(result))"
    )
  }

  // MARK: Proposals

  private func receiveProposal(
    _ member: SimulatedMember, _ message: SentMessage
  ) throws(SimulationFailure) {
    if try isPast(member, message) { return }
    let isOwn = message.sender == member.number && message.life == member.life
    let epoch = member.model.epoch
    let result = try process(member, message.bytes)
    let isHeld = member.proposals.contains(message.number)
    let matches: Bool
    switch result {
    case .success(.own): matches = isOwn && message.epoch <= epoch
    case .success where isRecognised(result): matches = hasProcessed(member, message)
    case .success(.proposal(_, _, let sender)):
      let isAgain = isHeld && message.message.wireFormat == .privateMessage
      matches = !isOwn && message.epoch == epoch && sender == .member(message.leaf) && !isAgain
      member.proposals.insert(message.number)
      member.processed.insert(message.number)
    case .failure(.message(.futureEpoch)):
      matches = message.epoch > epoch
      member.waiting.append(message.number)
    case .failure(.message(.staleProposal)): matches = message.epoch < epoch
    case .failure(.message(.generationUsed)):
      matches = isHeld && message.message.wireFormat == .privateMessage
    default: matches = false
    }
    note("\(member.number) gets proposal \(message.number)")
    try expect(
      matches,
      "\(member.number) in epoch \(epoch) gets proposal \(message.number) of epoch \(message.epoch): "
        + describe(result))
  }

  // MARK: Commits

  private func receiveCommit(
    _ member: SimulatedMember, _ message: SentMessage
  ) throws(SimulationFailure) {
    if try isPast(member, message) { return }
    let epoch = member.model.epoch
    let isOwn = message.sender == member.number && message.life == member.life
    var result = try process(member, message.bytes)
    note("\(member.number) in epoch \(epoch) gets commit \(message.number)")
    if result == .failure(.proposals(.unknownReference)) {
      for number in server.proposals(of: epoch) { try receiveProposal(member, sent[number]) }
      result = try process(member, message.bytes)
    }
    if result == .failure(.proposals(.unknownPreSharedKey)) {
      try registerKeys(member)
      result = try process(member, message.bytes)
    }
    let matches: Bool
    switch result {
    case .success(.commit(let effect)):
      matches = !isOwn && message.epoch == epoch && effect == message.effect && !removes(message, member)
    case .success(.ownCommit(let effect)):
      matches = isOwn && message.number == member.pending?.number && effect == message.effect
    case .success(.removed(let effect)):
      matches = !isOwn && message.epoch == epoch && effect == message.effect && removes(message, member)
    case .success(.own): matches = isOwn && epoch > message.epoch
    case .success where isRecognised(result): matches = hasProcessed(member, message)
    case .failure(.message(.futureEpoch)):
      matches = message.epoch > epoch
      member.waiting.append(message.number)
    case .failure(.message(.staleCommit)): matches = message.epoch < epoch
    case .failure(.commit(.ownCommitNotPending)):
      // It gave up a commit that had won: nothing leads on from here.
      matches = isOwn && message.epoch == epoch && message.number != member.pending?.number
      if matches {
        member.state = .lost
        note("\(member.number) is lost")
      }
    default: matches = false
    }
    try expect(
      matches,
      "\(member.number) in epoch \(epoch) gets commit \(message.number) of epoch \(message.epoch) by "
        + "\(message.sender): \(describe(result)), expected \(String(describing: message.effect))")
    switch result {
    case .success(.commit), .success(.ownCommit):
      member.processed.insert(message.number)
      try enter(member)
    case .success(.removed): try leave(member)
    default: break
    }
  }

  private func removes(_ message: SentMessage, _ member: SimulatedMember) -> Bool {
    guard let leaf = member.membership?.ownLeaf else { return false }
    return message.effect?.removed.contains(leaf) ?? false
  }

  func registerKeys(_ member: SimulatedMember) throws(SimulationFailure) {
    let list = preSharedKeys
    try must("registering keys") { () throws(MLSError) in
      try member.membership?.change { group in
        for item in list {
          group.register(PreSharedKey(id: item.id, key: SymmetricKey(copying: item.key)))
        }
      }
    }
  }

  // MARK: Epochs

  /// Why an operation was refused; nil if it was not.
  func refusal(_ body: () throws(MLSError) -> Void) -> MLSError? {
    do throws(MLSError) {
      try body()
      return nil
    } catch { return error }
  }

  func store(
    _ group: consuming MLSGroup, of member: SimulatedMember
  ) throws(SimulationFailure) -> Membership {
    do throws(MLSStorageError) { return try Membership(group, of: member) } catch {
      throw failure("storing \(member.number)'s group: \(error)")
    }
  }

  /// The process of a member ends between two operations; what it was in the middle of is as it was.
  func restart(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    let before = Snapshot(membership)
    membership.restart()
    note("\(member.number) starts again")
    try expect(before == Snapshot(membership), "\(member.number) is another after a restart")
  }

  /// Counts what a membership that ends, or the history, went through.
  func count(_ membership: Membership?) {
    report.restarts += membership?.restarts ?? 0
    report.failedWrites += membership?.failedWrites ?? 0
  }

  /// A membership begins.
  func start(_ member: SimulatedMember, _ membership: Membership) throws(SimulationFailure) {
    count(member.membership)
    member.membership = membership
    member.life += 1
    member.state = .inside
    member.pending = nil
    member.unsent = []
    member.proposals = []
    member.processed = []
    member.handshakes = 0
    member.generation = 0
    member.model = ReceiverModel(epoch: membership.epoch, configuration: member.client.configuration)
    note("\(member.number) is in, leaf \(membership.ownLeaf.value), epoch \(membership.epoch)")
    try compare(member)
  }

  /// A member is in the next epoch.
  func enter(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    report.commitsProcessed += 1
    try expect(membership.epoch == member.model.epoch + 1, "\(member.number) skipped an epoch")
    member.model.enter(membership.epoch, at: clock(member))
    member.pending = nil
    member.unsent = []
    member.proposals = []
    member.handshakes = 0
    member.generation = 0
    try expect(
      membership.read { group in !group.hasPendingCommit && group.pendingProposals.isEmpty },
      "\(member.number) carried a pending commit or proposals into an epoch")
    try compare(member)
    if chance(25), membership.isActive { try publishGroupInfo(member) }
  }

  private func compare(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    let epoch = Int(membership.epoch)
    let mine = try must("export by \(member.number)") { () throws(MLSError) in
      try membership.read { group throws(MLSError) in
        var exported: [UInt8] = []
        // A group that was closed exports nothing.
        guard group.isActive else {
          return Agreement(
            context: group.context, authenticator: group.epochAuthenticator, exported: exported)
        }
        let key = try group.exportSecret(label: "simulated", context: [1], length: 32)
        for index in key.span.indices { exported.append(key.span[index]) }
        return Agreement(
          context: group.context, authenticator: group.epochAuthenticator, exported: exported)
      }
    }
    if let agreed = epochs[epoch].agreed {
      try expect(mine == agreed, "\(member.number) disagrees on epoch \(epoch): \(mine) and \(agreed)")
    } else {
      epochs[epoch].agreed = mine
      note("epoch \(epoch)\(isReproducible ? " " + Hex.encode(mine.authenticator) : "")")
    }
    let listed = membership.read { group in group.members }
    var seen: [RosterEntry] = []
    for entry in listed {
      seen.append(RosterEntry(leaf: entry.leaf, member: try number(of: entry.credential)))
    }
    try expect(
      seen == epochs[epoch].roster,
      "\(member.number) sees members \(seen), not \(epochs[epoch].roster), in epoch \(epoch)")
    if chance(10), membership.isActive {
      try must("wiping") { () throws(MLSError) in
        try membership.change { group in group.wipeExporterSecret() }
      }
      let again = refusal { () throws(MLSError) in
        try membership.read { group throws(MLSError) in
          _ = try group.exportSecret(label: "simulated", context: [1], length: 32)
        }
      }
      try expect(again == .state(.exporterWiped), "\(member.number) exports what it wiped")
    }
  }

  private func number(of credential: Credential) throws(SimulationFailure) -> Int {
    guard case .basic(let identity) = credential,
      let number = Int(String(decoding: identity, as: UTF8.self).dropFirst("member ".count))
    else { throw failure("a strange member: \(credential)") }
    return number
  }

  /// A member learned that it was removed.
  private func leave(_ member: SimulatedMember) throws(SimulationFailure) {
    guard let membership = member.membership else { return }
    report.removals += 1
    member.state = .removed
    member.pending = nil
    member.waiting = []
    note("\(member.number) learns that it was removed")
    let spoken = refusal { () throws(MLSError) in
      try membership.change { group throws(MLSError) in _ = try group.encrypt([1], using: &keys) }
    }
    let exported = refusal { () throws(MLSError) in
      try membership.read { group throws(MLSError) in
        _ = try group.exportSecret(label: "simulated", context: [1], length: 32)
      }
    }
    try expect(
      spoken == .state(.removed) && exported == .state(.removed) && !membership.isActive,
      "\(member.number) was removed and can still speak")
  }
}
