public import PalbeDataChannels
public import PalbeLiveKit
public import PalbeUnits

/// One signaling WebSocket. The shell numbers them; a number is never reused in a process.
public struct ConnectionID: Hashable, Sendable {
  public var rawValue: UInt64
  public init(_ rawValue: UInt64) { self.rawValue = rawValue }
}

/// What an access token allows (LiveKit's `video` grant), already verified by the shell.
public struct AccessGrant: Sendable, Equatable {
  public var room: String
  /// 1 to 256 bytes of UTF-8.
  public var identity: String
  public var name = ""
  public var metadata = ""
  public var attributes: [String: String] = [:]
  public var canPublish = true
  public var canSubscribe = true
  public var canPublishData = true
  public var canUpdateOwnMetadata = false
  /// Gets what others measure about their calls.
  public var canSubscribeMetrics = false
  /// Lower-case LiveKit source names; empty means every source.
  public var canPublishSources: [String] = []
  /// A hidden participant is announced to nobody.
  public var hidden = false
  /// What it is, beside a person: an agent, a recorder, somebody on the telephone.
  public var kind = LiveKit.ParticipantInfo.Kind.standard
  public var kindDetails: [LiveKit.ParticipantInfo.KindDetail] = []
  /// It records, so it receives what is published whatever the publishers say.
  public var isRecorder = false
  /// Only told to others.
  public var isAgent = false
  public var canManageAgentSession = false
  /// How the room is made, if this participant makes it; its name does not count.
  public var roomSettings: RoomSettings?
  /// What this participant publishes must be encrypted end to end, and so must its room's tracks if it makes the room.
  public var requiresE2EE = false

  public init(room: String, identity: String) {
    self.room = room
    self.identity = identity
  }
}

/// A participant that the shell let in: the WebSocket is accepted, nothing was sent on it yet.
public struct JoinDetails: Sendable {
  public var grant: AccessGrant
  /// The decoded `join_request` of `/rtc/v1`.
  public var request: LiveKit.JoinRequest
  /// The older protocol: the client offers on one connection what it sends, the worker on another what it receives.
  public var usesTwoConnections = false
  public init(grant: AccessGrant, request: LiveKit.JoinRequest) {
    self.grant = grant
    self.request = request
  }
}

/// What the shell tells a worker.
public enum SFUInput: Sendable {
  case join(ConnectionID, JoinDetails)
  /// One binary WebSocket message, not decoded yet.
  case signal(ConnectionID, [UInt8])
  /// The WebSocket is gone.
  case closed(ConnectionID)
  /// A TCP connection that datagrams came from has ended.
  case disconnected(SocketAddress)
  /// An operator's command; its answer is an event, which may come later.
  case command(CommandID, RoomCommand)
  /// What the thread that owns SCTP has to say to one of this worker's peers.
  case sctp(SCTPReport)
  /// From now on nobody makes a room; those that are there go on, and are joined.
  case drain
  /// Be like this from now on; what only counts when a worker, a room or a participant begins counts for the next one. The
  /// candidates and the number stay.
  case reconfigure(SFUConfiguration)
  /// Tell every participant to leave (SERVER_SHUTDOWN) and to come back, and close.
  case shutDown
}

/// What a worker asks of the shell.
public enum SFUEvent: Sendable {
  /// Send one binary WebSocket message.
  case send(ConnectionID, [UInt8])
  /// Close the WebSocket after what was sent before.
  case close(ConnectionID)
  /// What came of a command.
  case answer(CommandID, RoomAnswer)
  /// Ask this of the thread that owns SCTP. What it does not take is answered with `SCTPReport.refused`.
  case sctp(SCTPCommand)
  /// Something to tell by webhook.
  case notice(RoomNotice)
  /// The participant's token should be renewed: mint one for the grant and send it (`refresh_token`).
  case refreshToken(ConnectionID, AccessGrant)
  /// Something an operator would want in the log; never a secret.
  case log(SFULogRecord)
}

/// A log line without secrets: ids, counts and reasons.
public struct SFULogRecord: Sendable, Equatable {
  /// How much an operator should care.
  public enum Level: String, Sendable { case debug, info, warning }
  public var level: Level
  /// A short sentence in the field's words, such as "participant joined".
  public var message: String
  /// Names and values, in order.
  public var fields: [(name: String, value: String)]
  public init(_ level: Level, _ message: String, _ fields: [(name: String, value: String)] = []) {
    self.level = level
    self.message = message
    self.fields = fields
  }
  public static func == (left: SFULogRecord, right: SFULogRecord) -> Bool {
    left.level == right.level && left.message == right.message
      && left.fields.elementsEqual(right.fields) { $0.name == $1.name && $0.value == $1.value }
  }
}

