import CPalbeUSRSCTP
import PalbeUnits
import PalbeWire

extension SCTPAssociation {
  /// The channels that are open or being opened.
  public var channels: [DataChannel] {
    entries.values.filter { if case .closing = $0.phase { false } else { true } }.map(\.channel)
      .sorted { $0.id < $1.id }
  }

  // MARK: Opening

  /// Opens a channel in-band (RFC 8832). It can be called before the handshake is done. Messages can be sent
  /// at once; `channelOpened` follows when the peer has agreed.
  /// - Returns: its number: even for the active side, odd for the passive one.
  public func openChannel(_ channel: DataChannel, at now: Instant) throws(SCTPError) -> UInt16 {
    library.advance(to: now)
    try requireLiving()
    let longest = max(channel.label.utf8.count, channel.subprotocol.utf8.count)
    guard longest <= DataChannelControl.nameLimit else { throw .nameTooLong(count: longest) }
    let first = role == .active ? 0 : 1
    guard let id = stride(from: first, to: streamLimit, by: 2).first(where: { entries[UInt16($0)] == nil })
    else { throw .noStreamLeft }
    var channel = channel
    channel.id = UInt16(id)
    entries[channel.id] = Entry(channel: channel, phase: .opening)
    control.append((channel.id, DataChannelControl.open(channel).encoded))
    progress()
    return channel.id
  }

  /// Adds a channel that both sides agreed on elsewhere, with the number in `channel` (LiveKit: 100, 101,
  /// 102). It can be called before the handshake is done; `channelOpened` follows then.
  public func addNegotiatedChannel(_ channel: DataChannel) throws(SCTPError) {
    try requireLiving()
    guard Int(channel.id) < streamLimit, entries[channel.id] == nil else {
      throw .channelUnavailable(id: channel.id)
    }
    entries[channel.id] = Entry(channel: channel, phase: .open)
    if state == .connected { emit(.channelOpened(channel, byPeer: false)) }
  }

  /// The handshake is done: negotiated channels are open, and those for which no stream is there are not.
  func becameConnected() {
    for id in entries.keys.sorted() {
      guard let entry = entries[id] else { continue }
      if Int(id) >= streamLimit {
        entries[id] = nil
        control.removeAll { $0.id == id }
        emit(.channelClosed(id: id))
      } else if case .open = entry.phase {
        emit(.channelOpened(entry.channel, byPeer: false))
      }
    }
  }

  // MARK: Sending

  /// Sends a message on an open channel. Nothing of it is taken when this throws.
  public func send(
    _ message: Span<UInt8>, kind: MessageKind, channel id: UInt16, at now: Instant
  ) throws(SCTPError) {
    try send(SCTPMessage(channel: id, kind: kind, bytes: [UInt8](message)), at: now)
  }

  /// Sends a message on its channel, which is open. Nothing of it is taken when this throws.
  public func send(_ message: SCTPMessage, at now: Instant) throws(SCTPError) {
    library.advance(to: now)
    guard state == .connected else { throw .notConnected }
    let id = message.channel
    guard let entry = entries[id] else { throw .noSuchChannel(id: id) }
    switch entry.phase {
    case .open: break
    case .opening:
      // Its DATA_CHANNEL_OPEN must be first.
      guard control.isEmpty else { throw .bufferFull(buffered: bufferedAmount) }
    case .closing: throw .noSuchChannel(id: id)
    }
    guard message.bytes.count <= configuration.maximumMessageSize else {
      throw .messageTooLong(count: message.bytes.count, limit: configuration.maximumMessageSize)
    }
    let isReliable = entry.channel.reliability == .reliable
    if !isReliable, bufferedAmount > configuration.unreliableLimit {
      isAboveThreshold = true
      throw .bufferFull(buffered: bufferedAmount)
    }
    let code = isReliable && !backlog.isEmpty ? EWOULDBLOCK : pass(message, of: entry)
    switch code {
    case 0:
      if bufferedAmount > configuration.lowThreshold { isAboveThreshold = true }
    case EWOULDBLOCK:
      isAboveThreshold = true
      guard isReliable, backlogBytes + message.bytes.count <= configuration.backlogSize else {
        throw .bufferFull(buffered: bufferedAmount)
      }
      backlog.append(message)
      backlogBytes += message.bytes.count
    case EMSGSIZE:
      throw .messageTooLong(count: message.bytes.count, limit: configuration.maximumMessageSize)
    default:
      throw .notConnected
    }
  }

