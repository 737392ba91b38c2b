import PalbeLiveKit
import PalbeProtobuf
import PalbeUnits

/// The participants who see and hear each other.
final class Room {
  let name: String
  let sid: String
  let createdAt: Instant
  let context: WorkerContext
  private(set) var participants: [Participant] = []
  var emptyTimeout: TimeDelta
  var departureTimeout: TimeDelta
  var maxParticipants: Int
  var metadata = ""
  var dataHistory = DataHistory()
  var dataHandles = DataHandles()
  /// Of operators' messages: one under a nonce that is among them was sent before.
  var nonces = RecentSet<[UInt8]>(limit: 1_024)
  private(set) var departures = Departures()
  /// How those who asked for it are reached, by identity: it holds for their next session too.
  var candidateProtocols: [String: LiveKit.CandidateProtocol] = [:]
  /// Tracks that are not encrypted end to end are refused.
  var requiresE2EE: Bool
  /// When everyone is told how many are there; nil while they know.
  private var changeDueAt: Instant?
  private static let changeDelay = TimeDelta.seconds(5)
  /// Who spoke last, and so whose video comes first.
  private(set) var speakerSid = ""
  /// When it is dropped, unless somebody comes; distant while somebody is there.
  private var endsAt = Instant.distantFuture

  init(name: String, context: WorkerContext, at now: Instant) {
    let configuration = context.configuration
    self.name = name
    self.context = context
    createdAt = now
    emptyTimeout = configuration.emptyTimeout
    departureTimeout = configuration.departureTimeout
    maxParticipants = configuration.maxParticipantsPerRoom
    requiresE2EE = configuration.requiresE2EE
    sid = LiveKit.Sid.room(using: &context.random)
  }

  /// The speaker stays the speaker until somebody else speaks while it is silent, so that pauses change nothing.
  func noteSpeech(of participant: Participant) {
    guard participant.speechLevel > 0, !participant.grant.hidden, participant.sid != speakerSid,
      !participants.contains(where: { $0.sid == speakerSid && $0.speechLevel > 0 })
    else { return }
    speakerSid = participant.sid
  }

  var isEmpty: Bool { participants.isEmpty }

  /// Nobody is there but those who are there for others.
  var isDeserted: Bool { participants.allSatisfy(\.isDependent) }

  /// It has a time after which it is dropped.
  var isWaiting: Bool { endsAt < .distantFuture }

  /// Nobody is there: the room is dropped after its time, which is another before anybody came.
  func wait(afterDeparture: Bool, from now: Instant) {
    endsAt = now + (afterDeparture ? departureTimeout : emptyTimeout)
    context.wake(at: endsAt)
  }

  /// True when its time is over. Says anew when it will be.
  func isOver(at now: Instant) -> Bool {
    guard now < endsAt else { return true }
    context.wake(at: endsAt)
    return false
  }

  /// How many there may be before one with that grant comes: those who are there for others take no place.
  func maxParticipants(for grant: AccessGrant) -> Int {
    maxParticipants + participants.count(where: \.isDependent)
      + (grant.isDependent ? 1 : 0)
  }

  var info: LiveKit.Room {
    .with {
      $0.sid = sid
      $0.name = name
      $0.creationTime = context.clock.unixMilliseconds(at: createdAt) / 1_000
      $0.creationTimeMs = context.clock.unixMilliseconds(at: createdAt)
      $0.emptyTimeout = UInt32(clamping: emptyTimeout.wholeMilliseconds / 1_000)
      $0.departureTimeout = UInt32(clamping: departureTimeout.wholeMilliseconds / 1_000)
      $0.maxParticipants = UInt32(clamping: maxParticipants)
      $0.metadata = metadata
      $0.numParticipants = UInt32(participants.count { !$0.grant.hidden && !$0.isDependent })
      $0.activeRecording = participants.contains(where: \.isRecorder)
      $0.numPublishers = UInt32(participants.count(where: \.isPublisher))
    }
  }

  func participant(identity: String) -> Participant? { participants.first { $0.identity == identity } }

  func append(_ participant: Participant) {
    participants.append(participant)
    if !participant.isDependent { endsAt = .distantFuture }
    noteChange(isUrgent: participant.isRecorder)
  }

  /// Takes the participant out, with everything that was forwarded from and to it.
  func remove(_ participant: Participant) {
    participants.removeAll { $0 === participant }
    noteChange(isUrgent: participant.isRecorder)
    withdrawDataTracks(of: participant)
    for track in participant.uplink.tracks { withdraw(track) }
    for downTrack in participant.downlink.downTracks {
      downTrack.track.remove(downTrack)
      downTrack.end()
    }
  }

