import PalbeDTLS
import PalbeDataChannels
import PalbeLiveKit
import PalbeRTP
import PalbeUnits
import PalbeWire

/// Somebody in a room: who it is, what it may do, its transport, what it sends and what it receives.
final class Participant {
  let context: WorkerContext
  unowned let room: Room
  /// Its signaling; nil while it is lost and may be resumed.
  private(set) var connection: ConnectionID?
  /// When a session that lost its signaling or its transport ends, unless it is resumed before.
  private(set) var resumeDeadline: Instant?
  /// Until then a resumed client may restart ICE, even where its consent has expired.
  private(set) var restartDeadline = Instant.zero
  let sid: String
  var grant: AccessGrant
  let client: LiveKit.ClientInfo
  /// Every track of the others is subscribed without being asked for.
  let subscribesAutomatically: Bool
  /// The same for data tracks.
  let subscribesToDataTracks: Bool
  let joinedAt: Instant
  /// What it sends comes over this one, and with one connection so does everything else.
  let transport: PeerTransport
  /// What it receives goes over this one; the same unless the session has two connections.
  let downTransport: PeerTransport
  /// The transport that comes up first, and that the session lives with: a client of two connections may never publish.
  let primaryTransport: PeerTransport
  /// Our offers, where the session has two connections.
  var offers: SubscriberOffers?
  let uplink: Uplink
  let downlink = Downlink()
  /// What its link carries of that.
  private(set) lazy var link = LinkControl(participant: self)
  /// Videos that do not fit may be paused.
  let allowsPause: Bool
  var negotiation: Negotiation
  /// Who may receive its tracks, by its own will.
  var permission = SubscriptionPermission.everyone
  var name: String
  var metadata: String
  var attributes: [String: String]
  var state = LiveKit.ParticipantInfo.State.joined
  /// Rises with every change that is told to others.
  var version: UInt32 = 1
  private(set) var isClosed = false
  var lastSignalAt: Instant
  /// What it has asked for by signaling lately.
  var signals = WorkAccount()
  /// The earliest of this participant's timers.
  private(set) var deadline = Instant.distantFuture
  var nextReportAt = Instant.distantFuture
  /// When the present window of speech ends; distant while no levels come.
  var nextSpeechAt = Instant.distantFuture
  /// When its token is renewed.
  var nextTokenAt = Instant.distantFuture
  var quality = QualityMeter()
  var nextQualityAt = Instant.distantFuture
  /// The last of its numbered reliable packets.
  var dataSequence: UInt32 = 0
  /// Reliable packets for it, until its channel is open.
  var waitingData = WaitingData()
  var dataTracks = DataTracks()
  var dataBlobs = DataBlobs()
  /// What others were told last: the loudest of its tracks.
  var speechLevel: Float = 0
  /// It asked to be told of as a speaker, which then goes to everyone.
  var isSpeechSimulated = false
  /// The most that its videos may take, where it asked for that.
  var simulatedBandwidth: DataRate?
  var simulatedCuts = SimulatedCuts()

  init(
    _ details: JoinDetails, connection: ConnectionID, room: Room, context: WorkerContext, at now: Instant
  ) throws(DTLSError) {
    self.context = context
    self.room = room
    self.connection = connection
    grant = details.grant
    // Its room is made.
    grant.roomSettings = nil
    client = details.request.clientInfo ?? LiveKit.ClientInfo()
    subscribesAutomatically = details.request.connectionSettings?.autoSubscribe ?? false
    subscribesToDataTracks = details.request.connectionSettings?.autoSubscribeDataTrack ?? false
    allowsPause = details.request.connectionSettings?.subscriberAllowPause ?? false
    joinedAt = now
    lastSignalAt = now
    sid = LiveKit.Sid.participant(using: &context.random)
    transport = try PeerTransport(identity: context.identity, using: &context.random)
    if details.usesTwoConnections {
      downTransport = try PeerTransport(identity: context.identity, using: &context.random)
      offers = SubscriberOffers(sessionID: context.random.next() >> 2)
    } else {
      downTransport = transport
    }
    primaryTransport = details.grant.canSubscribe ? downTransport : transport
    uplink = Uplink(context: context)
    negotiation = Negotiation(sessionID: context.random.next() >> 2)
    name = grant.name
    metadata = grant.metadata
    attributes = grant.attributes
    if grant.canUpdateOwnMetadata {
      if TextLimits.accepts(metadata: details.request.metadata), !details.request.metadata.isEmpty {
        metadata = details.request.metadata
      }
      if TextLimits.accepts(attributes: details.request.participantAttributes) {
        attributes.merge(details.request.participantAttributes) { $1 }
      }
    }
  }

