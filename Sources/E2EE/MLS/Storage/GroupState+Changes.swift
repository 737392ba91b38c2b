import PalbeMLSMessages

/// Which records differ between two states.
extension GroupState {
  /// Everything, for a group that is not stored yet.
  func writeAll(_ client: MLSClient, _ names: RecordNames, into transaction: inout MLSTransaction) {
    transaction.write(CoreRecord(self, client: client).record, names.core)
    transaction.write(PreSharedKeysRecord(self).record, names.preSharedKeys)
    if let newClient { transaction.write(newClient.stored, names.newClient) }
    for page in seen.pages { transaction.write(SeenPageRecord(page).record, names.seen(page)) }
    if let pending { transaction.write(PendingRecord(pending).record, names.pending) }
    writeProposals(after: 0, names, into: &transaction)
    for part in parts { part.writeAll(names.epoch(part.id), into: &transaction) }
  }

  /// What changed since `before`, whose records storage has.
  func writeChanges(
    since before: GroupState, _ client: MLSClient, _ names: RecordNames,
    into transaction: inout MLSTransaction
  ) {
    Self.write(
      CoreRecord(before, client: client), CoreRecord(self, client: client), names.core, into: &transaction)
    // What schemas 1 and 2 kept of the last epoch.
    if epoch.id != before.epoch.id { transaction.erase(names.ownCommit) }
    if !Self.areSame(preSharedKeys, before.preSharedKeys)
      || !Self.areSame(resumptionSecrets, before.resumptionSecrets)
    {
      transaction.write(PreSharedKeysRecord(self).record, names.preSharedKeys)
    }
    if let newClient, newClient !== before.newClient {
      transaction.write(newClient.stored, names.newClient)
    }
    writeSeen(since: before.seen, names, into: &transaction)
    if pending?.message != before.pending?.message {
      if let pending {
        transaction.write(PendingRecord(pending).record, names.pending)
      } else {
        transaction.erase(names.pending)
      }
    }
    writeChangedProposals(since: before, names, into: &transaction)

    let old = Dictionary(before.parts.map { ($0.id, $0) }) { first, _ in first }
    let new = parts
    let kept = Set(new.map(\.id))
    for id in old.keys where !kept.contains(id) { transaction.eraseAll(under: names.epoch(id).all) }
    for part in new {
      if let stored = old[part.id] {
        part.writeChanges(since: stored, names.epoch(part.id), into: &transaction)
      } else {
        part.writeAll(names.epoch(part.id), into: &transaction)
      }
    }
  }

  private static func areSame<Name>(_ left: [Name: Secret], _ right: [Name: Secret]) -> Bool {
    left.count == right.count && left.allSatisfy { right[$0.key] === $0.value }
  }

  private func writeSeen(
    since before: SeenMessages, _ names: RecordNames, into transaction: inout MLSTransaction
  ) {
    if seen.pages.isEmpty, !before.pages.isEmpty { return transaction.eraseAll(under: names.seen) }
    // A page only grows, and only the last one.
    let last = before.pages.last
    for page in seen.pages.reversed() {
      if let last, page.number < last.number || page == last { break }
      transaction.write(SeenPageRecord(page).record, names.seen(page))
    }
  }

  /// Writes a record if its bytes changed.
  fileprivate static func write(
    _ before: some StoredRecord, _ after: some StoredRecord, _ key: MLSRecordKey,
    into transaction: inout MLSTransaction
  ) {
    let record = after.record
    if !MLSRecord.isEqual(before.record, record) { transaction.write(record, key) }
  }

  // MARK: Proposals

  private func writeProposals(
    after place: Int, _ names: RecordNames, into transaction: inout MLSTransaction
  ) {
    for place in place..<proposals.all.count {
      transaction.write(ProposalRecord(proposals.all[place], in: proposals).record, names.proposal(place))
    }
  }