  // MARK: What members are told

  /// Its counts changed: everyone is told soon, of a recording that begins or ends at once.
  func noteChange(isUrgent: Bool = false) {
    guard !participants.isEmpty else { return }
    let time = context.now + (isUrgent ? .zero : Self.changeDelay)
    if changeDueAt == nil { context.changedRooms.append(self) }
    changeDueAt = min(changeDueAt ?? time, time)
    context.wake(at: time)
  }

  /// True when everyone was told, or nobody is there to tell.
  func tellChange(at now: Instant) -> Bool {
    guard let due = changeDueAt, !participants.isEmpty else { return true }
    guard now >= due else {
      context.wake(at: due)
      return false
    }
    changeDueAt = nil
    broadcast()
    return true
  }

  /// Tells everyone about the room itself.
  func broadcast() {
    let bytes = LiveKit.SignalResponse(.roomUpdate(.with { $0.room = info })).serialized()
    for member in participants { member.send(bytes) }
  }

  /// Tells a participant's present state to everyone who may know of it.
  func broadcastInfo(of participant: Participant, includingSelf: Bool = true) {
    participant.version += 1
    let message = LiveKit.SignalResponse(.update(.with { $0.participants = [participant.info] }))
    let bytes = message.serialized()
    for member in participants {
      guard member !== participant ? !participant.grant.hidden : includingSelf else { continue }
      member.send(bytes)
    }
  }

  /// Tells the others that a participant is gone.
  ///
  /// - Parameter isReplaced: another session of its identity comes. Only clients that know participants by their sids are told.
  func broadcastDeparture(
    of participant: Participant, reason: LiveKit.DisconnectReason, isReplaced: Bool
  ) {
    participant.version += 1
    guard !participant.grant.hidden else { return }
    var info = participant.info
    info.state = .disconnected
    info.disconnectReason = reason
    info.tracks = []
    info.dataTracks = []
    let configuration = context.configuration
    if !isReplaced {
      departures.note(info, at: context.now, age: configuration.resumeTimeout + configuration.pingTimeout)
    }
    let bytes = LiveKit.SignalResponse(.update(.with { $0.participants = [info] })).serialized()
    for member in participants where member !== participant {
      if !isReplaced || !member.knowsIdentities { member.send(bytes) }
    }
  }

  // MARK: Subscriptions

  /// Lets everyone who wants it receive the track.
  func offer(_ track: PublishedTrack, at now: Instant) {
    for member in participants where member.wants(track) {
      if subscribe(member, to: track) { member.requestSections() }
    }
  }

  /// Subscribes a participant to everything that is there and that it wants.
  func subscribeToAll(_ participant: Participant) {
    for member in participants {
      for track in member.uplink.tracks where track.isAnnounced && participant.wants(track) {
        _ = subscribe(participant, to: track)
      }
    }
  }

  /// True when the subscription is new. It starts once a section of the subscriber's carries it.
  func subscribe(_ participant: Participant, to track: PublishedTrack) -> Bool {
    guard participant.grant.canSubscribe, track.publisher !== participant, track.isAnnounced,
      !track.publisher.grant.hidden, participant.downlink.subscription(to: track) == nil
    else { return false }
    guard track.publisher.permission.allows(track, to: participant) else {
      // It may have come after the publisher said so.
      participant.sendPermission(false, toReceive: track.sid, of: track.publisher)
      return false
    }
    let downTrack = DownTrack(track: track, subscriber: participant, using: &context.random)
    participant.downlink.append(downTrack)
    track.append(downTrack)
    return true
  }

  func unsubscribe(_ participant: Participant, from track: PublishedTrack) {
    guard let downTrack = participant.downlink.subscription(to: track) else { return }
    track.remove(downTrack)
    participant.downlink.remove(downTrack)
    participant.wantOffer(at: context.now)
  }

  /// Ends every subscription to the track.
  func withdraw(_ track: PublishedTrack) {
    for downTrack in track.downTracks {
      downTrack.subscriber.downlink.remove(downTrack)
      downTrack.subscriber.wantOffer(at: context.now)
    }
    track.removeAllDownTracks()
    track.isAnnounced = false
    for member in participants { member.downlink.forget(track.sid) }
  }

  /// An announced track by its sid, and who publishes it.
  func track(sid: String) -> PublishedTrack? {
    for participant in participants {
      if let track = participant.uplink.track(sid: sid), track.isAnnounced { return track }
    }
    return nil
  }
}
