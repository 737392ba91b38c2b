import PalbeRTP
import PalbeUnits
import PalbeWire

/// One subscriber's copy of one published track: a stream of its own with SSRC, numbers, cache and reports.
///
/// ## Overview
///
///     waiting ── a section of the subscriber's takes it ──▶ placed ── transport up ──▶ ready
///
/// Ready audio goes through at once, video from a key frame on: until one comes, `needsKeyFrame` has the publisher
/// asked for it.
///
/// ## Repairs
///
/// Where RTX was negotiated, `sent` tells which packet of which source a number stands for; a repair is rewritten again from
/// the source's history and goes out as a new packet of `repairSSRC`. Where not, `protected` holds the protected bytes and a
/// repair is the same bytes again: nothing different is ever protected under one (SSRC, roll-over count, sequence number).
/// The two kinds never mix: another kind of repair begins with nothing to repair.
final class DownTrack {
  /// Where the subscriber receives it, and how.
  struct Placement: Equatable {
    var mid: String
    var payloadType: PayloadType
    /// RFC 4588, where negotiated.
    var repairPayloadType: PayloadType?
    var ids: RTPExtensionIDs
    var answersNACKs: Bool
  }

  let track: PublishedTrack
  unowned let subscriber: Participant
  let ssrc: SSRC
  let repairSSRC: SSRC
  /// The subscriber received the track before: it must be able to tell the subscriptions apart.
  let isRepeated: Bool
  private(set) var placement: Placement?
  private(set) var statistics: SenderStatistics
  /// The subscriber has switched it off for now.
  var isDisabled = false { didSet { if isDisabled { restart() } } }
  /// The best layer the subscriber wants, by rank.
  var wantedRank = Int.max
  /// The subscription ended: nothing goes through any more.
  private(set) var isEnded = false
  /// Nothing goes through before the publisher's next key frame.
  private(set) var needsKeyFrame: Bool
  /// The next packet follows on what was sent last, whatever was kept back in between.
  private var beginsAnew = false
  /// The layer to be on; nil takes the first key frame of any.
  private var targetSSRC: SSRC?
  private var rewriter: StreamRewriter
  private var sent = SentPackets(capacity: 1)
  private var protected = RetransmissionCache(capacity: 1)
  private var repairSequence: SequenceNumber

  init(track: PublishedTrack, subscriber: Participant, using random: inout RandomSource) {
    self.track = track
    self.subscriber = subscriber
    ssrc = subscriber.freshSSRC(using: &random)
    repairSSRC = subscriber.freshSSRC(using: &random)
    isRepeated = subscriber.downlink.noteSubscription(to: track)
    statistics = SenderStatistics(ssrc: ssrc, clockRate: track.kind.clockRate)
    let first = random.next()
    rewriter = StreamRewriter(
      clockRate: track.kind.clockRate, firstSequence: UInt16(truncatingIfNeeded: first))
    repairSequence = SequenceNumber(UInt16(truncatingIfNeeded: first >> 16) & 0x7fff)
    needsKeyFrame = track.kind == .video
  }

  /// Packets can go out.
  var isReady: Bool { placement != nil && !isDisabled && !isEnded && subscriber.downTransport.isConnected }

  /// The source that goes through now.
  var source: SSRC? { rewriter.source }

  func place(_ new: Placement) {
    guard new != placement else { return }
    let isSameKind =
      placement?.answersNACKs == new.answersNACKs
      && (placement?.repairPayloadType == nil) == (new.repairPayloadType == nil)
    if placement == nil || !isSameKind {
      let capacity = !new.answersNACKs ? 1 : track.kind == .video ? 512 : 128
      let usesRTX = new.repairPayloadType != nil
      sent = SentPackets(capacity: usesRTX ? capacity : 1)
      protected = RetransmissionCache(
        capacity: usesRTX ? 1 : capacity, byteLimit: track.kind == .video ? 64 << 10 : 16 << 10)
    }
    placement = new
  }

  /// The section it was in is gone.
  func unplace() {
    placement = nil
    restart()
  }

  func end() {
    isEnded = true
    placement = nil
  }

  /// What comes next starts anew: video with a key frame.
  func restart() {
    needsKeyFrame = track.kind == .video
    beginsAnew = true
  }

  /// Chooses among simulcast layers: the best live one that is wanted, else the lowest live one.
  ///
  /// - Returns: the layer whose key frame is needed, nil when the stream goes on as it is.
  func chooseLayer(at now: Instant) -> IncomingStream? {
    var target = track.streams.first
    if track.streams.count > 1 {
      var best: IncomingStream?
      var lowest: IncomingStream?
      for stream in track.streams where stream.isAlive(at: now) {
        if stream.rank <= wantedRank, stream.rank > best?.rank ?? -1 { best = stream }
        if stream.rank < lowest?.rank ?? .max { lowest = stream }
      }
      target = best ?? lowest
    }
    targetSSRC = target?.ssrc
    guard isReady, let target, needsKeyFrame || target.ssrc != rewriter.source else { return nil }
    return target
  }

