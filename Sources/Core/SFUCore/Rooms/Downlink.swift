import PalbeUnits

/// What a participant receives: its subscriptions, and the media sections they sit in.
final class Downlink {
  /// From the end of a track to the request for an offer without it. An offer costs both sides much: whoever leaves takes
  /// several tracks along, and many may leave at once.
  static let restDelay = TimeDelta.milliseconds(250)

  private(set) var downTracks: [DownTrack] = []
  private var bySSRC: [SSRC: DownTrack] = [:]
  /// Which subscription a receiving section of the client's last offer carries, by mid.
  private var sections: [String: DownTrack] = [:]
  /// Sections whose track is gone since the last answer: to the client they still receive it.
  private var emptied: Set<String> = []
  /// Sections that this answer makes inactive.
  private var resting: Set<String> = []
  /// When the client is asked for an offer in which emptied sections become inactive.
  var restDueAt: Instant?
  /// Receiving sections of the last offer that carry nothing.
  private(set) var freeAudioSections = 0
  private(set) var freeVideoSections = 0
  /// Tracks that were subscribed to since they are there.
  private var subscribedBefore: Set<String> = []
  /// What it asked for, true, or gave back, by the sids of tracks that are there: it holds whatever the publisher or an
  /// operator takes away meanwhile and grants again.
  private var wishes: [String: Bool] = [:]
  private static let wishLimit = 1_000
  /// Tracks that it was told it may not have.
  private var denied: Set<String> = []
  /// Sections that the client was asked to add since its last offer.
  var requestedAudioSections = 0
  var requestedVideoSections = 0
  /// The client was asked for an offer that did not come yet.
  var isOfferRequested = false

  func isKnown(_ ssrc: SSRC) -> Bool { bySSRC[ssrc] != nil }

  func downTrack(_ ssrc: SSRC) -> DownTrack? { bySSRC[ssrc] }

  func subscription(to track: PublishedTrack) -> DownTrack? { downTracks.first { $0.track === track } }

  /// True when it is not the first one.
  func noteSubscription(to track: PublishedTrack) -> Bool { !subscribedBefore.insert(track.sid).inserted }

  func wish(for track: PublishedTrack, _ isWanted: Bool) {
    if wishes.count < Self.wishLimit || wishes[track.sid] != nil { wishes[track.sid] = isWanted }
  }

  /// What it said of the track; nil where it said nothing.
  func wish(for track: PublishedTrack) -> Bool? { wishes[track.sid] }

  /// True when it does not know yet that it may, or may not, have the track of that sid; it may before it is told.
  func noteDenial(of sid: String, _ isDenied: Bool) -> Bool {
    isDenied ? denied.insert(sid).inserted : denied.remove(sid) != nil
  }

  /// The track of that sid is gone for good.
  func forget(_ sid: String) {
    subscribedBefore.remove(sid)
    wishes[sid] = nil
    denied.remove(sid)
  }

  func append(_ downTrack: DownTrack) {
    downTracks.append(downTrack)
    bySSRC[downTrack.ssrc] = downTrack
    bySSRC[downTrack.repairSSRC] = downTrack
  }

  func remove(_ downTrack: DownTrack) {
    downTracks.removeAll { $0 === downTrack }
    bySSRC[downTrack.ssrc] = nil
    bySSRC[downTrack.repairSSRC] = nil
    if let mid = downTrack.placement?.mid, sections[mid] === downTrack {
      sections[mid] = nil
      emptied.insert(mid)
    }
    downTrack.end()
  }

  /// Sections have to become inactive.
  var hasEmptiedSections: Bool { !emptied.isEmpty }

  /// The section becomes inactive in this answer, and can be used again in the next one: without a pause clients see no
  /// end of the old track, and some no new one.
  func isResting(_ mid: String) -> Bool { resting.contains(mid) }

  /// What the client was asked for did not reach it: its signaling broke.
  func forgetRequests() {
    isOfferRequested = false
    requestedAudioSections = 0
    requestedVideoSections = 0
  }

  /// A new offer is looked at: everything that was asked for is answered by it.
  func beginOffer(receivingMids mids: Set<String>) {
    forgetRequests()
    restDueAt = nil
    resting = emptied
    emptied = []
    freeAudioSections = 0
    freeVideoSections = 0
    for (mid, downTrack) in sections where !mids.contains(mid) {
      sections[mid] = nil
      downTrack.unplace()
    }
  }

  /// What the section carries: what it did before, else the first subscription that waits for one of its kind, unless the
  /// section rests.
  func fill(_ mid: String, kind: TrackKind, where isSupported: (DownTrack) -> Bool) -> DownTrack? {
    if let present = sections[mid] {
      if present.track.kind == kind, isSupported(present) { return present }
      present.unplace()
      sections[mid] = nil
    }
    if !isResting(mid), let waiting = downTracks.first(where: { $0.isWaiting(kind) && isSupported($0) }) {
      sections[mid] = waiting
      return waiting
    }
    switch kind {
    case .audio: freeAudioSections += 1
    case .video: freeVideoSections += 1
    }
    return nil
  }

  /// Subscriptions that wait though a section of their kind is free: the client does not know their codecs.
  func unsupported(_ kind: TrackKind) -> [DownTrack] {
    downTracks.filter { $0.isWaiting(kind) }
  }

  /// How many sections the client must add, and that it must offer at all; nil when nothing waits or the client was asked.
  func takeRequirement() -> (audio: Int, video: Int)? {
    func waiting(_ kind: TrackKind) -> Int {
      downTracks.count { $0.isWaiting(kind) }
    }
    let audio = waiting(.audio)
    let video = waiting(.video)
    guard audio + video > 0 else { return nil }
    let moreAudio = max(0, audio - freeAudioSections - requestedAudioSections)
    let moreVideo = max(0, video - freeVideoSections - requestedVideoSections)
    guard !isOfferRequested || moreAudio + moreVideo > 0 else { return nil }
    isOfferRequested = true
    requestedAudioSections += moreAudio
    requestedVideoSections += moreVideo
    return (moreAudio, moreVideo)
  }

  /// True when the client must be asked for an offer now, so that emptied sections become inactive.
  func takeRest(at now: Instant) -> Bool {
    guard let due = restDueAt, now >= due else { return false }
    restDueAt = nil
    // Another offer under way does as well.
    guard hasEmptiedSections, !isOfferRequested else { return false }
    isOfferRequested = true
    return true
  }
}
