import PalbeDataChannels
import PalbeUnits

/// What the thread that owns SCTP reports.
extension SignalPlane {
  /// Begins SCTP where the transport is up and the client's description has it. We wait for the client's INIT.
  func openData(over transport: PeerTransport, of participant: Participant) {
    guard transport.isConnected, transport.data == nil, let parameters = transport.dataParameters else {
      return
    }
    let link = DataLink(peer: context.makePeer(), messageLimit: parameters.messageLimit)
    transport.data = link
    directory.insert(link, Directory.Endpoint(participant: participant, transport: transport))
    // A client of two connections sends over the channels it opens, and receives over ours.
    let opensHere = participant.offers != nil && transport === participant.downTransport
    let negotiated = participant.negotiatesChannels && !opensHere ? DataLabel.allCases.map(\.channel) : []
    context.ask(
      .open(link.peer, role: .passive, DataLink.configuration(parameters), negotiated: negotiated))
    guard opensHere else { return }
    for label in DataLabel.allCases { context.ask(.openChannel(link.peer, label.channel)) }
  }

  /// Hands on what DTLS has decrypted.
  func receiveData(over transport: PeerTransport) {
    while let bytes = transport.pollData() {
      guard let peer = transport.data?.peer else { continue }
      context.ask(.datagram(peer, bytes))
    }
  }

  func take(_ report: SCTPReport, at now: Instant) {
    guard let endpoint = directory.endpoint(of: report.peer), let link = endpoint.transport.data else {
      return
    }
    let participant = endpoint.participant
    switch report {
    case .transmit(_, let bytes):
      endpoint.transport.sendData(bytes, at: now)
      participant.flushHandshake()
    case .event(_, let event): take(event, of: link, endpoint, at: now)
    case .refused(_, let channel?, let error):
      guard case .bufferFull = error, link.label(of: channel) == .reliable else { return }
      remove(participant, .tooSlow, at: now)
    case .refused(_, nil, let error):
      context.log(.warning, "no data channel", participant.logFields + [("error", "\(error)")])
    }
  }

  private func take(
    _ event: SCTPEvent, of link: DataLink, _ endpoint: Directory.Endpoint, at now: Instant
  ) {
    let participant = endpoint.participant
    switch event {
    case .channelOpened(let channel, _):
      link.opened(channel)
      if endpoint.transport === participant.downTransport { participant.sendWaitingData() }
    case .channelClosed(let id): link.closed(id)
    case .message(let message):
      guard endpoint.transport === participant.transport, let label = link.label(of: message.channel) else {
        return
      }
      publish(message.bytes, label, of: participant, at: now)
    case .closed: forget(link, endpoint)
    case .aborted(let reason):
      forget(link, endpoint)
      // A client that closes its connection does this too, before its goodbye.
      if case .peer = reason { return }
      context.log(
        .info, "data channels failed", participant.logFields + [("reason", "\(reason)")])
      remove(participant, .dataFailed, at: now)
    case .connected, .dropped, .bufferedAmountLow: break
    }
  }

  private func forget(_ link: DataLink, _ endpoint: Directory.Endpoint) {
    endpoint.transport.data = nil
    directory.remove(link)
  }
}
