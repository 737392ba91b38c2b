import PalbeRTP
import PalbeUnits

/// One source of a published track: its only one, or a simulcast layer, or the retransmissions of one.
final class IncomingStream {
  enum Role {
    case media
    /// RFC 4588, of that stream.
    case repair(of: IncomingStream)
  }

  let ssrc: SSRC
  let role: Role
  unowned let track: PublishedTrack
  /// The layer's name, where the publisher gave one.
  let rid: ShortText?
  /// Higher is the better picture.
  let rank: Int
  private(set) var statistics: ReceiverStatistics
  private(set) var clock: SourceClock?
  private(set) var lastPacketAt: Instant?
  var keyFrames: KeyFrameRequester
  /// What it takes of a subscriber's link.
  var meter = LayerMeter()
  private var unwrapper = SequenceUnwrapper()
  private var nacks: NackTracker?

  init(
    ssrc: SSRC, role: Role, track: PublishedTrack, rid: ShortText?, rank: Int, sendsNACKs: Bool,
    keyFrameInterval: TimeDelta
  ) {
    self.ssrc = ssrc
    self.role = role
    self.track = track
    self.rid = rid
    self.rank = rank
    statistics = ReceiverStatistics(ssrc: ssrc, clockRate: track.kind.clockRate)
    keyFrames = KeyFrameRequester(interval: keyFrameInterval)
    nacks = sendsNACKs ? NackTracker() : nil
  }

  /// Takes note of a packet as it arrived.
  func note(_ header: RTPHeader, payloadByteCount: Int, at now: Instant) {
    statistics.update(header, payloadByteCount: payloadByteCount, arrival: now)
    lastPacketAt = now
  }

  /// The number of a media packet that was not seen before; nil for a duplicate.
  func admit(_ number: SequenceNumber, at now: Instant) -> ExtendedSequenceNumber? {
    let sequence = unwrapper.unwrap(number)
    guard nacks != nil else { return sequence }
    if let arrival = nacks?.received(sequence, at: now), arrival == .duplicate { return nil }
    return sequence
  }

  /// Packets to ask the publisher for.
  func pollNACKs(at now: Instant, roundTrip: TimeDelta) -> [SequenceNumber] {
    nacks?.poll(at: now, roundTrip: roundTrip) ?? []
  }

  var nackDeadline: Instant? { nacks?.nextDeadline }

  /// True for the first report.
  func received(_ report: SenderReport, at now: Instant) -> Bool {
    let isFirst = clock == nil
    statistics.received(senderReport: report, at: now)
    clock = SourceClock(report, receivedAt: now)
    return isFirst
  }

  func report(at now: Instant) -> ReportBlock? { statistics.report(at: now) }

  /// The source said goodbye: nothing that is missing will come any more.
  func ended() {
    if nacks != nil { nacks = NackTracker() }
    unwrapper = SequenceUnwrapper()
    keyFrames.rest()
  }

  func isAlive(at now: Instant) -> Bool { lastPacketAt.map { now - $0 < .milliseconds(1_500) } ?? false }
}
