import PalbeMLSMessages
import PalbeUnits

/// Messages into the log and the queues, and out of the queues again.
extension Backend {
  mutating func send(
    _ message: OutgoingMessage, to id: GroupID, by device: DeviceRow, at now: ServerTime
  ) throws(BackendFailure) -> BackendResponse {
    guard message.blob.count <= limits.messageByteCount else {
      throw .messageTooLarge(limit: limits.messageByteCount)
    }
    var group = try membership(of: device, in: id).group
    // A repetition is answered as it was, whatever happened to the group since. Its bytes may be others: a client that had no
    // answer may have to encrypt the message anew, for a group that was founded again or after it failed, and it is there once.
    if !message.isEphemeral, let first = try store.receipt(of: message.id, from: device.id) {
      guard first.group == id else { throw .invalidRequest(.because(.messageTaken)) }
      return .accepted(sequence: first.sequence, epoch: first.epoch, isRepeated: true)
    }
    let leaf = try liveLeaf(of: device.id, in: id)
    let header = try MessageHeader(message.blob, or: .blobForm)
    guard header.format == .privateMessage, header.content != .commit, header.group == group.mlsID,
      header.epoch == message.epoch
    else { throw .invalidRequest(.because(.blobForm)) }
    let isProposal = header.content == .proposal
    let past = isProposal ? 0 : limits.acceptedPastEpochs
    guard message.epoch <= group.epoch, group.epoch - message.epoch <= past, message.epoch >= leaf.addedEpoch
    else { throw .staleEpoch(head: group.epoch) }
    if message.isEphemeral {
      guard !isProposal else { throw .invalidRequest(.because(.ephemeralProposal)) }
      effects.append(
        .publish(
          .conversation(id), .ephemeral(sender: device.id, epoch: message.epoch, blob: message.blob)))
      return .accepted(sequence: 0, epoch: message.epoch, isRepeated: false)
    }

    group.headSequence += 1
    let wakes = message.wakes && !isProposal
    if isProposal { group.lastProposal = group.headSequence }
    if wakes { group.countedMessages += 1 }
    let row = LogView(
      sequence: group.headSequence, epoch: message.epoch, generation: group.generation,
      kind: isProposal ? .proposal : .application, sender: device.id, clientID: message.id,
      blob: message.blob, at: now.wall)
    guard try store.append(row, countedMessages: group.countedMessages, to: id) else {
      throw .unavailable(.corrupted)
    }
    try store.update(group)
    let queueID = try store.nextQueueID(at: now.wall)
    let readers = try store.enqueue(
      .message(id, group.headSequence), id: queueID, wakes: wakes, toLeavesOf: id, except: device.id)
    effects.append(.queued(readers, queueID, wakes ? WakeReason(group: id, kind: .message) : nil))
    return .accepted(sequence: group.headSequence, epoch: message.epoch, isRepeated: false)
  }

  // MARK: Queue

  mutating func fetchQueue(
    of device: DeviceRow, after: QueueID, limit: Int, connection: ConnectionID?
  ) throws(BackendFailure) -> BackendResponse {
    let count = try pageCount(limit)
    try checkConsumer(connection, of: device.id)
    let (rows, hasMore) = try store.queue(
      of: device.id, after: after, limit: count, byteLimit: limits.pageByteCount)
    return .queue(rows, hasMore: hasMore)
  }

  mutating func acknowledge(
    _ rows: Acknowledgement, of device: DeviceRow, connection: ConnectionID?
  ) throws(BackendFailure) -> BackendResponse {
    try checkConsumer(connection, of: device.id)
    if case .listed(let ids) = rows, ids.count > 10 * limits.pageCount { throw .invalidRequest(.tooMany) }
    let removed = try store.acknowledge(rows, of: device.id)
    effects.append(.acknowledged(device.id, rows))
    for (group, sequence) in removed.delivered.sorted(by: { $0.key < $1.key }) {
      guard try store.raiseDelivered(device.id, of: group, to: sequence) else { continue }
      // Who left has nothing more to tell.
      guard let member = try store.member(device.user, of: group), member.isCurrent else { continue }
      effects.append(.publish(.conversation(group), .delivered(device.user, device.id, sequence)))
    }
    return .acknowledged(count: removed.count)
  }

  /// A connection consumes the queue only while it is the newest that subscribed to the device.
  private func checkConsumer(_ connection: ConnectionID?, of device: DeviceID) throws(BackendFailure) {
    guard let connection else { return }
    var consumer = live.consumers[device]
    // A request before it in this batch may have taken over.
    for case .subscribedDevice(let newer, let caller, _) in effects where caller.device == device {
      consumer = newer
    }
    guard consumer == connection else { throw .superseded }
  }
}
