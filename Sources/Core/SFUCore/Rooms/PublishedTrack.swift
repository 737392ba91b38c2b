import PalbeLiveKit
import PalbeRTP
import PalbeSDP
import PalbeUnits

/// A track of a participant, from its AddTrackRequest until it is unpublished.
///
///     pending ── a sending section of an offer is matched to it ──▶ announced to the room, forwarded
final class PublishedTrack {
  /// The media section that carries it.
  struct Section: Equatable {
    var mid: String
    var media: MediaCodec
    /// As the publisher offered it.
    var codec: RTPCodec
    var repairPayloadType: PayloadType?
    /// RFC 2198 around it.
    var redundantPayloadType: PayloadType?
    /// The publisher answers NACKs.
    var sendsNACKs: Bool

    var payloadType: PayloadType { codec.payloadType }

    /// Of its media.
    func carries(_ type: PayloadType) -> Bool {
      type == codec.payloadType || redundantPayloadType.map { type == $0 } ?? false
    }
  }

  /// With a version that rises with every change.
  var info: LiveKit.TrackInfo { didSet { info.version = publisher.context.version(after: info.version) } }
  /// The publisher's own name for it.
  let cid: String
  let kind: TrackKind
  unowned let publisher: Participant
  var section: Section?
  /// Its sources of media, without those of retransmissions.
  var streams: [IncomingStream] = []
  private(set) var downTracks: [DownTrack] = []
  /// Whether somebody speaks into it.
  var speech = SpeechDetector()
  /// Which of its layers are wanted.
  var dynacast = Dynacast()
  /// Others know of it.
  var isAnnounced = false
  /// The publisher knows that somebody receives it.
  var isSubscribed = false

  init(_ info: LiveKit.TrackInfo, cid: String, kind: TrackKind, publisher: Participant) {
    self.info = info
    self.cid = cid
    self.kind = kind
    self.publisher = publisher
  }

  var sid: String { info.sid }

  /// Nothing of it is forwarded.
  var isMuted: Bool { info.muted }

  /// True for the cid of the track or of one of its codecs.
  func isNamed(_ name: String) -> Bool { cid == name || info.codecs.contains { $0.cid == name } }

  /// The higher, the better the picture: by the names that LiveKit's clients give, else by what the publisher told of its
  /// layers; nil where neither says.
  func rank(of rid: ShortText?) -> Int? {
    switch rid?.text {
    case nil: return nil
    case "q": return 0
    case "h": return 1
    case "f": return 2
    case let name:
      let layers = info.layers + info.codecs.flatMap(\.layers)
      return layers.first { $0.rid == name }.map { Int(min(2, max(0, $0.quality.rawValue))) }
    }
  }

  func append(_ downTrack: DownTrack) {
    downTracks.append(downTrack)
    wantsChanged()
  }

  func remove(_ downTrack: DownTrack) {
    downTracks.removeAll { $0 === downTrack }
    wantsChanged()
  }

  /// Somebody wants more or less of it: the publisher is told with its next timers.
  func wantsChanged() { publisher.wake(at: publisher.context.now) }

  func removeAllDownTracks() { downTracks = [] }

  /// The publisher's clock on that source.
  func clock(of ssrc: SSRC?) -> SourceClock? {
    for stream in streams where stream.ssrc == ssrc { return stream.clock }
    return nil
  }

  /// The layers in the one stream of that source.
  func layering(of ssrc: SSRC) -> Layering? {
    for stream in streams where stream.ssrc == ssrc { return stream.layering }
    return nil
  }

  /// It comes in several sizes, in one stream or in several.
  var hasSizes: Bool {
    streams.count > 1 || (streams.first?.layering?.sizeCount ?? 0) > 1
      || info.simulcast && section?.media.hasSizesInOneStream == true
  }

  /// Has the publisher asked for the key frames that this subscriber waits for.
  func wantKeyFrame(for downTrack: DownTrack, at now: Instant) {
    guard kind == .video, let stream = downTrack.chooseLayer(at: now) else { return }
    want(stream, at: now)
  }

  /// A subscriber lost its picture: has the publisher asked for a key frame of what it receives.
  func refreshPicture(for downTrack: DownTrack, at now: Instant) {
    guard kind == .video, downTrack.isReady else { return }
    for stream in streams where stream.ssrc == downTrack.source || streams.count == 1 {
      want(stream, at: now)
    }
  }

  private func want(_ stream: IncomingStream, at now: Instant) {
    stream.keyFrames.want()
    publisher.wake(at: stream.keyFrames.nextDeadline ?? now)
  }
}
