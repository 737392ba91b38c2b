import PalbeCongestion
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// What a participant sends: its tracks, their sources, and what it must be told about their arrival.
final class Uplink {
  /// Sources of one track at most: three layers and their retransmissions, twice over for a change.
  private static let sourceLimit = 12

  private let context: WorkerContext
  /// Who we are in feedback.
  let localSSRC: SSRC
  /// Pending ones too, in the order of their requests.
  private(set) var tracks: [PublishedTrack] = []
  /// The transport's extension ids; one BUNDLE group has one numbering.
  var ids = RTPExtensionIDs()
  var feedback = TransportFeedbackRecorder()
  /// Of all tracks, media and repairs; the media's are in their tracks' `streams` too, in order.
  private(set) var streams: [SSRC: IncomingStream] = [:]
  /// Sources of tracks that are gone. They must not come back under another track by the MID of a replayed packet.
  private var retired = RecentSet<SSRC>(limit: 1_024)

  init(context: WorkerContext) {
    self.context = context
    localSSRC = SSRC(UInt32(truncatingIfNeeded: context.random.next()) | 1)
  }

  func isKnown(_ ssrc: SSRC) -> Bool { streams[ssrc] != nil || retired.contains(ssrc) }

  func append(_ track: PublishedTrack) { tracks.append(track) }

  func track(sid: String) -> PublishedTrack? { tracks.first { $0.sid == sid } }
  func track(cid: String) -> PublishedTrack? { tracks.first { $0.cid == cid } }
  func track(mid: String) -> PublishedTrack? { tracks.first { $0.section?.mid == mid } }

  var pendingTracks: [PublishedTrack] { tracks.filter { $0.section == nil } }

  /// Removes the track and all its sources.
  func remove(_ track: PublishedTrack, transport: PeerTransport) {
    tracks.removeAll { $0 === track }
    for (ssrc, stream) in streams where stream.track === track { retire(ssrc, transport) }
    track.streams = []
  }

  /// It was a source of a track that is gone: nothing of it is taken any more.
  func isRetired(_ ssrc: SSRC) -> Bool { retired.contains(ssrc) }

  /// The source of a packet; one that nobody signaled is found by its MID and RID, and remembered.
  func stream(_ ssrc: SSRC, _ extensions: RTPExtensionValues) -> IncomingStream? {
    if let known = streams[ssrc] { return known }
    return discover(ssrc, extensions)
  }

  private func discover(_ ssrc: SSRC, _ extensions: RTPExtensionValues) -> IncomingStream? {
    guard let mid = extensions.mid, !retired.contains(ssrc), let track = track(mid: mid.text),
      streams.values.count(where: { $0.track === track }) < Self.sourceLimit
    else { return nil }
    if let repaired = extensions.repairedRID {
      guard let media = track.streams.first(where: { $0.rid == repaired }) else { return nil }
      for (gone, stream) in streams where stream.repairs(media) { retire(gone, track.publisher.transport) }
      return insert(ssrc, role: .repair(of: media), track: track, rid: repaired)
    }
    guard let old = track.streams.first(where: { $0.rid == extensions.rid }) else {
      return insert(ssrc, role: .media, track: track, rid: extensions.rid)
    }
    return insert(ssrc, inPlaceOf: old)
  }

  /// A layer goes on from another source, which begins with a key frame: whoever receives it waits for that one.
  private func insert(_ ssrc: SSRC, inPlaceOf old: IncomingStream) -> IncomingStream {
    let track = old.track
    // What comes late of it is not the next change.
    for (gone, stream) in streams where stream === old || stream.repairs(old) {
      retire(gone, track.publisher.transport)
    }
    track.streams.removeAll { $0 === old }
    let new = insert(ssrc, role: .media, track: track, rid: old.rid, rank: old.rank)
    new.follow(old)
    for downTrack in track.downTracks { track.wantKeyFrame(for: downTrack, at: context.now) }
    return new
  }

  /// Makes the sources of a track those that its section names.
  func setSources(of track: PublishedTrack, from section: MediaSection, transport: PeerTransport) {
    var repairs: [SSRC: SSRC] = [:]
    var secondary: Set<SSRC> = []
    for group in section.sourceGroups where group.semantics == "FID" || group.semantics == "FEC-FR" {
      guard group.ssrcs.count == 2 else { continue }
      if group.semantics == "FID" { repairs[group.ssrcs[0]] = group.ssrcs[1] }
      secondary.insert(group.ssrcs[1])
    }
    let named = section.sources.map(\.ssrc).filter { !secondary.contains($0) }.prefix(3)
    guard !named.isEmpty else { return }
    let keep = Set(named + named.compactMap { repairs[$0] })
    for (ssrc, stream) in streams where stream.track === track && !keep.contains(ssrc) {
      retire(ssrc, transport)
    }
    track.streams.removeAll { !keep.contains($0.ssrc) }
    for ssrc in named where streams[ssrc] == nil {
      let media = insert(ssrc, role: .media, track: track, rid: nil)
      if let repair = repairs[ssrc], streams[repair] == nil {
        insert(repair, role: .repair(of: media), track: track, rid: nil)
      }
    }
  }

  @discardableResult
  private func insert(
    _ ssrc: SSRC, role: IncomingStream.Role, track: PublishedTrack, rid: ShortText?, rank: Int? = nil
  ) -> IncomingStream {
    let isMedia = if case .media = role { true } else { false }
    let stream = IncomingStream(
      ssrc: ssrc, role: role, track: track, rid: rid,
      rank: rank ?? track.rank(of: rid) ?? track.streams.count,
      sendsNACKs: isMedia && track.section?.sendsNACKs == true,
      keyFrameInterval: context.configuration.keyFrameRequestInterval)
    retired.remove(ssrc)
    streams[ssrc] = stream
    if isMedia { track.streams.append(stream) }
    return stream
  }

  private func retire(_ ssrc: SSRC, _ transport: PeerTransport) {
    if let stream = streams[ssrc] { context.totals.ended(stream) }
    streams[ssrc] = nil
    transport.forgetSource(ssrc)
    retired.insert(ssrc)
  }
}