  /// True when the packet belongs into this stream; starts the stream where that is the place for it.
  private func admit(_ packet: borrowing MediaPacket, at now: Instant) -> Bool {
    let isCurrent = rewriter.source == packet.header.ssrc
    let follows = isCurrent && rewriter.follows(packet.sequence)
    switch track.kind {
    case .audio:
      if !follows || beginsAnew { rewriter.start(packet, at: now) }
      beginsAnew = false
      return true
    case .video:
      if isCurrent {
        if !follows { restart() }
        guard needsKeyFrame else { return true }
      } else if let targetSSRC, targetSSRC != packet.header.ssrc {
        return false
      }
      guard packet.startsKeyFrame else { return false }
      rewriter.start(packet, at: now)
      needsKeyFrame = false
      return true
    }
  }

  /// Writes this subscriber's copy of the packet, protected. Nil when it does not get one. No allocation.
  @_lifetime(buffer: copy buffer)
  func forward(
    _ packet: borrowing MediaPacket, into buffer: inout MutableSpan<UInt8>, at now: Instant
  ) -> Int? {
    guard isReady, let placement, admit(packet, at: now), let fields = rewriter.fields(of: packet, at: now),
      let layout = write(packet, as: fields, in: placement, padding: packet.padding, into: &buffer),
      let count = subscriber.downTransport.protectRTP(&buffer, count: layout.byteCount)
    else { return nil }
    if placement.answersNACKs {
      if placement.repairPayloadType != nil {
        sent.note(packet, sentAs: fields)
      } else {
        protected.store(fields.sequenceNumber, buffer.span.extracting(0..<count))
      }
    }
    statistics.sent(
      timestamp: fields.timestamp,
      payloadByteCount: layout.byteCount - layout.headerByteCount - packet.padding, at: now)
    return count
  }

  /// Writes the packet as this subscriber gets it, in the clear.
  @_lifetime(buffer: copy buffer)
  private func write(
    _ packet: borrowing MediaPacket, as fields: StreamRewriter.Fields, in placement: Placement, padding: Int,
    into buffer: inout MutableSpan<UInt8>
  ) -> RTPPacketLayout? {
    var header = packet.header
    header.payloadType = placement.payloadType
    header.ssrc = ssrc
    header.sequenceNumber = fields.sequenceNumber
    header.timestamp = fields.timestamp
    var values = RTPExtensionValues()
    values.audioLevel = packet.extensions.audioLevel
    values.videoOrientation = packet.extensions.videoOrientation
    do throws(WireError) {
      var layout = try RTPPacketWriter.rewriteHeader(
        of: packet.span, parsed: packet.header, as: header, extensions: values, ids: placement.ids,
        into: &buffer)
      if let descriptor = packet.descriptor {
        try descriptor.rewrite(
          in: &buffer, at: layout.headerByteCount, pictureID: fields.pictureID,
          tl0PictureIndex: fields.tl0PictureIndex)
      }
      if padding > 0 { layout.byteCount = try buffer.padRTP(layout.byteCount, by: padding) }
      return layout
    } catch { return nil }
  }

  /// Writes a repair. Nil when the packet is not there any more, or was repaired a moment ago.
  ///
  /// - Parameter scratch: where the packet that is repeated is put together again.
  @_lifetime(buffer: copy buffer)
  func repair(
    _ sequence: SequenceNumber, using scratch: inout MediaPacket, into buffer: inout MutableSpan<UInt8>,
    at now: Instant
  ) -> Int? {
    guard isReady, let placement, placement.answersNACKs else { return nil }
    // A receiver that asks again before a repair can have arrived must not make us amplify.
    let interval = max(.milliseconds(10), min(statistics.roundTrip ?? .zero, .milliseconds(200)))
    guard let payloadType = placement.repairPayloadType else {
      guard protected.claimRepair(sequence, at: now, minimumInterval: interval) else { return nil }
      return protected.copy(sequence, into: &buffer)
    }
    guard let entry = sent.claim(sequence, at: now, interval: interval),
      let source = track.streams.first(where: { $0.ssrc == entry.source }),
      source.restore(entry, into: &scratch),
      let layout = write(scratch, as: entry.fields, in: placement, padding: 0, into: &buffer)
    else { return nil }
    do throws(WireError) {
      let wrapped = try RTX.wrap(
        &buffer, count: layout.byteCount, payloadType: payloadType, ssrc: repairSSRC,
        sequenceNumber: repairSequence)
      repairSequence = repairSequence + 1
      return subscriber.downTransport.protectRTP(&buffer, count: wrapped)
    } catch { return nil }
  }

  func received(_ block: ReportBlock, at now: Instant) {
    guard let clock = track.clock(of: rewriter.source) else { return }
    statistics.received(block, ntpTime: clock.ntpTime(at: now))
  }

  /// The sender report, on the publisher's clock; nil before the publisher told it or while nothing was sent.
  func report(at now: Instant) -> SenderReport? {
    guard let clock = track.clock(of: rewriter.source), let offset = rewriter.timestampOffset,
      var report = statistics.report(at: now, ntpTime: clock.ntpTime(at: now))
    else { return nil }
    let timestamp = clock.rtpTimestamp(at: now, clockRate: track.kind.clockRate)
    report.rtpTimestamp = RTPTimestamp(timestamp.rawValue &+ offset)
    return report
  }
}