  /// 0, or an error number.
  private func pass(_ message: SCTPMessage, of entry: Entry) -> Int32? {
    let isOrdered = if case .opening = entry.phase { true } else { entry.channel.isOrdered }
    // SCTP has no empty messages (RFC 8831 §6.6).
    let placeholder: [UInt8] = [0]
    let isEmpty = message.bytes.isEmpty
    let payloadProtocol =
      switch message.kind {
      case .text: isEmpty ? PayloadProtocol.emptyText : PayloadProtocol.text
      case .binary: isEmpty ? PayloadProtocol.emptyBinary : PayloadProtocol.binary
      }
    return withSocket {
      $0.send(
        isEmpty ? placeholder.span : message.bytes.span, association: association, stream: message.channel,
        kind: payloadProtocol, isOrdered: isOrdered, reliability: entry.channel.reliability)
    }
  }

  /// Sends what waits behind a full send buffer, as far as there is room now.
  private func sendBacklog() {
    var sent = 0
    for message in backlog {
      if let entry = entries[message.channel] {
        if case .closing = entry.phase {
        } else if pass(message, of: entry) == EWOULDBLOCK {
          break
        }
      }
      sent += 1
      backlogBytes -= message.bytes.count
    }
    backlog.removeFirst(sent)
  }

  /// Bytes of all channels that the peer has not acknowledged, a few more for each packet.
  public var bufferedAmount: Int {
    guard state == .connected || state == .closing else { return 0 }
    return backlogBytes + (withSocket { $0.buffered(association: association) } ?? 0)
  }

  /// Sends what waited for room, and says when there is room again.
  func progress() {
    guard state == .connected else { return }
    while let (id, bytes) = control.first {
      let code = withSocket {
        $0.send(
          bytes.span, association: association, stream: id, kind: PayloadProtocol.control, isOrdered: true,
          reliability: .reliable)
      }
      if code == EWOULDBLOCK { break }
      control.removeFirst()
    }
    if !backlog.isEmpty { sendBacklog() }
    guard isAboveThreshold else { return }
    let buffered = bufferedAmount
    if buffered <= configuration.lowThreshold {
      isAboveThreshold = false
      emit(.bufferedAmountLow(buffered: buffered))
    }
  }

  // MARK: Closing

  /// Closes a channel: what was sent still arrives, then both sides' streams are reset (RFC 8831 §6.7).
  public func closeChannel(_ id: UInt16, at now: Instant) throws(SCTPError) {
    library.advance(to: now)
    guard let entry = entries[id] else { throw .noSuchChannel(id: id) }
    if case .closing = entry.phase { throw .noSuchChannel(id: id) }
    guard state == .connected else {
      entries[id] = nil
      control.removeAll { $0.id == id }
      return emit(.channelClosed(id: id))
    }
    entries[id]?.phase = .closing(outgoingDone: false, incomingDone: false)
    resetOutgoing(id)
  }

  private func resetOutgoing(_ id: UInt16) {
    control.removeAll { $0.id == id }
    let code = withSocket { $0.resetStream(id, association: association) }
    // A peer without RFC 6525: there is nothing to wait for.
    if code != 0, entries[id] != nil {
      entries[id] = nil
      emit(.channelClosed(id: id))
    }
  }

