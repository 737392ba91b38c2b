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
  /// Its layers, where it has several in one stream.
  private(set) var layering: Layering?
  private var unwrapper = SequenceUnwrapper()
  private var nacks: NackTracker?
  /// What was forwarded last, in the clear: once for all subscribers.
  private var history = RetransmissionCache()
  /// The newest packet's number in `history`, its lower half; nil while that is empty.
  private var newest: UInt32?

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

  /// True for the retransmissions of that stream.
  func repairs(_ other: IncomingStream) -> Bool {
    if case .repair(let media) = role { media === other } else { false }
  }

  /// It is what another source was until now.
  func follow(_ other: IncomingStream) {
    lastPacketAt = other.lastPacketAt
    meter = other.meter
  }

  /// Takes note of a packet as it arrived.
  func note(_ header: RTPHeader, payloadByteCount: Int, at now: Instant) {
    statistics.update(header, payloadByteCount: payloadByteCount, arrival: now)
    lastPacketAt = now
  }

  /// The same, made if it is not there yet.
  var knownLayering: Layering {
    if let layering { return layering }
    let made = Layering()
    layering = made
    return made
  }

  /// The number of a media packet that was not seen before; nil for a duplicate.
  func admit(_ number: SequenceNumber, at now: Instant) -> ExtendedSequenceNumber? {
    let sequence = unwrapper.unwrap(number)
    guard nacks != nil else { return sequence }
    if let arrival = nacks?.received(sequence, at: now), arrival == .duplicate { return nil }
    return sequence
  }

  /// Keeps a packet that is forwarded, for the repairs of all who receive it.
  func remember(_ packet: borrowing MediaPacket) {
    if newest == nil {
      history =
        track.kind == .video
        ? RetransmissionCache(capacity: 512, byteLimit: 384 << 10)
        : RetransmissionCache(capacity: 128, byteLimit: 64 << 10)
    }
    history.store(packet.header.sequenceNumber, packet.span)
    let number = UInt32(truncatingIfNeeded: packet.sequence.rawValue)
    if Int32(bitPattern: number &- (newest ?? number &- 1)) > 0 { newest = number }
  }

  /// Brings back a packet that was sent to a subscriber; false when it is not there any more.
  func restore(_ sent: SentPackets.Entry, into packet: inout MediaPacket) -> Bool {
    // Further back, the 16 bits that the history knows it by may stand for another.
    guard let newest, newest &- sent.sequence < 1 << 15,
      packet.load(SequenceNumber(UInt16(truncatingIfNeeded: sent.sequence)), from: history)
    else { return false }
    guard let section = track.section else { return false }
    return packet.parse(track.publisher.uplink.ids) && sent.isOf(packet) && packet.parsePayload(of: section)
  }

  /// Appends the packets to ask the publisher for.
  func pollNACKs(at now: Instant, roundTrip: TimeDelta, into numbers: inout [SequenceNumber]) {
    nacks?.poll(at: now, roundTrip: roundTrip, into: &numbers)
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
    history = RetransmissionCache()
    newest = nil
    layering = nil
    keyFrames.rest()
  }

  func isAlive(at now: Instant) -> Bool { lastPacketAt.map { now - $0 < .milliseconds(1_500) } ?? false }
}