/// How a worker behaves.
public struct SFUConfiguration: Sendable {
  /// The host candidates that answers carry: this worker's UDP socket and TCP port, one each per local address.
  public var candidates: [SocketAddress]
  /// Names this worker's peers to the thread that owns SCTP; another for each worker of a process.
  public var number = 0
  /// Shown to clients as the server's version; empty when there is nothing to tell.
  public var serverVersion = ""
  /// STUN and TURN servers for clients, the same for all.
  public var iceServers: [LiveKit.ICEServer] = []
  /// TURN servers for which each participant gets credentials of its own.
  public var turnServers: [TURNServer] = []
  /// Seconds between a client's pings, and after how many without one it is dropped.
  public var pingInterval = TimeDelta.seconds(5)
  public var pingTimeout = TimeDelta.seconds(15)
  /// A participant whose transport is not up this long after its join is removed.
  public var connectTimeout = TimeDelta.seconds(60)
  /// Signaling that is lost while media flows may be resumed for this long.
  public var resumeTimeout = TimeDelta.seconds(60)
  /// A client without signaling is taken for gone when its checks stop for this long: they come every 2.5 s.
  public var silenceTimeout = TimeDelta.milliseconds(7_500)
  /// A client whose consent expired is told to resume, and has this long to come back.
  public var consentGrace = TimeDelta.seconds(5)
  /// A client that resumed restarts ICE within this.
  public var restartTimeout = TimeDelta.seconds(15)
  /// A room that nobody made is made by the first who joins; else who joins it is refused.
  public var createsRooms = true
  /// A room that was made and that nobody has joined yet is dropped after this long.
  public var emptyTimeout = TimeDelta.seconds(300)
  /// A room is dropped this long after its last participant left.
  public var departureTimeout = TimeDelta.seconds(20)
  /// Tracks that are not encrypted end to end are refused, in every room.
  public var requiresE2EE = false
  /// The codecs that tracks may be published in, as MIME types in lower case; nil: all that are forwarded.
  public var enabledCodecs: Set<String>?
  /// An operator may unmute a track for its publisher.
  public var allowsRemoteUnmute = false
  /// A participant's token is renewed this often, so that it can resume after its first one expired.
  public var tokenInterval = TimeDelta.seconds(300)
  /// What a subscriber's link carries decides what it gets, and when. False sends all that it wants at once.
  public var controlsCongestion = true
  /// Who speaks is told by the levels that clients send in the clear. False ignores them.
  public var usesAudioLevels = true
  /// Key-frame requests to one publisher's track are at least this far apart.
  public var keyFrameRequestInterval = TimeDelta.milliseconds(500)
  /// Bounds, so that a peer cannot make the worker allocate without end.
  public var maxRooms = 10_000
  public var maxParticipantsPerRoom = 1_000
  public var maxTracksPerParticipant = 32
  public var maxPendingTracks = 20

  /// Datagrams a second that are taken from one participant's transport, with bursts of an eighth as many; the rest is dropped
  /// unread. A check, or a datagram of a handshake, counts as 32. A billion turns it off.
  public var participantRate = 16_000 {
    didSet { participantAllowance = Self.allowance(participantRate) }
  }
  /// Checks a second that are looked at from one address without a participant, with bursts of four times as many.
  public var strangerRate = 500
  /// Signal messages a second of one participant, with bursts of ten times as many; an offer or answer counts as 20. Who
  /// sends more must leave.
  public var signalRate = 100 {
    didSet { signalAllowance = WorkAllowance(rate: signalRate, burst: 10 * signalRate) }
  }
  private(set) var participantAllowance = allowance(16_000)
  private(set) var signalAllowance = WorkAllowance(rate: 100, burst: 1_000)

  private static func allowance(_ rate: Int) -> WorkAllowance { WorkAllowance(rate: rate, burst: rate / 8) }

  /// Whether tracks may be published in the codec of this MIME type.
  func enables(_ mimeType: String) -> Bool { enabledCodecs?.contains(mimeType.lowercased()) ?? true }

  public init(candidates: [SocketAddress]) { self.candidates = candidates }
}

extension AccessGrant {
  /// Its owner is there for others: no reason to keep a room, and taking no place in it.
  var isDependent: Bool { kind == .agent || kind == .egress }
}