  /// A stream was reset in one direction, or the peer would not have it.
  func streamReset(_ id: UInt16, flags: UInt16) {
    let isRefused = flags & UInt16(SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED) != 0
    let isIncoming = flags & UInt16(SCTP_STREAM_RESET_INCOMING_SSN) != 0
    guard let entry = entries[id] else { return }
    switch entry.phase {
    case .opening, .open:
      guard isIncoming, !isRefused else { return }
      // The peer closes: so do we.
      entries[id]?.phase = .closing(outgoingDone: false, incomingDone: true)
      resetOutgoing(id)
    case .closing(let outgoingDone, let incomingDone):
      let out = outgoingDone || !isIncoming
      let incoming = incomingDone || isIncoming || isRefused
      entries[id]?.phase = .closing(outgoingDone: out, incomingDone: incoming)
      if out, incoming {
        entries[id] = nil
        emit(.channelClosed(id: id))
      }
    }
  }

  // MARK: Receiving

  /// A whole message, in the first `count` bytes of the scratch buffer.
  func received(count: Int, stream: UInt16, kind: UInt32) {
    if kind == PayloadProtocol.control {
      // Also for a message that is too long: it is no control message then.
      let limit = DataChannelControl.messageLimit + 1
      return receivedControl(Array(library.scratch[..<min(count, limit)]), id: stream)
    }
    guard count <= configuration.maximumMessageSize else {
      return emit(.dropped(channel: stream, .messageTooLong(count: count)))
    }
    let messageKind: MessageKind
    switch kind {
    case PayloadProtocol.text, PayloadProtocol.emptyText: messageKind = .text
    case PayloadProtocol.binary, PayloadProtocol.emptyBinary: messageKind = .binary
    default: return emit(.dropped(channel: stream, .unknownKind(kind)))
    }
    let isEmpty = kind == PayloadProtocol.emptyText || kind == PayloadProtocol.emptyBinary
    guard let entry = entries[stream] else { return emit(.dropped(channel: stream, .noChannel)) }
    // A message proves that the peer has the channel.
    if case .opening = entry.phase { opened(entry.channel) }
    let bytes = isEmpty ? [] : Array(library.scratch[..<count])
    emit(.message(SCTPMessage(channel: stream, kind: messageKind, bytes: bytes)))
  }

  private func opened(_ channel: DataChannel) {
    entries[channel.id]?.phase = .open
    emit(.channelOpened(channel, byPeer: false))
  }

  private func receivedControl(_ bytes: [UInt8], id: UInt16) {
    let parsed: DataChannelControl
    do throws(WireError) {
      parsed = try DataChannelControl(bytes.span, id: id)
    } catch {
      return emit(.dropped(channel: id, .badControl))
    }
    if case .open = parsed, case .closing(_, incomingDone: true) = entries[id]?.phase {
      // The peer has seen our reset, or it would not use the number again; its answer to it is still on the
      // way.
      entries[id] = nil
      emit(.channelClosed(id: id))
    }
    switch (parsed, entries[id]?.phase) {
    case (.acknowledgement, .opening):
      if let channel = entries[id]?.channel { opened(channel) }
    case (.acknowledgement, .open), (.acknowledgement, .closing): break
    case (.open(let channel), nil):
      // The number tells who opened it (RFC 8832 §6).
      guard Int(id) < streamLimit, id & 1 == (role == .active ? 1 : 0) else {
        return emit(.dropped(channel: id, .badControl))
      }
      entries[id] = Entry(channel: channel, phase: .open)
      control.append((id, DataChannelControl.acknowledgement.encoded))
      emit(.channelOpened(channel, byPeer: true))
    case (.acknowledgement, nil), (.open, .some):
      emit(.dropped(channel: id, .badControl))
    }
  }

  private func requireLiving() throws(SCTPError) {
    switch state {
    case .connecting, .connected: return
    case .closing, .closed, .aborted: throw .notConnected
    }
  }
}