  private func writeChangedProposals(
    since before: GroupState, _ names: RecordNames, into transaction: inout MLSTransaction
  ) {
    let old = before.proposals.all
    let new = proposals.all
    var same = 0
    while same < min(old.count, new.count), old[same].reference == new[same].reference { same += 1 }
    for place in same..<max(same, old.count) { transaction.erase(names.proposal(place)) }
    writeProposals(after: same, names, into: &transaction)
  }

  // MARK: Epochs

  /// The epochs that storage keeps: the current one, past ones, and the one of a pending commit.
  private var parts: [EpochPart] {
    var result = [EpochPart(epoch)]
    for epoch in past { result.append(EpochPart(epoch)) }
    if let pending { result.append(EpochPart(pending.staged.epoch)) }
    return result
  }
}

/// An epoch as storage sees it.
private struct EpochPart {
  let id: EpochID
  /// Nil once it is past.
  let secrets: EpochRecord?
  let contextBytes: [UInt8]
  let tree: RatchetTree
  let keys: MessageKeys

  init(_ epoch: EpochState) {
    id = epoch.id
    secrets = EpochRecord(epoch)
    contextBytes = epoch.contextBytes
    tree = epoch.tree
    keys = epoch.keys
  }

  init(_ epoch: PastEpoch) {
    id = epoch.id
    secrets = nil
    contextBytes = epoch.contextBytes
    tree = epoch.tree
    keys = epoch.keys
  }

  func writeAll(_ names: RecordNames.EpochNames, into transaction: inout MLSTransaction) {
    if let secrets { transaction.write(secrets.record, names.secrets) }
    transaction.write(
      MessageKeysRecord(contextBytes: contextBytes, keys: keys).record, names.messageKeys)
    transaction.write(TreeRecord(tree).record, names.tree)
    for (node, secret) in keys.tree.nodes { transaction.write(NodeRecord(secret).record, names.node(node)) }
    for (leaf, ratchets) in keys.tree.ratchets {
      write(leaf, ratchets, since: nil, names, into: &transaction)
    }
  }

  func writeChanges(
    since before: EpochPart, _ names: RecordNames.EpochNames, into transaction: inout MLSTransaction
  ) {
    switch (before.secrets, secrets) {
    case (let old?, let new?): GroupState.write(old, new, names.secrets, into: &transaction)
    case (.some, nil): transaction.erase(names.secrets)
    case (nil, let new?): transaction.write(new.record, names.secrets)
    case (nil, nil): break
    }
    for node in keys.tree.changedNodes {
      if let secret = keys.tree.nodes[node] {
        transaction.write(NodeRecord(secret).record, names.node(node))
      } else {
        transaction.erase(names.node(node))
      }
    }
    for leaf in keys.tree.changedRatchets {
      guard let ratchets = keys.tree.ratchets[leaf] else { continue }
      write(leaf, ratchets, since: before.keys.tree.ratchets[leaf], names, into: &transaction)
    }
  }

  private func write(
    _ leaf: LeafIndex, _ ratchets: SecretTree.Ratchets, since before: SecretTree.Ratchets?,
    _ names: RecordNames.EpochNames, into transaction: inout MLSTransaction
  ) {
    write(
      ratchets.handshake, since: before?.handshake, RatchetID(leaf: leaf, isApplication: false), names,
      into: &transaction)
    write(
      ratchets.application, since: before?.application, RatchetID(leaf: leaf, isApplication: true), names,
      into: &transaction)
  }

  private func write(
    _ ratchet: HashRatchet, since before: HashRatchet?, _ id: RatchetID, _ names: RecordNames.EpochNames,
    into transaction: inout MLSTransaction
  ) {
    if before?.secret !== ratchet.secret {
      transaction.write(RatchetRecord(ratchet).record, names.ratchet(id))
    }
    for (generation, item) in ratchet.skipped
    where before?.skipped[generation]?.storedAt != item.storedAt {
      transaction.write(SkippedKeyRecord(item).record, names.skipped(id, generation))
    }
    if let before {
      for generation in before.skipped.keys where ratchet.skipped[generation] == nil {
        transaction.erase(names.skipped(id, generation))
      }
    }
  }
}
