import PalbeDataChannels
import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// What clients say to each other: `DataPacket`s, one a message. Source: livekit-protocol, data channels.
extension SignalPlane {
  /// More inside one message is no packet of a client's.
  private static let limits = ProtobufLimits(depth: 8, messages: 4_096)

  /// Forwards a participant's message to whom it is for.
  func publish(_ bytes: [UInt8], _ label: DataLabel, of participant: Participant, at now: Instant) {
    guard participant.grant.canPublishData else { return }
    guard label != .track else { return forwardDataTrack(bytes, of: participant) }
    var packet: LiveKit.DataPacket
    do throws(ProtobufError) {
      packet = try LiveKit.DataPacket(serialized: bytes, limits: Self.limits)
    } catch {
      return context.log(.debug, "unreadable data packet", participant.logFields)
    }
    guard packet.isForwarded else { return }
    if label == .reliable, packet.sequence > 0 {
      // A client that resumes sends again what it does not know to have arrived.
      guard packet.sequence > participant.dataSequence else { return }
      participant.dataSequence = packet.sequence
    }
    if takeAnswer(packet, of: participant) { return }
    // What clients write there is not always true; the channel is.
    packet.kind = label == .reliable ? .reliable : .lossy
    packet.name(sender: participant)
    participant.room.deliver(packet, label, from: participant, at: now)
  }

  /// A client that resumed gets again what it has not seen: SCTP may have ended between.
  func repeatData(_ states: [LiveKit.DataChannelReceiveState], to participant: Participant, at now: Instant) {
    var seen: [String: UInt32] = [:]
    for state in states.prefix(context.configuration.maxParticipantsPerRoom) {
      seen[state.publisherSid] = state.lastSeq
    }
    participant.room.dataHistory.expire(at: now)
    for entry in participant.room.dataHistory.entries where entry.sender != participant.sid {
      guard entry.at >= participant.joinedAt, entry.destinations.contains(participant),
        entry.sequence > seen[entry.sender, default: 0]
      else { continue }
      participant.sendData(entry.bytes, .reliable)
    }
  }
}

extension LiveKit.DataPacket {
  /// Only servers speak of speakers.
  fileprivate var isForwarded: Bool {
    switch value {
    case nil: !unknownFields.isEmpty
    case .speaker: false
    default: true
    }
  }

  fileprivate var isMetrics: Bool { if case .metrics = value { true } else { false } }

  /// Says whose it is, whatever it said itself. A hidden participant has no name.
  fileprivate mutating func name(sender: Participant) {
    participantSid = sender.grant.hidden ? "" : sender.sid
    participantIdentity = sender.grant.hidden ? "" : sender.identity
    guard case .user(var user) = value else { return }
    user.participantSid = participantSid
    user.participantIdentity = participantIdentity
    // Older clients read and write the destinations here.
    if destinationIdentities.isEmpty {
      destinationIdentities = user.destinationIdentities
    } else {
      user.destinationIdentities = destinationIdentities
    }
    value = .user(user)
  }
}

/// Whom a packet is for.
enum DataDestinations {
  case everyone
  case some(identities: Set<String>, sids: Set<String>)

  init(_ packet: LiveKit.DataPacket) {
    let sids = packet.value?.user?.destinationSids ?? []
    if packet.destinationIdentities.isEmpty, sids.isEmpty {
      self = .everyone
    } else {
      self = .some(identities: Set(packet.destinationIdentities), sids: Set(sids))
    }
  }

  func contains(_ participant: Participant) -> Bool {
    switch self {
    case .everyone: true
    case .some(let identities, let sids):
      identities.contains(participant.identity) || sids.contains(participant.sid)
    }
  }
}

extension Room {
  /// Sends a packet to everyone it is for except its sender, who is nil for an operator.
  func deliver(
    _ packet: LiveKit.DataPacket, _ label: DataLabel, from sender: Participant?, at now: Instant
  ) {
    let bytes = packet.serialized()
    let destinations = DataDestinations(packet)
    var channels: [SCTPDestination] = []
    for member in participants where member !== sender && destinations.contains(member) {
      guard !packet.isMetrics || member.grant.canSubscribeMetrics else { continue }
      if let channel = member.dataChannel(label, for: bytes) { channels.append(channel) }
    }
    if !channels.isEmpty {
      context.ask(.send(channels, .binary, bytes, from: sender?.transport.data?.peer))
    }
    guard let sender, label == .reliable, packet.sequence > 0, !packet.isMetrics else { return }
    dataHistory.append(
      DataHistory.Entry(
        sender: sender.sid, sequence: packet.sequence, destinations: destinations, bytes: bytes, at: now))
  }
}

extension Participant {
  /// Where the message goes. Nil when it waits until its channel is open, or is lost.
  func dataChannel(_ label: DataLabel, for bytes: [UInt8]) -> SCTPDestination? {
    if let link = downTransport.data, let channel = link.destination(label) {
      return bytes.count <= link.messageLimit ? channel : nil
    }
    if label == .reliable, expectsData { waitingData.append(bytes) }
    return nil
  }

  func sendData(_ bytes: [UInt8], _ label: DataLabel) {
    guard let channel = dataChannel(label, for: bytes) else { return }
    context.ask(.send([channel], .binary, bytes))
  }

  /// The channel is open now.
  func sendWaitingData() {
    guard downTransport.data?.destination(.reliable) != nil else { return }
    for bytes in waitingData.takeAll() { sendData(bytes, .reliable) }
  }

  /// False for a client whose description has no data channels.
  var expectsData: Bool {
    let hasDescription = offers == nil ? negotiation.offer != nil : downTransport.expectedFingerprint != nil
    return !hasDescription || downTransport.dataParameters != nil
  }
}

/// Messages for a client whose channel is not open yet; the oldest give way.
struct WaitingData {
  static let countLimit = 512
  static let byteLimit = 1 << 20

  private var messages: [[UInt8]] = []
  private var byteCount = 0

  mutating func append(_ bytes: [UInt8]) {
    messages.append(bytes)
    byteCount += bytes.count
    var gone = 0
    while messages.count - gone > Self.countLimit || byteCount > Self.byteLimit {
      byteCount -= messages[gone].count
      gone += 1
    }
    messages.removeFirst(gone)
  }

  mutating func takeAll() -> [[UInt8]] {
    let all = messages
    self = WaitingData()
    return all
  }
}

/// The last reliable packets of a room, for those who resume.
struct DataHistory {
  struct Entry {
    let sender: String
    let sequence: UInt32
    let destinations: DataDestinations
    let bytes: [UInt8]
    let at: Instant
  }

  /// Longer than this nobody is behind whose SCTP is alive.
  static let age = TimeDelta.seconds(2)
  static let countLimit = 4_096
  static let byteLimit = 1 << 18

  private var kept: [Entry?] = []
  /// Those before it are gone.
  private var head = 0
  private var byteCount = 0

  var entries: some Sequence<Entry> { kept[head...].lazy.compactMap { $0 } }

  mutating func append(_ entry: Entry) {
    kept.append(entry)
    byteCount += entry.bytes.count
    expire(at: entry.at)
  }

  mutating func expire(at now: Instant) {
    while head < kept.count, let first = kept[head],
      now - first.at > Self.age || kept.count - head > Self.countLimit || byteCount > Self.byteLimit
    {
      byteCount -= first.bytes.count
      kept[head] = nil
      head += 1
    }
    guard head > kept.count / 2 else { return }
    kept.removeFirst(head)
    head = 0
  }
}