  var identity: String { grant.identity }

  /// By itself or on request.
  func wants(_ track: PublishedTrack) -> Bool { downlink.wish(for: track) ?? subscribesAutomatically }

  /// To its client a new session of an identity is the same participant (livekit-protocol 1.7, above 11).
  var knowsIdentities: Bool { client.protocol > 11 }

  /// Its one transport, or both.
  var transports: [PeerTransport] {
    transport === downTransport ? [transport] : [transport, downTransport]
  }

  var isConnected: Bool { primaryTransport.isConnected }

  func send(_ message: LiveKit.SignalResponse.Message) {
    guard !isClosed, let connection else { return }
    context.send(message, to: connection)
  }

  /// Already serialized, for what many get.
  func send(_ bytes: [UInt8]) {
    guard !isClosed, let connection else { return }
    context.events.append(.send(connection, bytes))
  }

  /// Its signaling is gone. What is sent meanwhile is lost: a resumed session begins with a full snapshot.
  func detach(until deadline: Instant) {
    connection = nil
    resumeDeadline = deadline
    wake(at: deadline)
  }

  /// Its signaling is back.
  func attach(_ new: ConnectionID, at now: Instant) {
    connection = new
    resumeDeadline = nil
    restartDeadline = now + context.configuration.restartTimeout
    wake(at: restartDeadline)
    lastSignalAt = now
    downlink.forgetRequests()
    wake(at: now + context.configuration.pingTimeout)
  }

  /// Makes the timers run at `instant` at the latest.
  func wake(at instant: Instant) {
    deadline = min(deadline, instant)
    context.wake(at: instant)
  }

  func forgetDeadline() { deadline = .distantFuture }

  /// Nothing is sent to it any more.
  func close(at now: Instant) {
    isClosed = true
    context.forget(link)
    link.close()
    for transport in transports {
      transport.close(at: now)
      if let peer = transport.data?.peer { context.ask(.discard(peer)) }
    }
    flushHandshake()
  }

  /// An SSRC that this transport does not use yet.
  func freshSSRC(using random: inout RandomSource) -> SSRC {
    while true {
      let ssrc = SSRC(UInt32(truncatingIfNeeded: random.next()))
      if ssrc.rawValue != 0, ssrc != uplink.localSSRC, !uplink.isKnown(ssrc), !downlink.isKnown(ssrc) {
        return ssrc
      }
    }
  }

  func flushHandshake() {
    flushHandshake(over: transport)
    if downTransport !== transport { flushHandshake(over: downTransport) }
  }

  private func flushHandshake(over transport: PeerTransport) {
    while let (bytes, destination) = transport.pollHandshake() {
      context.datagrams.append(bytes.span, to: destination)
    }
  }

  /// Sends what `write` appends as one protected RTCP compound. It is called in any case; nothing is sent while the
  /// transport is not up.
  func sendControl(over transport: PeerTransport, _ write: (inout ByteWriter) -> Void) {
    context.compound.bytes.removeAll(keepingCapacity: true)
    write(&context.compound)
    guard !context.compound.bytes.isEmpty, let remote = transport.remote,
      transport.protectRTCP(&context.compound)
    else { return }
    context.sendCompound(to: remote)
  }
}
