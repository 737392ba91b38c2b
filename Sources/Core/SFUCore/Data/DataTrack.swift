import PalbeLiveKit
import PalbeProtobuf

/// A data track: small packets of one publisher's, lossy, for those who subscribe.
///
///     publish_data_track_request ─▶ published, told with the participant ─▶ subscribers get its handle, then packets
///
/// Its handle is one for the whole room, so that a packet is written once for all who get it.
final class DataTrack {
  let info: LiveKit.DataTrackInfo
  unowned let publisher: Participant
  /// What its packets carry on the way to subscribers.
  let handle: UInt16
  private(set) var subscribers: [Participant] = []

  init(_ info: LiveKit.DataTrackInfo, publisher: Participant, handle: UInt16) {
    self.info = info
    self.publisher = publisher
    self.handle = handle
  }

  var sid: String { info.sid }

  func append(_ subscriber: Participant) { subscribers.append(subscriber) }

  func remove(_ subscriber: Participant) { subscribers.removeAll { $0 === subscriber } }

  func removeAll() { subscribers = [] }
}

/// What a participant has to do with data tracks.
struct DataTracks {
  /// Tracks that were asked for, at most; more of them are not remembered.
  static let wantedLimit = 1_000

  /// In the order of their publication.
  var published: [DataTrack] = []
  var subscribed: [DataTrack] = []
  /// The sids it asked for and did not give back: they come once they may.
  var wanted: Set<String> = []

  mutating func want(_ sid: String) {
    if wanted.count < Self.wantedLimit { wanted.insert(sid) }
  }
}

extension Participant {
  /// Tells which handle is whose: all that it is subscribed to.
  func sendDataTrackHandles() {
    send(
      .dataTrackSubscriberHandles(
        .with {
          for track in dataTracks.subscribed {
            $0.subHandles[UInt32(track.handle)] = .with {
              $0.publisherIdentity = track.publisher.identity
              $0.publisherSid = track.publisher.sid
              $0.trackSid = track.sid
            }
          }
        }))
  }

  func dataTrack(publishedAs handle: UInt32) -> DataTrack? {
    dataTracks.published.first { $0.info.pubHandle == handle }
  }
}

extension Participant {
  /// By itself or on request.
  fileprivate func wants(_ track: DataTrack) -> Bool {
    subscribesToDataTracks || dataTracks.wanted.contains(track.sid)
  }
}

extension Room {
  func dataTrack(sid: String) -> DataTrack? {
    for participant in participants {
      if let track = participant.dataTracks.published.first(where: { $0.sid == sid }) { return track }
    }
    return nil
  }

  /// Lets everyone who wants it receive the track.
  func offer(_ track: DataTrack) {
    for member in participants where member.wants(track) && subscribe(member, to: track) {
      member.sendDataTrackHandles()
    }
  }

  /// Subscribes a participant to every data track that it wants and may have.
  func subscribeToDataTracks(_ participant: Participant) {
    var isAny = false
    for member in participants {
      for track in member.dataTracks.published where participant.wants(track) {
        if subscribe(participant, to: track) { isAny = true }
      }
    }
    if isAny { participant.sendDataTrackHandles() }
  }

  /// True when the subscription is new.
  func subscribe(_ participant: Participant, to track: DataTrack) -> Bool {
    guard participant.grant.canSubscribe, track.publisher !== participant, !track.publisher.grant.hidden,
      track.publisher.permission.allows(track.sid, to: participant),
      !participant.dataTracks.subscribed.contains(where: { $0 === track })
    else { return false }
    track.append(participant)
    participant.dataTracks.subscribed.append(track)
    return true
  }

  /// True when there was a subscription.
  func unsubscribe(_ participant: Participant, from track: DataTrack) -> Bool {
    guard participant.dataTracks.subscribed.contains(where: { $0 === track }) else { return false }
    track.remove(participant)
    participant.dataTracks.subscribed.removeAll { $0 === track }
    return true
  }

  /// The participant may not receive any more.
  func unsubscribeFromDataTracks(_ participant: Participant) {
    guard !participant.dataTracks.subscribed.isEmpty else { return }
    for track in participant.dataTracks.subscribed { track.remove(participant) }
    participant.dataTracks.subscribed = []
    participant.sendDataTrackHandles()
  }

  /// Ends tracks of one publisher's. Whoever received some of them is told once what is left.
  func withdraw(_ tracks: [DataTrack]) {
    var told: Set<ObjectIdentifier> = []
    let subscribers = tracks.flatMap(end)
    for subscriber in subscribers where told.insert(ObjectIdentifier(subscriber)).inserted {
      subscriber.sendDataTrackHandles()
    }
  }

  /// Returns who received the track.
  private func end(_ track: DataTrack) -> [Participant] {
    dataHandles.free(track.handle)
    track.publisher.dataTracks.published.removeAll { $0 === track }
    for member in participants {
      member.dataTracks.wanted.remove(track.sid)
      member.downlink.forget(track.sid)
    }
    let subscribers = track.subscribers
    for subscriber in subscribers { subscriber.dataTracks.subscribed.removeAll { $0 === track } }
    track.removeAll()
    return subscribers
  }

  /// Ends what a participant that leaves published, and what it received.
  func withdrawDataTracks(of participant: Participant) {
    withdraw(participant.dataTracks.published)
    for track in participant.dataTracks.subscribed { track.remove(participant) }
    participant.dataTracks = DataTracks()
  }

  /// A publisher's will has changed: what is revoked stops at once.
  func applyPermission(to track: DataTrack, before: SubscriptionPermission) {
    let publisher = track.publisher
    for member in participants where member !== publisher {
      let isAllowed = publisher.permission.allows(track.sid, to: member)
      guard isAllowed != before.allows(track.sid, to: member) else { continue }
      member.sendPermission(isAllowed, toReceive: track.sid, of: publisher)
      if !isAllowed, unsubscribe(member, from: track) { member.sendDataTrackHandles() }
    }
    offer(track)
  }
}

/// The handles of a room's data tracks. One that was freed is not taken again soon: packets may still be on their way.
struct DataHandles {
  static let limit = 32_768

  private var used: Set<UInt16> = []
  private var last: UInt16 = 0

  /// Nil when there are too many.
  mutating func take() -> UInt16? {
    guard used.count < Self.limit else { return nil }
    repeat { last &+= 1 } while last == 0 || used.contains(last)
    used.insert(last)
    return last
  }

  mutating func free(_ handle: UInt16) { used.remove(handle) }
}
